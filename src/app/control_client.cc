#include "app/control_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "app/unix_socket.h"
#include "core/base/text.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::MakeError;
using core::Status;

// Blocks until the descriptor is ready for `events` or the deadline passes.
Status WaitFor(int fd, short events, core::TimePoint deadline) {
  while (true) {
    const int64_t left_ms = core::ToMillis(deadline - core::RealClock().Now());
    if (left_ms <= 0) return MakeError(Code::kDeadlineExceeded, "the node did not answer in time");
    pollfd polled{fd, events, 0};
    const int ready = poll(&polled, 1, static_cast<int>(std::min<int64_t>(left_ms, 60'000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return core::ErrnoError(errno, "poll");
  }
}

// The descriptor, where there is one, goes with the first byte.
Status SendAll(int fd, std::string_view text, int with, core::TimePoint deadline) {
  while (!text.empty()) {
    const ssize_t sent = SendWithFd(fd, text, with);
    if (sent >= 0) {
      text.remove_prefix(static_cast<size_t>(sent));
      with = -1;
    } else if (errno == EAGAIN) {
      TRY(WaitFor(fd, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return MakeError(Code::kBadResponse, "the node closed the connection");
    }
  }
  return {};
}

}  // namespace

core::Result<std::string> AskNode(const std::string& socket_path, const ControlQuestion& question,
                                  core::Duration timeout) {
  const core::TimePoint deadline = core::RealClock().Now() + timeout;
  TRY_ASSIGN(const core::UniqueFd fd, ConnectUnix(socket_path));
  TRY(SendAll(fd.get(), question.line + "\n", question.fd, deadline));
  std::string answer;
  std::array<char, 16384> buffer;
  while (answer.size() <= kMostAnswerBytes) {
    const ssize_t got = recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (got > 0) {
      answer.append(buffer.data(), static_cast<size_t>(got));
      if (const size_t end = answer.find('\n'); end != std::string::npos) {
        answer.resize(end);
        return answer;
      }
    } else if (got < 0 && errno == EAGAIN) {
      TRY(WaitFor(fd.get(), POLLIN, deadline));
    } else if (got == 0 || errno != EINTR) {
      return MakeError(Code::kBadResponse,
                       "the node closed the connection without an answer: it may be ending, or the "
                       "disk of its cache may hang (its log says)");
    }
  }
  return MakeError(Code::kTooLarge, "the node's answer is too long");
}

}  // namespace dartfs::app
