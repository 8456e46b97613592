// What readers and the verifier share: a block's checksums, and what becomes of a block whose bytes
// do not match them or can't be read. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "core/store/committer.h"
#include "core/store/store_core.h"

namespace dartfs::core {

// From the view, or from the index and then kept with the object; null where there are none.
GranuleSums FindBlockSums(StoreCore& core, const std::shared_ptr<StoredObject>& object,
                          uint64_t block, const ReadView& view);

struct BadBlock {
  std::shared_ptr<StoredObject> object;
  uint64_t block = 0;
  uint64_t generation = 0;
  uint64_t bad_granules = 0;
};

// Drops the block (the whole object, where its file is lent), and says so, once, whoever else has
// found the same. Returns `error`.
Error DropBadBlock(StoreCore& core, Committer& committer, const BadBlock& bad, Error error);

}  // namespace dartfs::core
