// Evictor: picks what goes, by EvictionPolicy, and takes it from its objects. What it returns is
// readable by nobody any more; records and places are the committer's. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/store/departure.h"
#include "core/store/eviction_policy.h"
#include "core/store/store_core.h"

namespace dartfs::core {

class Evictor {
 public:
  explicit Evictor(StoreCore& core) : core_(core) {}
  // Blocks of at least `bytes`, less where nothing else could go.
  std::vector<Departure> Take(uint64_t bytes);

 private:
  // Appends to `departures`; how many bytes that were.
  uint64_t TakeFrom(const EvictionCandidate& victim, uint64_t bytes,
                    std::vector<Departure>* departures);
  void Refill();

  StoreCore& core_;
  EvictionPolicy policy_;
};

}  // namespace dartfs::core
