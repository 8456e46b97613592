// Unix stream sockets by path, of either end of the control socket. A path too long for an address
// is reached through /proc/self/fd.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {

// Replaces what is left at `path`, mode 0600, non-blocking. The caller owns the directory. kIo.
core::Result<core::UniqueFd> ListenUnix(const std::string& path);

// kUnavailable: nobody listens there. kForbidden: no permission. Else kIo. Does not wait: a full
// queue of the listener is kBusy. The socket is non-blocking.
core::Result<core::UniqueFd> ConnectUnix(const std::string& path);

// The user at the other end; nullopt when the kernel does not tell.
std::optional<uid_t> PeerUid(int fd);

}  // namespace dartfs::app
