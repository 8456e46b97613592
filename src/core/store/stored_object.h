// StoredObject: one object's state in memory: which blocks its file holds, who uses them, and which
// granules have been checked. One exists for every object with blocks, and for every open one; the
// ObjectTable owns them. No I/O here.
//
// A block is
//   absent                            nothing of it counts
//   busy                              being written, or on its way out: neither readable nor
//   writable present                           readable; *recorded* once the index holds it
// Dropping or writing a block gives it another generation, so that what was begun before is not
// taken for the block that stands there now.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"
#include "core/store/geometry.h"
#include "core/store/index_record.h"
#include "core/store/object_file.h"
#include "core/store/store.h"

namespace dartfs::core {

using GranuleSums = std::shared_ptr<const std::vector<uint64_t>>;

struct ObjectFacts {
  StoreKey key;
  ObjectMeta meta;
};

// What a read needs to know, taken in one step.
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

class StoredObject {
 public:
  StoredObject(const Geometry& geometry, const StoreKey& key, uint64_t size)
      : geometry_(geometry), first_key_(key), size_(size) {}
  ~StoredObject();

  const Geometry& geometry() const { return geometry_; }
  uint64_t size() const { return size_; }
  // By value: Rekey changes it.
  StoreKey key() const;
  // The key that Rekey moves to, or moved from: under which its records may also stand.
  std::optional<StoreKey> other_key() const EXCLUDES(mu_);
  // Null until SetFacts. What it points to lives as long as the object.
  const ObjectFacts* facts() const { return facts_.load(std::memory_order_acquire); }
  void SetFacts(ObjectFacts facts) EXCLUDES(mu_);
  void SetOtherKey(std::optional<StoreKey> key) EXCLUDES(mu_);
  bool is_volatile() const { return facts() != nullptr && facts()->meta.volatile_version; }
  uint64_t StoredBytes(uint64_t block) const { return geometry_.StoredBytes(size_, block); }

  // At the start, from the index; the blocks that count.
  uint64_t Load(uint32_t chunk, const ChunkRecord& record) EXCLUDES(mu_);

  // Readers.
  // Whether it is present, not withheld, and now pinned. `*use_is_news`: the index should be told
  // of the use.
  bool Pin(uint64_t block, uint64_t now_ms, bool* use_is_news) EXCLUDES(mu_);
  void Unpin(uint64_t block) EXCLUDES(mu_);
  // The file can't be used at present: no block is pinned, and none written, before that time.
  void WithholdUntil(uint64_t time_ms) EXCLUDES(mu_);
  ReadView View(uint64_t block, GranuleRange granules) EXCLUDES(mu_);
  // What View lacked, for the next one. Ignored where the generation has gone on.
  void KeepSums(uint64_t block, uint64_t generation, GranuleSums sums) EXCLUDES(mu_);
  void MarkVerified(uint64_t block, uint64_t generation, GranuleRange granules) EXCLUDES(mu_);
  uint64_t PresentBlocks() const EXCLUDES(mu_);
  uint64_t PresentBytes() const EXCLUDES(mu_);
  std::vector<bool> PresentMap() const EXCLUDES(mu_);

  // Writers.
  enum class Claim { kClaimed, kPresent, kBusy, kDropped, kWithheld };
  Claim ClaimForWrite(uint64_t block, uint64_t now_ms) EXCLUDES(mu_);
  // Of a claimed block. The generation it is present under, nullopt when the object was dropped.
  std::optional<uint64_t> FinishWrite(uint64_t block, GranuleSums sums, uint64_t now_ms)
      EXCLUDES(mu_);
  // Gives a claimed or leaving block up: it is absent.
  void Unclaim(uint64_t block) EXCLUDES(mu_);
  // Absent blocks of the chunk, all busy afterwards (the caller frees what lies there).
  uint64_t ClaimAbsent(uint64_t chunk) EXCLUDES(mu_);

  // The committer.
  // Marks the block as held by the index and returns its checksums; null when it has changed.
  GranuleSums MarkRecorded(uint64_t block, uint64_t generation) EXCLUDES(mu_);
  // What MarkRecorded marked is durable: memory need not keep the checksums, nor tell the block
  // from the one that the index holds.
  void ReleaseSums(uint64_t block, uint64_t generation) EXCLUDES(mu_);
  // What the index should hold of the chunk.
  ChunkRecord Snapshot(uint64_t chunk) EXCLUDES(mu_);
  // True once until the next Snapshot: the chunk's use is to be recorded.
  bool MarkDirty(uint64_t chunk) EXCLUDES(mu_);
  bool HasRecorded() EXCLUDES(mu_);
  // Whether the index holds the object's own record.
  bool object_recorded() const { return object_recorded_.load(std::memory_order_relaxed); }
  void set_object_recorded(bool to) { object_recorded_.store(to, std::memory_order_relaxed); }

