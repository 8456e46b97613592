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
// A file that is *lent* (FORMAT.md) leaves as one and takes no writes; only once its name is gone
// can the object be filled again, through another file.
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
#include "core/store/chunk_state.h"
#include "core/store/geometry.h"
#include "core/store/index_record.h"
#include "core/store/lent_file.h"
#include "core/store/object_view.h"
#include "core/store/placement_shares.h"

namespace dartfs::core {

class StoredObject {
 public:
  StoredObject(const Geometry& geometry, const StoreKey& key, uint64_t size, PlacementUsage& usage)
      : geometry_(geometry), first_key_(key), size_(size), usage_(usage) {}
  ~StoredObject();

  const Geometry& geometry() const { return geometry_; }
  uint64_t size() const { return size_; }
  // By value: Rekey changes it.
  StoreKey key() const;
  std::optional<StoreKey> other_key() const EXCLUDES(mu_);  // that Rekey moves to, or moved from
  // Null until SetFacts. What it points to lives as long as the object.
  const ObjectFacts* facts() const { return facts_.load(std::memory_order_acquire); }
  void SetFacts(ObjectFacts facts) EXCLUDES(mu_);
  void SetOtherKey(std::optional<StoreKey> key) EXCLUDES(mu_);
  bool is_volatile() const { return facts() != nullptr && facts()->meta.volatile_version; }
  uint64_t StoredBytes(uint64_t block) const { return geometry_.StoredBytes(size_, block); }

  // At the start; the blocks that count.
  uint64_t Load(uint32_t chunk, const ChunkRecord& record) EXCLUDES(mu_);

  // Readers.
  // Whether it is present, not withheld, and now pinned.
  bool Pin(uint64_t block, uint64_t now_ms, UseNews* news) EXCLUDES(mu_);
  // The same, and no use of it.
  bool PinUnused(uint64_t block, uint64_t now_ms) EXCLUDES(mu_);
  // As if all of it had been read. Chunks that are news to the index.
  std::vector<uint32_t> TouchAll(uint64_t now_ms) EXCLUDES(mu_);
  void Unpin(uint64_t block) EXCLUDES(mu_);
  // The file can't be used at present: no block is pinned, and none written, before that time.
  void WithholdUntil(uint64_t time_ms) EXCLUDES(mu_);
  ReadView View(uint64_t block, GranuleRange granules) EXCLUDES(mu_);
  // These two: ignored where the generation has gone on.
  void KeepSums(uint64_t block, uint64_t generation, GranuleSums sums) EXCLUDES(mu_);
  void MarkVerified(uint64_t block, uint64_t generation, GranuleRange granules) EXCLUDES(mu_);
  uint64_t PresentBlocks() const EXCLUDES(mu_);
  uint64_t PresentBytes() const EXCLUDES(mu_);
  std::vector<bool> PresentMap() const EXCLUDES(mu_);

  // Writers.
  Placement PlacementOf(uint64_t block) EXCLUDES(mu_);
  // A use of an absent block: whether it counts.
  bool CountUse(uint64_t block, uint64_t now_ms) EXCLUDES(mu_);
  enum class Claim { kClaimed, kPresent, kBusy, kDropped, kWithheld };
  Claim ClaimForWrite(uint64_t block, uint64_t now_ms) EXCLUDES(mu_);
  // The generation it is present under; nullopt: the object was dropped.
  std::optional<uint64_t> FinishWrite(uint64_t block, GranuleSums sums, uint64_t now_ms)
      EXCLUDES(mu_);
  void Unclaim(uint64_t block) EXCLUDES(mu_);  // given up, or left: it is absent
  // Absent blocks of the chunk, busy afterwards; none where that file is no longer current.
  uint64_t ClaimAbsent(uint64_t chunk, uint64_t file_number) EXCLUDES(mu_);

  // The committer.
  // Marks it as held by the index and returns its checksums; null when it has changed.
  GranuleSums MarkRecorded(uint64_t block, uint64_t generation) EXCLUDES(mu_);
  void ReleaseSums(uint64_t block, uint64_t generation) EXCLUDES(mu_);  // that is durable now
  ChunkRecord Snapshot(uint64_t chunk) EXCLUDES(mu_);  // what the index should hold
  bool MarkDirty(uint64_t chunk) EXCLUDES(mu_);        // true once until the next Snapshot
  bool HasRecorded() EXCLUDES(mu_);
  // The index holds the object's own record.
  bool object_recorded() const { return object_recorded_.load(std::memory_order_relaxed); }
  void set_object_recorded(bool to) { object_recorded_.store(to, std::memory_order_relaxed); }

  // Leaving.
  // The block, if present under that generation, becomes absent, whoever pins it; with it all
  // others, where the file is lent. Nothing: it had changed already.
  std::vector<DroppedBlock> Drop(uint64_t block, uint64_t generation) EXCLUDES(mu_);
  std::vector<DroppedBlock> DropAll() EXCLUDES(mu_);
  // The same, and nothing will ever be stored again. Not undone; before the file is unlinked.
  std::vector<DroppedBlock> Retire() EXCLUDES(mu_);
  // What could go: a complete object as one, else chunks.
  std::vector<Evictable> FindEvictable() EXCLUDES(mu_);
  // Takes blocks that nobody pins; they are busy afterwards. Of a chunk up to `bytes`, the lowest
  // first; of a whole object all, and of one that is lent all or none. None if it was used since.
  std::vector<uint64_t> TakeForEviction(const Evictable& from, uint64_t bytes) EXCLUDES(mu_);
  // Makes an absent, unpinned block busy, so that its place in the file can be freed. kBusy: try
  // later; kPresent: stored anew.
  Claim ClaimForPunch(uint64_t block) EXCLUDES(mu_);
  // No blocks but these, which are busy, and no pin of the operator's.
  bool HoldsOnly(const std::vector<uint64_t>& claimed) EXCLUDES(mu_);
  bool retired() EXCLUDES(mu_);

