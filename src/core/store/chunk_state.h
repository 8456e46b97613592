// What a StoredObject keeps of its chunks and of single blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/store/object_view.h"

namespace dartfs::core {

// Bit i of each mask: block i of the chunk.
struct ChunkState {
  uint32_t index = 0;
  bool dirty = false;  // the index is to be told of its use
  uint64_t present = 0;
  uint64_t recorded = 0;  // a subset of present
  uint64_t busy = 0;      // disjoint from present
  uint64_t verified = 0;  // a subset of present: every granule checked
  uint64_t used_ms = 0;
  uint32_t counted_s = 0;  // the second of the last use that was counted as one
  Placement placement = Placement::kOwned;
};

// Of an object's blocks.
struct BlockCounts {
  uint64_t present = 0;
  uint64_t recorded = 0;
  uint64_t verified = 0;
};

// What one block has while it is pinned or partly checked, or until the index has its checksums.
struct BlockUse {
  uint32_t pins = 0;
  bool pending = false;     // written in this run, and not durable in the index so far
  uint64_t generation = 0;  // 0: as it was loaded
  GranuleSums sums;
  std::vector<bool> verified;  // by granule
};

}  // namespace dartfs::core
