#include "fs/fuse_io.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/base/unique_fd.h"
#include "fs/fuse_ops.h"
#include "fs/fuse_passthrough.h"

namespace dartfs::fs {
namespace {

// libfuse 3.14 knows this capability and leaves it out of its reply: the kernel then sends the
// lookups of a directory one after another, and nobody can be killed who waits for his turn.
constexpr uint32_t kForgottenFlags = FUSE_PARALLEL_DIROPS;
static_assert(FUSE_PARALLEL_DIROPS == FUSE_CAP_PARALLEL_DIROPS);
static_assert(FUSE_INIT_EXT == kInitExt);

// In fuse_init_out behind flags2, since protocol 7.40; zero before.
constexpr size_t kStackDepthOffset = offsetof(fuse_init_out, flags2) + sizeof(uint32_t);
static_assert(kStackDepthOffset + sizeof(uint32_t) <= sizeof(fuse_init_out));

InitExtras ExtrasOf(const InitState& init) {
  InitExtras extras;
  extras.flags = init.flags & kForgottenFlags;
  if (init.has_passthrough) {
    extras.flags |= kInitExt | kInitPassthrough;
    extras.max_stack_depth = kMaxStackDepth;
  }
  return extras;
}

ssize_t Write(int fd, iovec* pieces, int count, void* userdata) {
  return WriteReply(fd, pieces, count, static_cast<FuseContext*>(userdata)->init);
}

bool IsInterrupt(const void* message, size_t size) {
  fuse_in_header header{};
  if (size < sizeof header) return false;
  std::memcpy(&header, message, sizeof header);
  return header.opcode == FUSE_INTERRUPT;
}

ssize_t Read(int fd, void* buffer, size_t size, void* userdata) {
  const ssize_t got = read(fd, buffer, size);
  auto& context = *static_cast<FuseContext*>(userdata);
  InitState& init = context.init;
  if (got > 0 && IsInterrupt(buffer, static_cast<size_t>(got))) {
    context.interrupts_read.fetch_add(1, std::memory_order_relaxed);
  }
  if (got > 0 && !init.answered.load(std::memory_order_relaxed)) {
    if (const auto offer = OfferOfInit(buffer, static_cast<size_t>(got))) init.offer = *offer;
  }
  return got;
}

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
// A descriptor of its own for each thread: from that version on libfuse leaves it to whoever does
// its reads and writes.
int CloneDevice(int master) {
  core::UniqueFd device(open("/dev/fuse", O_RDWR | O_CLOEXEC));
  auto source = static_cast<uint32_t>(master);
  if (!device.valid() || ioctl(device.get(), FUSE_DEV_IOC_CLONE, &source) != 0) return -1;
  return device.Release();
}
#endif

}  // namespace

std::optional<KernelOffer> OfferOfInit(const void* message, size_t size) {
  fuse_in_header header{};
  fuse_init_in init{};
  constexpr size_t kFirstWord = offsetof(fuse_init_in, flags2);
  constexpr size_t kBothWords = kFirstWord + sizeof init.flags2;
  if (size < sizeof header + kFirstWord) return std::nullopt;
  std::memcpy(&header, message, sizeof header);
  if (header.opcode != FUSE_INIT) return std::nullopt;
  const size_t known = std::min(size - sizeof header, sizeof init);
  std::memcpy(&init, static_cast<const char*>(message) + sizeof header, known);
  KernelOffer offer{init.flags};
  if ((init.flags & kInitExt) != 0 && known >= kBothWords) {
    offer.flags |= uint64_t{init.flags2} << 32;
  }
  return offer;
}

bool CompleteInitReply(const iovec* pieces, int count, const InitExtras& extras) {
  if (count != 2 || pieces[0].iov_len != sizeof(fuse_out_header) ||
      pieces[1].iov_len != sizeof(fuse_init_out)) {
    return false;
  }
  if (static_cast<const fuse_out_header*>(pieces[0].iov_base)->error != 0) return false;
  auto* const reply = static_cast<fuse_init_out*>(pieces[1].iov_base);
  reply->flags |= static_cast<uint32_t>(extras.flags);
  reply->flags2 |= static_cast<uint32_t>(extras.flags >> 32);
  if (extras.max_stack_depth != 0) {
    std::memcpy(reinterpret_cast<char*>(reply) + kStackDepthOffset, &extras.max_stack_depth,
                sizeof extras.max_stack_depth);
  }
  return true;
}

// INIT is the first request, and no other is sent before it is answered.
ssize_t WriteReply(int fd, iovec* pieces, int count, InitState& init) {
  const bool is_init = !init.answered.load(std::memory_order_relaxed) &&
                       CompleteInitReply(pieces, count, ExtrasOf(init));
  const ssize_t written = writev(fd, pieces, count);
  if (is_init && written > 0) init.answered.store(true, std::memory_order_release);
  return written;
}

// A message that asks for nothing takes one of them with it, which is answered with EAGAIN.
void DropLateInterrupts(fuse_session* session, uint64_t most) {
  struct {
    fuse_in_header header;
    fuse_batch_forget_in forget;
  } nothing{};
  nothing.header.len = sizeof nothing;
  nothing.header.opcode = FUSE_BATCH_FORGET;
  for (uint64_t i = 0; i < most; ++i) {
    fuse_buf message{};
    message.size = sizeof nothing;
    message.mem = &nothing;
    fuse_session_process_buf(session, &message);
  }
}

bool InstallFuseIo(fuse_session* session) {
  fuse_custom_io io{};
  io.writev = &Write;
  io.read = &Read;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
  io.clone_fd = &CloneDevice;
  return fuse_session_custom_io_317(session, &io, sizeof io, fuse_session_fd(session)) == 0;
#else
  return fuse_session_custom_io(session, &io, fuse_session_fd(session)) == 0;
#endif
}

}  // namespace dartfs::fs
