#include "app/watchdog.h"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <utility>

namespace dartfs::app {
namespace {

constexpr int kTellsPerLimit = 3;

}  // namespace

Watchdog::Watchdog(std::optional<core::Duration> limit, core::Scheduler& scheduler,
                   std::function<void()> tell)
    : interval_(limit ? std::optional(*limit / kTellsPerLimit) : std::nullopt),
      scheduler_(scheduler),
      tell_(std::move(tell)),
      answered_(std::make_shared<std::atomic<uint64_t>>(0)) {}

std::optional<core::Duration> Watchdog::LimitOfService() {
  uint64_t usec = 0;
  if (sd_watchdog_enabled(0, &usec) <= 0) return std::nullopt;
  return std::chrono::microseconds(usec);
}

std::optional<core::Duration> Watchdog::Left() const {
  if (!interval_) return std::nullopt;
  return std::max(next_ - scheduler_.clock().Now(), core::Duration::zero());
}

void Watchdog::Tick() {
  if (!interval_ || *Left() > core::Duration::zero()) return;
  next_ = scheduler_.clock().Now() + *interval_;
  if (answered_->load(std::memory_order_relaxed) != asked_) return;
  tell_();
  ++asked_;
  scheduler_.Post([answered = answered_, asked = asked_] {
    answered->store(asked, std::memory_order_relaxed);
  });
}

}  // namespace dartfs::app
