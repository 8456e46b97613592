#include "fs/fuse_io.h"

#include <linux/fuse.h>
#include <unistd.h>

#include "fs/fuse_ops.h"

namespace dartfs::fs {
namespace {

// libfuse 3.14 knows this capability and leaves it out of its reply: the kernel then sends the
// lookups of a directory one after another, and nobody can be killed who waits for his turn.
constexpr uint32_t kForgottenFlags = FUSE_PARALLEL_DIROPS;
static_assert(FUSE_PARALLEL_DIROPS == FUSE_CAP_PARALLEL_DIROPS);

ssize_t Write(int fd, iovec* pieces, int count, void* userdata) {
  auto& context = *static_cast<FuseContext*>(userdata);
  // INIT is the first request, and no other is sent before it is answered.
  if (!context.init_answered.load(std::memory_order_relaxed) &&
      CompleteInitReply(pieces, count, context.init_flags & kForgottenFlags)) {
    context.init_answered.store(true, std::memory_order_relaxed);
  }
  return writev(fd, pieces, count);
}

ssize_t Read(int fd, void* buffer, size_t size, void* /*userdata*/) {
  return read(fd, buffer, size);
}

}  // namespace

bool CompleteInitReply(const iovec* pieces, int count, uint32_t flags) {
  if (count != 2 || pieces[0].iov_len != sizeof(fuse_out_header) ||
      pieces[1].iov_len != sizeof(fuse_init_out)) {
    return false;
  }
  if (static_cast<const fuse_out_header*>(pieces[0].iov_base)->error != 0) return false;
  static_cast<fuse_init_out*>(pieces[1].iov_base)->flags |= flags;
  return true;
}

bool InstallFuseIo(fuse_session* session) {
  fuse_custom_io io{};
  io.writev = &Write;
  io.read = &Read;
  return fuse_session_custom_io(session, &io, fuse_session_fd(session)) == 0;
}

}  // namespace dartfs::fs
