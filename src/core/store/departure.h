// Departure: blocks on their way out of an object's file. Their bytes count as used until the place
// has been freed, and that happens only after the commit that removes their records.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/store/stored_object.h"

namespace dartfs::core {

struct Departure {
  std::shared_ptr<StoredObject> object;
  std::vector<uint64_t> blocks;
  bool claimed = false;   // busy already (evicted); else the place may be in use, or anew
  bool recorded = false;  // the index has records of them
  bool refused = false;   // a place could not be freed so far
};

}  // namespace dartfs::core
