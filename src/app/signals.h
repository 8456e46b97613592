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

// While it lives, a further SIGTERM or SIGINT, or the passing of `limit`, runs `force` on a thread
// of its own. For an orderly stop that may hang.
class StopGuard {
 public:
  StopGuard(Signals& signals, core::Duration limit, std::function<void(const char* why)> force);
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

 private:
  void Watch();

  Signals& signals_;
  const core::TimePoint deadline_;
  const std::function<void(const char*)> force_;
  core::UniqueFd done_;
  std::thread thread_;
};

}  // namespace dartfs::app
