// ManualClock: time that moves only when the test says so. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>

#include "core/base/time.h"

namespace dartfs::core {

class ManualClock final : public Clock {
 public:
  // Boot time begins at 1000 s, so that "an hour ago" would show as negative and zero as unset;
  // wall time at 2024-01-01 00:00:00 UTC.
  TimePoint Now() const override { return kBootStart + Passed(); }
  std::chrono::system_clock::time_point WallNow() const override {
    return kWallStart + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                            Passed() + Duration(wall_shift_ns_.load()));
  }

  // Both clocks.
  void Advance(Duration by) { passed_ns_ += by.count(); }
  // Wall time alone, as an administrator or NTP does.
  void ShiftWall(Duration by) { wall_shift_ns_ += by.count(); }

 private:
  static constexpr TimePoint kBootStart = TimePoint(std::chrono::seconds(1000));
  static constexpr std::chrono::system_clock::time_point kWallStart =
      std::chrono::system_clock::time_point(std::chrono::seconds(1704067200));

  Duration Passed() const { return Duration(passed_ns_.load()); }

  std::atomic<Duration::rep> passed_ns_ = 0;
  std::atomic<Duration::rep> wall_shift_ns_ = 0;
};

}  // namespace dartfs::core
