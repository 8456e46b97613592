// What libfuse does not tell the kernel by itself, or us of the kernel: its reads and writes of the
// device go through here; INIT is looked at and its reply completed on their way.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

struct fuse_session;

namespace dartfs::fs {

// What the kernel's INIT offers (fuse_init_in): both words of its flags.
struct KernelOffer {
  uint64_t flags = 0;
};

// What is added to a reply to INIT.
struct InitExtras {
  uint64_t flags = 0;            // those from bit 32 on only where the kernel knows the second word
  uint32_t max_stack_depth = 0;  // with kInitPassthrough
};

// What a mount and its kernel agree on by INIT.
struct InitState {
  KernelOffer offer;                  // what the kernel's INIT offers
  uint32_t flags = 0;                 // FUSE_CAP_*: agreed
  bool has_passthrough = false;       // agreed
  std::atomic<bool> answered{false};  // release: the kernel has the reply; only now does it hold
};

// Once, after mounting and before the loop. The session's userdata is a FuseContext. False: libfuse
// has no memory for it.
bool InstallFuseIo(fuse_session* session);

// Interrupts that came when their requests had been answered: libfuse keeps each for the next
// request, and frees none of them with the session. After the loop; `most` is how many there can
// be.
void DropLateInterrupts(fuse_session* session, uint64_t most);

// Of a message from the kernel; nullopt where it is not INIT.
std::optional<KernelOffer> OfferOfInit(const void* message, size_t size);

// Completes what is about to be sent, if that is a successful reply to INIT. True: it was.
bool CompleteInitReply(const iovec* pieces, int count, const InitExtras& extras);

// writev of a reply, completed if it is the one to INIT.
ssize_t WriteReply(int fd, iovec* pieces, int count, InitState& init);

}  // namespace dartfs::fs
