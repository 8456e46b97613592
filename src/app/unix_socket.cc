#include "app/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/text.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::ErrnoError;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::UniqueFd;

constexpr int kBacklog = 16;

// An address that is good while `directory` is open.
struct Address {
  sockaddr_un address{};
  UniqueFd directory;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Result<Address> AddressOf(const std::string& path) {
  Address made;
  made.address.sun_family = AF_UNIX;
  std::string shown = path;
  if (shown.size() >= sizeof made.address.sun_path) {
    const size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    made.directory = UniqueFd(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!made.directory.valid()) return ErrnoError(errno, EscapeForeign(directory));
    shown = "/proc/self/fd/" + std::to_string(made.directory.get()) + "/" +
            path.substr(slash == std::string::npos ? 0 : slash + 1);
    if (shown.size() >= sizeof made.address.sun_path) {
      return MakeError(Code::kInvalidArgument,
                       EscapeForeign(path) + ": name too long for a socket");
    }
  }
  std::copy(shown.begin(), shown.end(), made.address.sun_path);
  return made;
}

UniqueFd NewSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

}  // namespace

Result<UniqueFd> ListenUnix(const std::string& path) {
  TRY_ASSIGN(const Address address, AddressOf(path));
  UniqueFd fd = NewSocket();
  if (!fd.valid()) return ErrnoError(errno, "socket");
  unlink(path.c_str());  // of a node that ended by force; the directory's lock is ours
  if (bind(fd.get(), address.get(), sizeof address.address) != 0 ||
      chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0 || listen(fd.get(), kBacklog) != 0) {
    return ErrnoError(errno, EscapeForeign(path));
  }
  return fd;
}

Result<UniqueFd> ConnectUnix(const std::string& path) {
  TRY_ASSIGN(const Address address, AddressOf(path));
  UniqueFd fd = NewSocket();
  if (!fd.valid()) return ErrnoError(errno, "socket");
  if (connect(fd.get(), address.get(), sizeof address.address) == 0) return fd;
  switch (errno) {
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED:
      return MakeError(Code::kUnavailable, EscapeForeign(path) + ": nobody listens");
    case EACCES:
    case EPERM:
      return MakeError(Code::kForbidden, EscapeForeign(path) + ": no permission");
    case EAGAIN:
      return MakeError(Code::kBusy, EscapeForeign(path) + ": too many wait there already");
    default:
      return ErrnoError(errno, EscapeForeign(path));
  }
}

ssize_t ReceiveWithFd(int socket, std::span<char> buffer, UniqueFd& fd) {
  constexpr size_t kMostFds = 4;  // what a wrong client sends is closed, not leaked
  iovec data{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
    return got;
  }
  const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; ++i) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header) + i * sizeof(int), sizeof received);
    UniqueFd owned(received);
    if (i == 0) fd = std::move(owned);
  }
  return got;
}

ssize_t SendWithFd(int socket, std::string_view bytes, int fd) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

std::optional<uid_t> PeerUid(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

}  // namespace dartfs::app
