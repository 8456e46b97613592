// UseClock: milliseconds since the epoch for times of use, which never run backwards: neither when
// wall time is set back, nor against what the index remembers from before. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/base/time.h"

namespace dartfs::core {

class UseClock {
 public:
  explicit UseClock(Clock& clock) : clock_(clock), start_(clock.Now()) {
    const auto wall = clock.WallNow().time_since_epoch();
    base_ms_ = static_cast<uint64_t>(
        std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(wall).count()));
  }
  // Before any NowMs: a time of use that was remembered. Absurd ones (a year ahead) are ignored.
  void NotBefore(uint64_t used_ms) {
    constexpr uint64_t kYearMs = uint64_t{366} * 24 * 3600 * 1000;
    if (used_ms > base_ms_ && used_ms - base_ms_ < kYearMs) base_ms_ = used_ms;
  }
  uint64_t NowMs() const {
    return base_ms_ + static_cast<uint64_t>(ToMillis(clock_.Now() - start_));
  }

 private:
  const Clock& clock_;
  const TimePoint start_;
  uint64_t base_ms_ = 0;
};

}  // namespace dartfs::core
