#include "core/io/disk_io.h"

#include <sys/uio.h>

#include "core/base/log.h"
#include "core/io/pool_disk_io.h"
#include "core/io/uring_disk_io.h"

namespace dartfs::core {

Result<std::unique_ptr<DiskIo>> MakeDiskIo(DiskIoOptions options) {
  using Backend = DiskIoOptions::Backend;
  if (options.backend == Backend::kPool) return PoolDiskIo::Create(options);
  auto ring = UringDiskIo::Create(options);
  if (ring || options.backend == Backend::kUring) return ring;
  LOG_INFO("disk I/O by threads, as there is no io_uring: {}", ring.error().ToString());
  return PoolDiskIo::Create(options);
}

bool ReadIfCached(int fd, std::span<std::byte> into, uint64_t offset) {
  while (!into.empty()) {
    iovec part = {into.data(), into.size()};
    const ssize_t result = ::preadv2(fd, &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    if (result <= 0) return false;
    into = into.subspan(static_cast<size_t>(result));
    offset += static_cast<uint64_t>(result);
  }
  return true;
}

}  // namespace dartfs::core
