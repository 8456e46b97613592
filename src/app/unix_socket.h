// Unix stream sockets by path, of either end of the control socket. A path too long for an address
// is reached through /proc/self/fd.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {

// Replaces what is left at `path`, mode 0600, non-blocking. The caller owns the directory. kIo.
core::Result<core::UniqueFd> ListenUnix(const std::string& path);

// kUnavailable: nobody listens there. kForbidden: no permission. Else kIo. Does not wait: a full
// queue of the listener is kBusy. The socket is non-blocking.
core::Result<core::UniqueFd> ConnectUnix(const std::string& path);

// As recv(2) and send(2), with at most one descriptor beside the bytes. Of several that come the
// first is kept, and it replaces what `fd` holds.
ssize_t ReceiveWithFd(int socket, std::span<char> buffer, core::UniqueFd& fd);
ssize_t SendWithFd(int socket, std::string_view bytes, int fd);

// The user at the other end; nullopt when the kernel does not tell.
std::optional<uid_t> PeerUid(int fd);

}  // namespace dartfs::app
