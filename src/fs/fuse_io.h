// What libfuse does not tell the kernel by itself: its reads and writes of the device go through
// here, and the reply to INIT is completed on its way.
#pragma once

#include <sys/uio.h>

#include <cstdint>

struct fuse_session;

namespace dartfs::fs {

// Once, after mounting and before the loop. The session's userdata is a FuseContext. False: libfuse
// has no memory for it.
bool InstallFuseIo(fuse_session* session);

// Adds `flags` (FUSE_CAP_* of the bits that libfuse shares with the kernel's protocol) to what is
// about to be sent, if that is a successful reply to INIT. True: it was.
bool CompleteInitReply(const iovec* pieces, int count, uint32_t flags);

}  // namespace dartfs::fs
