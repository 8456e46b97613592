#include "core/io/disk_op.h"

#include <cerrno>
#include <string>
#include <utility>

namespace dartfs::core {
namespace {

const char* Verb(DiskOp::Kind kind) {
  switch (kind) {
    case DiskOp::Kind::kRead:
      return "read";
    case DiskOp::Kind::kWrite:
      return "write";
    case DiskOp::Kind::kSync:
      return "fdatasync";
  }
  return "?";
}

Error OpError(const DiskOp& op, int sys_errno) {
  return ErrnoError(sys_errno, std::string(Verb(op.kind)) + " at offset " +
                                   std::to_string(op.offset) + ", " + std::to_string(op.left) +
                                   " bytes left");
}

}  // namespace

std::optional<Status> DiskOp::Take(int64_t result) {
  if (result < 0) {
    const int sys_errno = static_cast<int>(-result);
    const bool again = sys_errno == EINTR || sys_errno == EAGAIN;
    if (again && --tries_left > 0) return std::nullopt;
    return OpError(*this, sys_errno);
  }
  if (kind == Kind::kSync || left == 0) return Status();
  if (result == 0) {
    if (kind == Kind::kWrite) return OpError(*this, EIO);
    return MakeError(Code::kIo, "short read: the file ends at offset " + std::to_string(offset) +
                                    ", " + std::to_string(left) + " bytes early");
  }
  const size_t done_bytes = static_cast<size_t>(result);
  DARTFS_CHECK(done_bytes <= left);
  tries_left = kMaxTries;
  data += done_bytes;
  left -= done_bytes;
  offset += done_bytes;
  if (left == 0) return Status();
  return std::nullopt;
}

DiskOp MakeReadOp(int fd, std::span<std::byte> into, uint64_t offset, IoDone done) {
  DiskOp op;
  op.kind = DiskOp::Kind::kRead;
  op.fd = fd;
  op.data = into.data();
  op.left = into.size();
  op.offset = offset;
  op.done = std::move(done);
  return op;
}

DiskOp MakeWriteOp(int fd, std::span<const std::byte> from, uint64_t offset, IoDone done) {
  DiskOp op;
  op.kind = DiskOp::Kind::kWrite;
  op.fd = fd;
  op.data = const_cast<std::byte*>(from.data());
  op.left = from.size();
  op.offset = offset;
  op.done = std::move(done);
  return op;
}

DiskOp MakeSyncOp(int fd, IoDone done) {
  DiskOp op;
  op.fd = fd;
  op.done = std::move(done);
  return op;
}

Error DiskQueueFull(size_t queue_limit) {
  return MakeError(Code::kBusy,
                   "disk queue full: " + std::to_string(queue_limit) + " calls are waiting");
}

Error DiskStopped() { return MakeError(Code::kCancelled, "disk I/O has stopped"); }

}  // namespace dartfs::core
