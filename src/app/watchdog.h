// Watchdog: tells the service manager that this process works, as often as it wants to hear, and
// only while that is so: the main loop comes round, and the engine's scheduler does what it is
// given. Main thread only; the scheduler outlives it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/scheduler.h"
#include "core/base/time.h"

namespace dartfs::app {

class Watchdog {
 public:
  // `limit`: after so long a silence the service manager acts; nullopt: nobody listens.
  Watchdog(std::optional<core::Duration> limit, core::Scheduler& scheduler,
           std::function<void()> tell);
  // What systemd has set for this process (WatchdogSec=).
  static std::optional<core::Duration> LimitOfService();

  // How long the main loop may wait until the next Tick; nullopt: for ever.
  std::optional<core::Duration> Left() const;
  // Tells, when it is time and what was given to the scheduler the last time has been done.
  void Tick();

 private:
  const std::optional<core::Duration> interval_;
  core::Scheduler& scheduler_;
  const std::function<void()> tell_;
  core::TimePoint next_{};
  uint64_t asked_ = 0;
  const std::shared_ptr<std::atomic<uint64_t>> answered_;
};

}  // namespace dartfs::app
