// PlacementShares: owned and borrowed blocks share the limit. Each kind's share (owned 0.8 of it,
// say) is a guaranteed minimum, not a fence: either may use what the other leaves free, and what
// exceeds its share gives way first. Pure.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/store/store_options.h"

namespace dartfs::core {

inline constexpr size_t kPlacements = 2;
constexpr size_t IndexOf(Placement placement) { return static_cast<size_t>(placement); }

// Present blocks by placement: their bytes, and how many they are. Thread-safe.
struct PlacementUsage {
  std::array<std::atomic<uint64_t>, kPlacements> bytes = {};
  std::array<std::atomic<uint64_t>, kPlacements> blocks = {};

  void Add(Placement placement, uint64_t byte_count, uint64_t block_count) {
    bytes[IndexOf(placement)].fetch_add(byte_count, std::memory_order_relaxed);
    blocks[IndexOf(placement)].fetch_add(block_count, std::memory_order_relaxed);
  }
  void Remove(Placement placement, uint64_t byte_count, uint64_t block_count) {
    bytes[IndexOf(placement)].fetch_sub(byte_count, std::memory_order_relaxed);
    blocks[IndexOf(placement)].fetch_sub(block_count, std::memory_order_relaxed);
  }
  uint64_t of(Placement placement) const {
    return bytes[IndexOf(placement)].load(std::memory_order_relaxed);
  }
  uint64_t blocks_of(Placement placement) const {
    return blocks[IndexOf(placement)].load(std::memory_order_relaxed);
  }
};

// Why something has to go.
struct Pressure {
  uint64_t to_free = 0;               // bytes, those that are coming included
  std::optional<Placement> incoming;  // of what needs room; nullopt: the disk does
  uint64_t incoming_bytes = 0;
};

class PlacementShares {
 public:
  PlacementShares(uint64_t limit_bytes, double owned_fraction)
      : limit_(limit_bytes), owned_fraction_(owned_fraction) {}

  // Of the kinds that have something to give, those that give first; of two, the one with the
  // least recently used.
  enum class Turn { kFirst, kAfter, kNever };
  Turn TurnOf(Placement placement, const std::array<uint64_t, kPlacements>& used,
              const Pressure& pressure) const {
    const bool is_own = pressure.incoming == placement;
    const uint64_t use = used[IndexOf(placement)];
    // Whoever is within his share does not give way to the other.
    if (pressure.incoming && !is_own && use <= ShareOf(placement, limit_)) return Turn::kNever;
    const uint64_t coming = pressure.incoming ? pressure.incoming_bytes : 0;
    const uint64_t total = used[0] + used[1] + coming;
    const uint64_t target = total > pressure.to_free ? total - pressure.to_free : 0;
    return use + (is_own ? coming : 0) > ShareOf(placement, target) ? Turn::kFirst : Turn::kAfter;
  }

 private:
  uint64_t ShareOf(Placement placement, uint64_t of_bytes) const {
    const auto owned = static_cast<uint64_t>(static_cast<double>(of_bytes) * owned_fraction_);
    return placement == Placement::kOwned ? owned : of_bytes - owned;
  }

  const uint64_t limit_;
  const double owned_fraction_;
};

}  // namespace dartfs::core
