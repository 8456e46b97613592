#include "fs/fusermount.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
using core::TimePoint;
using core::UniqueFd;

constexpr core::Duration kKillLimit = std::chrono::seconds(1);  // for a killed helper to be gone
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

int MillisUntil(TimePoint deadline) {
  const auto left = deadline - core::RealClock().Now();
  return static_cast<int>(std::max<int64_t>(0, core::ToMillis(left)));
}

// False when it has not ended by then. Without pidfd_open (before Linux 5.3) it looks every moment.
bool EndsBefore(TimePoint deadline, pid_t pid, int pidfd, int& status) {
  constexpr int kStepMs = 10;
  pollfd polled{pidfd, POLLIN, 0};
  while (true) {
    const pid_t ended = waitpid(pid, &status, WNOHANG);
    if (ended == pid) return true;
    if (ended < 0 && errno != EINTR) return status = -1, true;  // there is no such child
    const int left_ms = MillisUntil(deadline);
    if (left_ms == 0) return false;
    if (pidfd >= 0) {
      poll(&polled, 1, left_ms);
    } else {
      poll(nullptr, 0, std::min(left_ms, kStepMs));
    }
  }
}

// Its exit code, or -1 after a signal; a helper that hangs is killed at the deadline. One that
// can't be killed, as it hangs in the kernel, is left alone.
int WaitForExit(pid_t pid, TimePoint deadline) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  int status = 0;
  if (!EndsBefore(deadline, pid, process.get(), status)) {
    kill(pid, SIGKILL);
    const TimePoint later = core::RealClock().Now() + kKillLimit;
    if (!EndsBefore(later, pid, process.get(), status)) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The one descriptor that comes over the socket; invalid at its end, and after the deadline.
UniqueFd ReceiveDescriptor(int socket, TimePoint deadline) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  pollfd polled{socket, POLLIN, 0};
  ssize_t got = 0;
  do {
    if (poll(&polled, 1, MillisUntil(deadline)) == 0) return UniqueFd();
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && (errno == EINTR || errno == EAGAIN));
  const cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return UniqueFd();
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return UniqueFd(fd);
}

}  // namespace

Result<UniqueFd> MountByFusermount(const std::string& mountpoint, const std::string& options,
                                   core::Duration limit) {
  const TimePoint deadline = core::RealClock().Now() + limit;
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
  UniqueFd device = ReceiveDescriptor(ours.get(), deadline);
  const int code = WaitForExit(pid, deadline);
  if (device.valid() && code == 0) return device;
  return MakeError(Code::kIo,
                   "fusermount3 could not mount on " + EscapeForeign(mountpoint) +
                       "; its message above says why (for allow_other, /etc/fuse.conf must have "
                       "user_allow_other)");
}

Status UnmountByFusermount(const std::string& mountpoint, bool lazy, core::Duration limit) {
  const TimePoint deadline = core::RealClock().Now() + limit;
  std::vector<std::string> words = {"fusermount3", "-u", "-q"};
  if (lazy) words.emplace_back("-z");
  words.insert(words.end(), {"--", mountpoint});
  pid_t pid = -1;
  if (const int failure = Spawn(std::move(words), -1, pid); failure != 0) {
    return ErrnoError(failure, "fusermount3 (it comes with the package fuse3)");
  }
  if (WaitForExit(pid, deadline) == 0) return {};
  return MakeError(Code::kBusy, EscapeForeign(mountpoint) + " is in use");
}

}  // namespace dartfs::fs
