#include "core/base/time.h"

#include <ctime>

#include "core/base/check.h"

namespace dartfs::core {
namespace {

class KernelClock final : public Clock {
 public:
  TimePoint Now() const override {
    timespec now{};
    DARTFS_CHECK(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
    return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  }
  std::chrono::system_clock::time_point WallNow() const override {
    return std::chrono::system_clock::now();
  }
};

}  // namespace

Clock& RealClock() {
  static KernelClock clock;
  return clock;
}

}  // namespace dartfs::core
