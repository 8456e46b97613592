// LatencyHistogram: how long things took, in buckets of fixed bounds. Adding is two relaxed
// increments, from any thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"

namespace dartfs::core {

// Upper bounds, inclusive: a block from the next rack, and one from a bad day across an ocean.
inline constexpr std::array<std::chrono::milliseconds, 13> kLatencyBounds = {
    std::chrono::milliseconds(5),     std::chrono::milliseconds(10),
    std::chrono::milliseconds(25),    std::chrono::milliseconds(50),
    std::chrono::milliseconds(100),   std::chrono::milliseconds(250),
    std::chrono::milliseconds(500),   std::chrono::milliseconds(1000),
    std::chrono::milliseconds(2500),  std::chrono::milliseconds(5000),
    std::chrono::milliseconds(10000), std::chrono::milliseconds(30000),
    std::chrono::milliseconds(60000)};

struct LatencyCounts {
  // One a bound, of what took longer than the bound before it; the last has what is beyond all.
  std::array<uint64_t, kLatencyBounds.size() + 1> buckets{};
  Duration sum{};

  uint64_t count() const {
    uint64_t all = 0;
    for (const uint64_t bucket : buckets) all += bucket;
    return all;
  }
};

class LatencyHistogram {
 public:
  void Add(Duration took) {
    const auto bound = std::lower_bound(kLatencyBounds.begin(), kLatencyBounds.end(), took);
    const auto bucket = static_cast<size_t>(bound - kLatencyBounds.begin());
    buckets_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(std::max<int64_t>(0, took.count()), std::memory_order_relaxed);
  }
  // Of what is added meanwhile, some may be in it.
  LatencyCounts Read() const {
    LatencyCounts counts;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      counts.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    }
    counts.sum = Duration(sum_ns_.load(std::memory_order_relaxed));
    return counts;
  }

 private:
  std::array<std::atomic<uint64_t>, kLatencyBounds.size() + 1> buckets_{};
  std::atomic<int64_t> sum_ns_{0};
};

}  // namespace dartfs::core
