// ObjectTable: the objects in memory, by key, in shards. A key is *leaving* while its file is being
// unlinked: nobody may make an object under it until that is done, or the new object's file would
// be the one to go. No I/O here. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/mutex.h"
#include "core/store/stored_object.h"

namespace dartfs::core {

class ObjectTable {
 public:
  explicit ObjectTable(const Geometry& geometry) : geometry_(geometry) {}

  std::shared_ptr<StoredObject> Find(const StoreKey& key);
  // Waits, up to `patience`, for the key to have left; kBusy.
  Result<std::shared_ptr<StoredObject>> FindOrAdd(const StoreKey& key, uint64_t size,
                                                  std::chrono::nanoseconds patience);

  // Takes out an object that has no blocks but those `claimed` by the caller, and which nobody but
  // the caller's one reference has; its key is leaving then.
  bool RemoveIfIdle(const std::shared_ptr<StoredObject>& object,
                    const std::vector<uint64_t>& claimed);
  // Takes the object out whoever has it, if it stands there; its key is leaving then.
  bool Remove(const std::shared_ptr<StoredObject>& object);
  // Of a key without an object: it is leaving then. False where there is one.
  bool ClaimName(const StoreKey& key);
  // The key has left.
  void EndLeaving(const StoreKey& key);
  // Gives the object new facts, hence another key, which must be leaving (ClaimName). Nobody sees
  // it between the two. The old key is leaving then, the new one no more.
  void Move(const std::shared_ptr<StoredObject>& object, ObjectFacts facts);
  // Trims the object if nobody but the caller's one reference has it.
  bool TrimIfIdle(const std::shared_ptr<StoredObject>& object);

  // Under the shard's lock: short, and without calls back.
  void ForEach(const std::function<void(const std::shared_ptr<StoredObject>&)>& visit);
  size_t size();
  // Room for so many, so that a start need not make it bit by bit.
  void Reserve(size_t objects);
  const PlacementUsage& usage() const { return usage_; }

 private:
  static constexpr size_t kShards = 64;
  struct Shard {
    Mutex mu;  // taken before an object's; of two shards' the lower one first
    CondVar left;
    std::unordered_map<StoreKey, std::shared_ptr<StoredObject>> objects GUARDED_BY(mu);
    std::unordered_set<StoreKey> leaving GUARDED_BY(mu);
  };
  // Not the bits that the map of a shard spreads by.
  static size_t ShardIndex(const StoreKey& key) {
    return static_cast<size_t>(key.bytes()[StoreKey::kBytes - 1]) % kShards;
  }
  Shard& ShardOf(const StoreKey& key) { return shards_[ShardIndex(key)]; }

  const Geometry& geometry_;
  PlacementUsage usage_;  // of all objects
  std::array<Shard, kShards> shards_;
};

}  // namespace dartfs::core
