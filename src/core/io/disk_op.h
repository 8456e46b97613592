// DiskOp: one call to DiskIo on its way, and what each kernel call's result means for it. Shared by
// the two implementations; no I/O here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "core/io/disk_io.h"

namespace dartfs::core {

struct DiskOp {
  enum class Kind { kRead, kWrite, kSync };
  Kind kind = Kind::kSync;
  int fd = -1;
  std::byte* data = nullptr;  // what is left to do; not written to in a kWrite
  size_t left = 0;
  uint64_t offset = 0;
  unsigned tries_left = kMaxTries;  // without progress
  IoDone done;

  // An EAGAIN or EINTR that never ends must not keep a thread busy for ever.
  static constexpr unsigned kMaxTries = 1000;
  // The kernel's own limit is a page less than 2 GiB.
  static constexpr size_t kMaxBytesPerCall = size_t{1} << 30;

  size_t NextBytes() const { return left < kMaxBytesPerCall ? left : kMaxBytesPerCall; }
  // `result`: bytes done, or -errno. The operation's outcome, or nullopt where it is to be issued
  // again for what is left.
  std::optional<Status> Take(int64_t result);
};

DiskOp MakeReadOp(int fd, std::span<std::byte> into, uint64_t offset, IoDone done);
DiskOp MakeWriteOp(int fd, std::span<const std::byte> from, uint64_t offset, IoDone done);
DiskOp MakeSyncOp(int fd, IoDone done);

// The error of a call that finds `queue_limit` others waiting.
Error DiskQueueFull(size_t queue_limit);
Error DiskStopped();

}  // namespace dartfs::core