  std::vector<uint64_t> TakeAll() EXCLUDES(mu_);  // that can go now
  bool SetPinned(bool pinned) EXCLUDES(mu_);
  bool is_pinned() const EXCLUDES(mu_);
  bool SetPlacement(uint64_t chunk, Placement placement) EXCLUDES(mu_);  // is it news to the index

  // Lending. All blocks present, recorded, and checked in this run.
  bool IsComplete() const EXCLUDES(mu_);
  bool IsVerified() const EXCLUDES(mu_);
  // Null where the file is not lent. While it is, nothing is written and no place freed.
  std::shared_ptr<LentFile> lent_file() const EXCLUDES(mu_);
  bool is_lent_durably() const EXCLUDES(mu_);  // the index holds the mark: no loan before that
  bool MarkLent(std::shared_ptr<LentFile> lent) EXCLUDES(mu_);  // false: it may not be lent
  void LoadLent(std::shared_ptr<LentFile> lent) EXCLUDES(mu_);
  // The mark's commit has ended so. Without it the file is as it was; a durable mark stays.
  void SettleLent(bool durable) EXCLUDES(mu_);
  // One more loan of the durably lent file, if it still has that number and is verified.
  std::shared_ptr<LentFile> BeginLoan(uint64_t file_number, bool* too_much) EXCLUDES(mu_);
  // Whether the lent file's name may go: nothing present, no block pinned, none busy but
  // `claimed` of them.
  bool MayUnlinkLent(size_t claimed) EXCLUDES(mu_);
  // Its name is gone: the next write makes another file. Returns what was lent.
  std::shared_ptr<LentFile> ReplaceFile() EXCLUDES(mu_);

  std::shared_ptr<ObjectFile> file() EXCLUDES(mu_);
  // Whether a file of its name is the object's: loaded, or made since (FORMAT.md, "Lent files").
  bool owns_file() const { return owns_file_.load(std::memory_order_acquire); }
  void set_owns_file() { owns_file_.store(true, std::memory_order_release); }
  uint64_t file_number() const EXCLUDES(mu_);  // changes with ReplaceFile
  // False where it is no longer current.
  bool SetFile(std::shared_ptr<ObjectFile> file, uint64_t number) EXCLUDES(mu_);
  void CloseFile() EXCLUDES(mu_);             // once the operations under way have ended
  bool TestAndClearFileUsed() EXCLUDES(mu_);  // since the last call
  void Trim() EXCLUDES(mu_);  // of what only readers need; for an object that nobody has open

 private:
  using Chunk = ChunkState;

  Chunk* Find(uint64_t chunk) REQUIRES(mu_);
  Chunk& FindOrAdd(uint64_t chunk) REQUIRES(mu_);
  bool PinLocked(Chunk* chunk, uint64_t block, uint64_t now_ms) REQUIRES(mu_);
  std::vector<DroppedBlock> DropAllLocked() REQUIRES(mu_);
  DroppedBlock DropLocked(Chunk& chunk, uint64_t block) REQUIRES(mu_);
  // Whether so many are all of the object's blocks.
  bool IsAll(uint64_t blocks) const {
    return blocks != 0 && blocks == geometry_.grid().BlockCount(size_);
  }
  uint64_t NewestUseLocked() const REQUIRES(mu_);
  std::optional<Placement> OnlyPlacementLocked() const REQUIRES(mu_);  // nullopt: both
  bool MayLeaveWholeLocked() const REQUIRES(mu_);
  bool AnyPinsLocked() const REQUIRES(mu_);
  uint64_t EvictableMask(const Chunk& chunk) const REQUIRES(mu_);
  // Appends to `taken` what nobody pins of the chunk.
  void TakeChunkLocked(Chunk& chunk, uint64_t bytes, std::vector<uint64_t>* taken) REQUIRES(mu_);
  uint32_t PinsOf(uint64_t block) const REQUIRES(mu_);
  void ForgetIfUnused(uint64_t block) REQUIRES(mu_);
  uint64_t GranulesOf(uint64_t block) const;

  const Geometry& geometry_;
  const StoreKey first_key_;
  const uint64_t size_;
  PlacementUsage& usage_;
  std::atomic<const ObjectFacts*> facts_ = nullptr;
  std::atomic<bool> object_recorded_ = false;
  std::atomic<bool> owns_file_ = false;

  // Taken after a shard's of the table, before the LentFile's.
  mutable Mutex mu_;
  std::vector<Chunk> chunks_ GUARDED_BY(mu_);  // by index
  BlockCounts counts_ GUARDED_BY(mu_);         // of all chunks
  std::unordered_map<uint64_t, BlockUse> uses_ GUARDED_BY(mu_);
  std::shared_ptr<ObjectFile> file_ GUARDED_BY(mu_);
  uint64_t file_number_ GUARDED_BY(mu_) = 0;
  std::shared_ptr<LentFile> lent_ GUARDED_BY(mu_);
  bool lent_durably_ GUARDED_BY(mu_) = false;
  bool pinned_ GUARDED_BY(mu_) = false;
  bool file_used_ GUARDED_BY(mu_) = false;
  bool retired_ GUARDED_BY(mu_) = false;
  uint64_t last_generation_ GUARDED_BY(mu_) = 0;
  uint64_t withheld_until_ms_ GUARDED_BY(mu_) = 0;
  std::optional<StoreKey> other_key_ GUARDED_BY(mu_);
  std::vector<std::unique_ptr<const ObjectFacts>> kept_facts_ GUARDED_BY(mu_);
};

}  // namespace dartfs::core
