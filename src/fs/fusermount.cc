#include "fs/fusermount.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/text.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::ErrnoError;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;
using core::UniqueFd;

constexpr int kLimitMs = 10'000;
constexpr std::string_view kVariable = "_FUSE_COMMFD=";  // where the helper sends the descriptor

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentWith(int socket) {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(kVariable)) variables.emplace_back(*variable);
  }
  if (socket >= 0) variables.push_back(std::string(kVariable) + std::to_string(socket));
  return variables;
}

// Starts the helper with signals as at a terminal. -1 in `pid`: errno is the result.
int Spawn(std::vector<std::string> words, int socket, pid_t& pid) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> variables = EnvironmentWith(socket);
  const int failure = posix_spawnp(&pid, words.front().c_str(), nullptr, &attributes,
                                   Pointers(words).data(), Pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  return failure;
}

// Its exit code, or -1 after a signal; a helper that hangs is killed.
int WaitForExit(pid_t pid) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd polled{process.get(), POLLIN, 0};
  if (process.valid() && poll(&polled, 1, kLimitMs) == 0) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The one descriptor that comes over the socket; invalid at its end.
UniqueFd ReceiveDescriptor(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return UniqueFd();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return UniqueFd(fd);
}

}  // namespace

Result<UniqueFd> MountByFusermount(const std::string& mountpoint, const std::string& options) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return ErrnoError(errno, "socketpair");
  }
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  fcntl(theirs.get(), F_SETFD, 0);  // inherited
  pid_t pid = -1;
  const int failure = Spawn({"fusermount3", "-o", options, "--", mountpoint}, theirs.get(), pid);
  theirs.Reset();
  if (failure != 0) {
    return ErrnoError(failure, "fusermount3 (it comes with the package fuse3)");
  }
  const timeval limit{kLimitMs / 1000, 0};
  setsockopt(ours.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  UniqueFd device = ReceiveDescriptor(ours.get());
  const int code = WaitForExit(pid);
  if (device.valid() && code == 0) return device;
  return MakeError(Code::kIo,
                   "fusermount3 could not mount on " + EscapeForeign(mountpoint) +
                       "; its message above says why (for allow_other, /etc/fuse.conf must have "
                       "user_allow_other)");
}

Status UnmountByFusermount(const std::string& mountpoint, bool lazy) {
  std::vector<std::string> words = {"fusermount3", "-u", "-q"};
  if (lazy) words.emplace_back("-z");
  words.insert(words.end(), {"--", mountpoint});
  pid_t pid = -1;
  if (const int failure = Spawn(std::move(words), -1, pid); failure != 0) {
    return ErrnoError(failure, "fusermount3 (it comes with the package fuse3)");
  }
  if (WaitForExit(pid) == 0) return {};
  return MakeError(Code::kBusy, EscapeForeign(mountpoint) + " is in use");
}

}  // namespace dartfs::fs
