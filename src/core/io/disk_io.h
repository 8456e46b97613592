// DiskIo: reads, writes and syncs of local files that no caller waits for. Two implementations: an
// io_uring ring with one issuer thread (uring_disk_io), and a pool of threads over pread/pwrite
// (pool_disk_io) where io_uring is refused.
//
// Completions run exactly once, on a DiskIo thread, also when the call fails or Stop came first
// (kCancelled). They must be short and must not block; they may start further calls. Buffers and
// descriptors must stay valid until then. Calls are unordered among one another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/base/unique_function.h"

namespace dartfs::core {

using IoDone = UniqueFunction<void(Status)>;

class DiskIo {
 public:
  virtual ~DiskIo() = default;
  // All of `into`, from byte `offset`. The file's end before that: kIo ("short read").
  virtual void Read(int fd, std::span<std::byte> into, uint64_t offset, IoDone done) = 0;
  // All of `from`. A descriptor opened with O_DIRECT needs page-aligned address, length and offset.
  virtual void Write(int fd, std::span<const std::byte> from, uint64_t offset, IoDone done) = 0;
  // fdatasync.
  virtual void Sync(int fd, IoDone done) = 0;
  // "io_uring, 128 entries" or "4 threads": for the log.
  virtual std::string Describe() const = 0;
  // Waits for what is under way, cancels what is queued. Twice is fine.
  virtual void Stop() = 0;
};

struct DiskIoOptions {
  enum class Backend { kAuto, kUring, kPool };
  Backend backend = Backend::kAuto;  // kAuto: the ring where the kernel allows it, else the pool
  unsigned ring_entries = 128;
  size_t pool_threads = 4;
  size_t queue_limit = 8192;  // waiting calls beyond this end with kBusy
};

// kUnsupported when kUring is asked for and the kernel refuses.
Result<std::unique_ptr<DiskIo>> MakeDiskIo(DiskIoOptions options);

// Non-blocking attempt (preadv2, RWF_NOWAIT): true when all of `into` came from the page cache.
bool ReadIfCached(int fd, std::span<std::byte> into, uint64_t offset);

// Whether the page cache holds all of the file's bytes [offset, offset + length): a look that does
// no I/O and may be outdated when it returns. False where the kernel can't tell (before 6.5).
bool IsCached(int fd, uint64_t offset, uint64_t length);

}  // namespace dartfs::core
