// FrequencySketch: about how often something was seen of late, in fixed memory: a count-min sketch
// with conservative counters up to 15, all halved now and then, so that what was popular once is
// forgotten (TinyLFU: Einziger, Friedman, Manes, 2017). Pure; thread-safe, lock-free: a count lost
// to a race does not matter.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dartfs::core {

class FrequencySketch {
 public:
  static constexpr uint8_t kMaxCount = 15;

  // `things`: about how many matter at a time.
  explicit FrequencySketch(size_t things)
      : mask_(std::bit_ceil(things * kCountersPerThing) - 1),
        period_(things * kAdditionsPerThing),
        counters_((mask_ + 1) * kRows) {}

  // `hash` identifies the thing.
  void Add(uint64_t hash) {
    const uint8_t before = Estimate(hash);
    if (before < kMaxCount) {
      for (size_t row = 0; row < kRows; ++row) {
        auto& counter = counters_[At(hash, row)];
        // Only those that hold the estimate: the others count somebody else too.
        if (counter.load(std::memory_order_relaxed) == before) {
          counter.store(static_cast<uint8_t>(before + 1), std::memory_order_relaxed);
        }
      }
    }
    if (additions_.fetch_add(1, std::memory_order_relaxed) + 1 == period_) Halve();
  }
  uint8_t Estimate(uint64_t hash) const {
    uint8_t least = kMaxCount;
    for (size_t row = 0; row < kRows; ++row) {
      const uint8_t count = counters_[At(hash, row)].load(std::memory_order_relaxed);
      if (count < least) least = count;
    }
    return least;
  }

 private:
  static constexpr size_t kRows = 4;
  static constexpr size_t kCountersPerThing = 4;
  static constexpr uint64_t kAdditionsPerThing = 10;  // between two halvings

  size_t At(uint64_t hash, size_t row) const {
    constexpr uint64_t kSeeds[kRows] = {0x9E3779B97F4A7C15U, 0xC2B2AE3D27D4EB4FU,
                                        0x165667B19E3779F9U, 0x27D4EB2F165667C5U};
    constexpr unsigned kTopBits = 32;
    uint64_t mixed = (hash + row) * kSeeds[row];
    mixed ^= mixed >> kTopBits;
    return row * (mask_ + 1) + (mixed & mask_);
  }
  void Halve() {
    for (auto& counter : counters_) {
      counter.store(counter.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
    }
    additions_.store(period_ / 2, std::memory_order_relaxed);
  }

  const size_t mask_;
  const uint64_t period_;
  std::atomic<uint64_t> additions_ = 0;
  std::vector<std::atomic<uint8_t>> counters_;
};

}  // namespace dartfs::core
