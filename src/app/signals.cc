#include "app/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "core/base/thread.h"

namespace dartfs::app {

core::Result<Signals> Signals::Create() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  if (const int failure = pthread_sigmask(SIG_BLOCK, &set, nullptr); failure != 0) {
    return core::ErrnoError(failure, "pthread_sigmask");
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  if (sigaction(SIGPIPE, &ignore, nullptr) != 0) return core::ErrnoError(errno, "sigaction");
  core::UniqueFd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return core::ErrnoError(errno, "signalfd");
  return Signals(std::move(fd));
}

std::optional<int> Signals::Next() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

StopGuard::StopGuard(Signals& signals, Options options)
    : signals_(signals),
      options_(std::move(options)),
      deadline_(core::RealClock().Now() + options_.limit),
      done_(eventfd(0, EFD_CLOEXEC)),
      thread_(core::StartThread("stop-guard", [this] { Watch(); })) {}

StopGuard::~StopGuard() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = write(done_.get(), &one, sizeof one);
  thread_.join();
}

void StopGuard::Watch() {
  int left = options_.signals;
  while (true) {
    const int64_t left_ms = core::ToMillis(deadline_ - core::RealClock().Now());
    if (left_ms <= 0) return options_.force("it took too long");
    std::array<pollfd, 2> polled = {{{done_.get(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}}};
    poll(polled.data(), polled.size(), static_cast<int>(std::min<int64_t>(left_ms, 60'000)));
    if (polled[0].revents != 0) return;
    const int signal = signals_.Next().value_or(0);
    if ((signal == SIGTERM || signal == SIGINT) && --left <= 0) {
      return options_.force("a further signal came");
    }
  }
}

}  // namespace dartfs::app
