// Evictor: picks what goes, by EvictionPolicy, and takes it from its objects. What it returns is
// readable by nobody any more; records and places are the committer's. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/store/departure.h"
#include "core/store/eviction_policy.h"
#include "core/store/placement_shares.h"
#include "core/store/store_core.h"

namespace dartfs::core {

class Evictor {
 public:
  explicit Evictor(StoreCore& core)
      : core_(core), shares_(core.options.limit_bytes, core.options.owned_fraction) {}
  // Blocks of at least `bytes`, less where nothing else could go, from whom the shares allow.
  std::vector<Departure> Take(uint64_t bytes, const Pressure& pressure);

 private:
  // Appends to `departures`; how many bytes that were.
  uint64_t TakeFrom(const EvictionCandidate& victim, uint64_t bytes,
                    std::vector<Departure>* departures);
  // Looks through all chunks.
  void Refill();
  // Whose turn it is; null where nobody has anything that he must give.
  EvictionPolicy* NextQueue(const Pressure& pressure, PlacementShares::Turn turn);
  void TellNextVictim();

  // Where there is nothing to evict, every refused block asks again: looking for it takes a
  // twentieth of the time at most.
  static constexpr int kRest = 20;

  StoreCore& core_;
  const PlacementShares shares_;
  std::array<EvictionPolicy, kPlacements> queues_;  // by Placement
  Duration look_took_{};
  TimePoint next_look_{};
};

}  // namespace dartfs::core
