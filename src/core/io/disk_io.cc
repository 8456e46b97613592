#include "core/io/disk_io.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/page_size.h"
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

namespace {
// linux/mman.h has them from 6.5 on.
struct CacheRange {
  uint64_t offset, length;
};
struct CacheStat {
  uint64_t cached, dirty, writeback, evicted, recently_evicted;
};
constexpr long kCachestat = 451;
}  // namespace

bool IsCached(int fd, uint64_t offset, uint64_t length) {
  if (length == 0) return true;
  CacheRange range{offset, length};
  CacheStat found{};
  if (::syscall(kCachestat, fd, &range, &found, 0) != 0) return false;
  return found.cached >= (offset + length - 1) / kPageSize - offset / kPageSize + 1;
}

}  // namespace dartfs::core