  // Leaving.
  struct Dropped {
    uint64_t block = 0;
    bool recorded = false;
  };
  // The block, if present under that generation, becomes absent, whoever pins it. nullopt: it had
  // changed already.
  std::optional<Dropped> Drop(uint64_t block, uint64_t generation) EXCLUDES(mu_);
  std::vector<Dropped> DropAll() EXCLUDES(mu_);
  // The same, and nothing will ever be stored again. Not undone; before the file is unlinked.
  std::vector<Dropped> Retire() EXCLUDES(mu_);
  struct Evictable {
    uint32_t chunk = 0;
    uint64_t used_ms = 0;
  };
  // Chunks of which something could go.
  std::vector<Evictable> EvictableChunks() EXCLUDES(mu_);
  // Takes up to `bytes` of the chunk's blocks, the lowest first, that nobody pins; they are busy
  // afterwards. None if the chunk was used since `used_ms`.
  std::vector<uint64_t> TakeForEviction(const Evictable& from, uint64_t bytes) EXCLUDES(mu_);
  // Makes an absent, unpinned block busy, so that its place in the file can be freed. kBusy: try
  // later; kPresent: stored anew.
  Claim ClaimForPunch(uint64_t block) EXCLUDES(mu_);
  // No blocks but these, which are busy.
  bool HoldsOnly(const std::vector<uint64_t>& claimed) EXCLUDES(mu_);
  bool retired() EXCLUDES(mu_);

  std::shared_ptr<ObjectFile> file() EXCLUDES(mu_);
  // Null closes it, once the operations under way have ended.
  void SetFile(std::shared_ptr<ObjectFile> file) EXCLUDES(mu_);
  // Whether the file was used since the last call.
  bool TestAndClearFileUsed() EXCLUDES(mu_);
  // Frees what only readers need. For an object that nobody has open.
  void Trim() EXCLUDES(mu_);

 private:
  struct Chunk {
    uint32_t index = 0;
    bool dirty = false;
    uint64_t present = 0;
    uint64_t recorded = 0;  // a subset of present
    uint64_t busy = 0;      // disjoint from present
    uint64_t verified = 0;  // a subset of present: every granule checked
    uint64_t used_ms = 0;
  };
  // What one block has while it is pinned or partly checked, or until the index has its checksums.
  struct BlockUse {
    uint32_t pins = 0;
    bool pending = false;     // written in this run, and not durable in the index so far
    uint64_t generation = 0;  // 0: as it was loaded
    GranuleSums sums;
    std::vector<bool> verified;  // by granule
  };

  Chunk* Find(uint64_t chunk) REQUIRES(mu_);
  Chunk& FindOrAdd(uint64_t chunk) REQUIRES(mu_);
  std::vector<Dropped> DropAllLocked() REQUIRES(mu_);
  Dropped DropLocked(Chunk& chunk, uint64_t block) REQUIRES(mu_);
  uint32_t PinsOf(uint64_t block) const REQUIRES(mu_);
  void ForgetIfUnused(uint64_t block) REQUIRES(mu_);
  uint64_t GranulesOf(uint64_t block) const;

  const Geometry& geometry_;
  const StoreKey first_key_;
  const uint64_t size_;
  std::atomic<const ObjectFacts*> facts_ = nullptr;
  std::atomic<bool> object_recorded_ = false;

  mutable Mutex mu_;                           // a leaf; taken after a shard's of the table
  std::vector<Chunk> chunks_ GUARDED_BY(mu_);  // by index
  std::unordered_map<uint64_t, BlockUse> uses_ GUARDED_BY(mu_);
  std::shared_ptr<ObjectFile> file_ GUARDED_BY(mu_);
  bool file_used_ GUARDED_BY(mu_) = false;
  bool retired_ GUARDED_BY(mu_) = false;
  uint64_t last_generation_ GUARDED_BY(mu_) = 0;
  uint64_t withheld_until_ms_ GUARDED_BY(mu_) = 0;
  std::optional<StoreKey> other_key_ GUARDED_BY(mu_);
  std::vector<std::unique_ptr<const ObjectFacts>> kept_facts_ GUARDED_BY(mu_);
};

}  // namespace dartfs::core
