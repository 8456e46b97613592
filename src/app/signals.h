// Signals as events of one descriptor, for the thread that waits for them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {

// SIGTERM, SIGINT and SIGHUP, blocked for the whole process from Create on; SIGPIPE is ignored.
// Create before other threads start.
class Signals {
 public:
  static core::Result<Signals> Create();
  // Readable when a signal waits.
  int fd() const { return fd_.get(); }
  // The next signal that waits; does not block.
  std::optional<int> Next();

 private:
  explicit Signals(core::UniqueFd fd) : fd_(std::move(fd)) {}
  core::UniqueFd fd_;
};

// Watches over an orderly stop that may hang: while it lives, SIGTERM or SIGINT in the given
// number, or the passing of `limit`, runs `force` on a thread of its own.
class StopGuard {
 public:
  struct Options {
    core::Duration limit = std::chrono::seconds(30);
    int signals = 1;  // 2 where the stop did not begin with a signal
    std::function<void(const char* why)> force = {};
  };
  StopGuard(Signals& signals, Options options);
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

 private:
  void Watch();

  Signals& signals_;
  const Options options_;
  const core::TimePoint deadline_;
  core::UniqueFd done_;
  std::thread thread_;
};

}  // namespace dartfs::app
