// TrafficCounters: answers and bytes by whom they served. Any thread; relaxed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "httpd/exchange.h"

namespace dartfs::httpd {

inline constexpr size_t kStatusClasses = 6;  // by the first digit; 0: a status that is none

struct PlaneTraffic {
  std::array<uint64_t, kStatusClasses> answers{};
  uint64_t sent = 0;  // bytes of bodies
};
using Traffic = std::array<PlaneTraffic, kPlanes>;  // by Plane

class TrafficCounters {
 public:
  void Count(const AccessRecord& record);
  Traffic Read() const;

 private:
  struct Counters {
    std::array<std::atomic<uint64_t>, kStatusClasses> answers{};
    std::atomic<uint64_t> sent{0};
  };
  std::array<Counters, kPlanes> planes_{};
};

}  // namespace dartfs::httpd
