// Applies an IndexBatch within a transaction. For index.cc alone.
#pragma once

#include "core/store/index.h"
#include "core/store/index_env.h"

namespace dartfs::core {

class IndexBatchWriter {
 public:
  IndexBatchWriter(const IndexEnv& env, IndexTxn& txn, uint64_t max_names)
      : env_(env), txn_(txn), max_names_(max_names) {}
  Status Write(const IndexBatch& batch);

 private:
  // Entries of `table` whose key begins with the object's.
  Result<std::vector<std::pair<std::string, std::string>>> Collect(IndexTable table,
                                                                   const StoreKey& object);
  Status EraseObject(const StoreKey& object);
  Status EraseRange(IndexTable table, const StoreKey& object);
  Status Rekey(const IndexBatch::Rekey& rekey);
  Status WriteName(const IndexBatch::Name& name);
  // Deletes the entry at or behind a random key: names are hashed, so any is as likely.
  Status MakeRoomForName(IndexTable table, std::string_view new_key);

  const IndexEnv& env_;
  IndexTxn& txn_;
  const uint64_t max_names_;
};

IndexTable TableOf(NameTable table);

}  // namespace dartfs::core
