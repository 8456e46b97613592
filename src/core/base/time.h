// Time for TTLs, deadlines and leases is monotonic and runs on in suspend (CLOCK_BOOTTIME); wall
// time is only for what is shown or compared with HTTP dates.
#pragma once

#include <chrono>
#include <cstdint>

namespace dartfs::core {

struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
};

using Duration = std::chrono::nanoseconds;
using TimePoint = BootClock::time_point;

// "Never": later than any deadline in use, far from overflow.
inline constexpr TimePoint kNoDeadline = TimePoint(Duration(INT64_MAX / 2));

// Thread-safe. The real one reads the kernel's clocks; tests step a ManualClock (tests/fake).
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  virtual std::chrono::system_clock::time_point WallNow() const = 0;
};

// The process-wide real clock.
Clock& RealClock();

inline int64_t ToMillis(Duration d) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
}

}  // namespace dartfs::core
