// CommitRound: what the committer does in one round, and what it carries over to the next where the
// disk refuses. Used by the committer's thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/store/departure.h"
#include "core/store/evictor.h"
#include "core/store/place_freer.h"
#include "core/store/store_core.h"

namespace dartfs::core {

struct PresentBlock {
  std::shared_ptr<StoredObject> object;
  uint64_t block = 0;
  uint64_t generation = 0;
  uint64_t bypass_number = 0;  // when it was admitted
};

// What has come in since the last round.
struct RoundWork {
  std::vector<PresentBlock> present;
  std::vector<Departure> departures;
  std::vector<std::pair<std::shared_ptr<StoredObject>, uint64_t>> uses;  // object, chunk
  std::vector<std::shared_ptr<StoredObject>> metas;
  std::vector<StoreKey> empties;
};

class CommitRound {
 public:
  explicit CommitRound(StoreCore& core) : core_(core), evictor_(core), places_(core) {}

  // One round. An error: the disk or the index refused; the store is in bypass.
  Status Run(RoundWork work);
  // Forgets the object, whoever has it: records gone, then the file.
  Status DropObject(const std::shared_ptr<StoredObject>& object);
  // Marks the objects' files lent, durably, in one commit; an outcome for each. kBusy: not
  // complete, recorded and verified.
  std::vector<Status> MarkLent(std::span<const std::shared_ptr<StoredObject>> objects);
  // The operator's pin, durably. kTooLarge: more than pins may take.
  Status SetPinned(const std::shared_ptr<StoredObject>& object, bool pinned);
  // All of it that can go; how many bytes.
  Result<uint64_t> EvictObject(const std::shared_ptr<StoredObject>& object);
  // Gives it other facts: another key, under which its records and its file stand afterwards.
  Status Rekey(const std::shared_ptr<StoredObject>& object, ObjectFacts facts);
  // Whether a round is wanted before anything new comes in.
  bool has_leftovers() const {
    return !departures_.empty() || marks_are_stale_ || places_.has_leftovers();
  }

 private:
  using Present = std::vector<PresentBlock>;

  void TakeIn(RoundWork* work);
  // One pass; whether anything was committed.
  Result<bool> Pass(Present present);
  // The index is damaged, and takes nothing until the next start: nothing is kept for it.
  Error Abandon(const Present& present);
  void Evict();
  using SyncOutcomes = std::unordered_map<const StoredObject*, Status>;
  // Leaves in `present` those whose data is on the disk.
  void SyncFiles(Present* present);
  // Of objects that differ.
  SyncOutcomes SyncObjects(std::span<const std::shared_ptr<StoredObject>> objects);
  void SyncSome(std::span<const std::shared_ptr<StoredObject>> objects, Duration deadline,
                SyncOutcomes* outcomes);
  void DropUnsynced(const SyncOutcomes& outcomes, Present* present);
  IndexBatch MakeBatch(const Present& present);
  // All of the object's chunk records, as they should be.
  void AddAllChunks(StoredObject& object, IndexBatch* batch);
  void AddDepartures(IndexBatch* batch);
  void AddPresent(const Present& present, IndexBatch* batch);
  Status Commit(const IndexBatch& batch);
  // Between two passes. What is stale goes with it, before it could be taken for what is new.
  Status CommitApart(IndexBatch batch);
  void Settle(const Present& present, const IndexBatch& batch);
  void Undo(const Present& present);
  // Not durable, so its place can go at once.
  void DropPresent(const PresentBlock& each);
  void NoteDirty(const std::shared_ptr<StoredObject>& object, uint64_t chunk);
  void NoteDeparture(Departure departure);
  // Records of a pinned object outlive its blocks: they are no longer to say that its file is lent.
  void NoteReplaced();
  // Nothing of the object is to be committed or freed any more.
  void Purge(const StoredObject* object);
  Status MoveFile(const StoreKey& from, const StoreKey& to);

  StoreCore& core_;
  Evictor evictor_;
  PlaceFreer places_;
  std::vector<Departure> departures_;  // records still to be removed
  std::vector<std::pair<std::shared_ptr<StoredObject>, uint64_t>> dirty_;  // chunks to be recorded
  std::vector<std::shared_ptr<StoredObject>> metas_;
  std::vector<std::shared_ptr<StoredObject>> new_objects_;  // whose own record is in this batch
  // Objects whose file went although the commit failed; erased before anything new under their key.
  std::vector<StoreKey> stale_keys_;
  bool marks_are_stale_ = false;  // dirty_ has chunks that the index takes for lent
  bool refused_ = false;          // the last commit
};

}  // namespace dartfs::core
