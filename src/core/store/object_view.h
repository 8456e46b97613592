// What a StoredObject tells its users: facts, and views that are taken in one step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/store_key.h"
#include "core/store/object_file.h"
#include "core/store/store.h"

namespace dartfs::core {

using GranuleSums = std::shared_ptr<const std::vector<uint64_t>>;

struct ObjectFacts {
  StoreKey key;
  ObjectMeta meta;
};

// What a read needs to know.
struct ReadView {
  bool present = false;
  bool verified = false;  // all granules asked for have been checked in this run
  uint64_t generation = 0;
  GranuleSums sums;                  // null where they must come from the index
  std::shared_ptr<ObjectFile> file;  // null where it must be opened
};

struct GranuleRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

// What a use of a chunk is worth saying: to the index (another time of use), to who counts how
// often (not those that follow within the same second).
struct UseNews {
  bool to_index = false;
  bool to_count = false;
};

// A block that has left its object.
struct DroppedBlock {
  uint64_t block = 0;
  bool recorded = false;  // the index holds it
};

// A chunk of which something could be evicted, or an object of which everything could.
struct Evictable {
  uint32_t chunk = 0;  // of no meaning for a whole object
  bool whole = false;
  uint64_t used_ms = 0;  // of a whole object: of its newest chunk
  Placement placement = Placement::kOwned;
};

}  // namespace dartfs::core
