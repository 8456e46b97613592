#include "core/store/commit_round.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>
#include <utility>

#include "core/store/file_syncs.h"

namespace dartfs::core {
namespace {

constexpr Duration kSyncDeadline = std::chrono::seconds(30);
constexpr size_t kSyncsAtOnce = 128;  // each has its file open
// Evicted beyond what is needed at once, as each eviction costs a commit.
constexpr uint64_t kMaxExtraBytes = uint64_t{64} << 20;
constexpr uint64_t kExtraFraction = 32;

}  // namespace

Status CommitRound::Run(RoundWork work) {
  const uint64_t want = core_.space.WantNumber();
  core_.MeasureDisk();
  const size_t taken = work.present.size();
  TakeIn(&work);
  const auto committed = Pass(std::move(work.present));
  core_.counters.pending_blocks -= taken;  // durable now, or dropped
  Status status;
  if (!committed) {
    status = committed.error();
  } else if (*committed && core_.space.Shortage() > 0) {
    // What has just become durable may be evicted too.
    const auto second = Pass({});
    if (!second) status = second.error();
  }
  places_.FreeWaiting();
  NoteReplaced();
  core_.space.GiveUp(want);
  return status;
}

void CommitRound::TakeIn(RoundWork* work) {
  for (auto& departure : work->departures) NoteDeparture(std::move(departure));
  for (auto& [object, chunk] : work->uses) {
    if (!object->retired()) dirty_.emplace_back(std::move(object), chunk);
  }
  for (auto& object : work->metas) {
    if (!object->retired()) metas_.push_back(std::move(object));
  }
  for (const StoreKey& key : work->empties) places_.NoteEmpty(key);
}

Result<bool> CommitRound::Pass(Present present) {
  Evict();
  if (core_.index->damaged()) return Abandon(present);
  SyncFiles(&present);
  const IndexBatch batch = MakeBatch(present);
  const Status status = batch.empty() ? Status() : Commit(batch);
  refused_ = !status;
  if (core_.index->damaged()) return Abandon(present);
  if (!status) {
    Undo(present);
    return status.error();
  }
  Settle(present, batch);
  places_.Free(std::exchange(departures_, {}));
  return !batch.empty();
}

Error CommitRound::Abandon(const Present& present) {
  Error error = MakeError(Code::kCorrupt, core_.index->DamageReason());
  core_.bypass.EnterForGood(error.context);
  Undo(present);
  dirty_.clear();
  marks_are_stale_ = false;
  metas_.clear();
  stale_keys_.clear();
  core_.names.Clear();
  // Nothing is believed of the records that a checksum does not confirm: the places can go.
  places_.Free(std::exchange(departures_, {}));
  return error;
}

void CommitRound::Evict() {
  uint64_t leaving = 0;
  for (const auto& departure : departures_) {
    for (const uint64_t block : departure.blocks) leaving += departure.object->StoredBytes(block);
  }
  const Pressure pressure = core_.space.CurrentPressure();
  const uint64_t shortage = pressure.to_free;
  if (shortage <= leaving) return;
  // As long as those that were taken can't leave, more of them would not either.
  if ((refused_ && leaving > 0) || places_.starved()) return;
  const uint64_t extra = std::min(core_.space.limit() / kExtraFraction, kMaxExtraBytes);
  for (auto& departure : evictor_.Take(shortage - leaving + extra, pressure)) {
    NoteDeparture(std::move(departure));
  }
}

void CommitRound::NoteDeparture(Departure departure) {
  if (departure.object->retired()) {
    for (const uint64_t block : departure.blocks) {
      core_.space.Release(departure.object->StoredBytes(block));
    }
    return;
  }
  if (departure.recorded) {
    for (const uint64_t block : departure.blocks) {
      NoteDirty(departure.object, core_.geometry.ChunkOf(block));
    }
  }
  departures_.push_back(std::move(departure));
}

void CommitRound::NoteReplaced() {
  for (const auto& object : places_.TakeReplaced()) {
    if (object->retired() || !object->is_pinned()) continue;
    marks_are_stale_ = true;
    const uint64_t chunks = core_.geometry.ChunkCount(object->size());
    for (uint64_t chunk = 0; chunk < chunks; ++chunk) NoteDirty(object, chunk);
  }
}

void CommitRound::NoteDirty(const std::shared_ptr<StoredObject>& object, uint64_t chunk) {
  dirty_.emplace_back(object, chunk);
}

void CommitRound::SyncFiles(Present* present) {
  std::vector<std::shared_ptr<StoredObject>> objects;
  std::unordered_set<const StoredObject*> seen;
  for (const auto& each : *present) {
    if (seen.insert(each.object.get()).second) objects.push_back(each.object);
  }
  DropUnsynced(SyncObjects(objects), present);
}

CommitRound::SyncOutcomes CommitRound::SyncObjects(
    std::span<const std::shared_ptr<StoredObject>> objects) {
  SyncOutcomes outcomes;
  const auto end = std::chrono::steady_clock::now() + kSyncDeadline;
  for (size_t done = 0; done < objects.size(); done += kSyncsAtOnce) {
    const size_t count = std::min(kSyncsAtOnce, objects.size() - done);
    SyncSome(objects.subspan(done, count), end - std::chrono::steady_clock::now(), &outcomes);
  }
  return outcomes;
}

void CommitRound::SyncSome(std::span<const std::shared_ptr<StoredObject>> objects,
                           Duration deadline, SyncOutcomes* outcomes) {
  std::vector<const StoredObject*> opened;
  std::vector<std::shared_ptr<ObjectFile>> files;
  for (const auto& object : objects) {
    auto file = deadline > Duration::zero()
                    ? core_.files.ForRead(object)
                    : MakeError(Code::kDeadlineExceeded, "the disk is too slow to sync in time");
    if (file) {
      opened.push_back(object.get());
      files.push_back(*std::move(file));
    } else {
      (*outcomes)[object.get()] = std::move(file).error();
    }
  }
  const auto statuses = SyncAll(core_.io, files, deadline);
  for (size_t i = 0; i < statuses.size(); ++i) (*outcomes)[opened[i]] = statuses[i];
}

void CommitRound::DropUnsynced(const SyncOutcomes& outcomes, Present* present) {
  std::erase_if(*present, [&](const PresentBlock& each) {
    const Status& status = outcomes.at(each.object.get());
    if (status) return false;
    if (each.object->retired()) return true;
    core_.counters.write_errors.fetch_add(1, std::memory_order_relaxed);
    if (status.error().code != Code::kNotFound) {
      core_.bypass.Enter(status.error().ToString(), core_.clock.Now());
    }
    DropPresent(each);
    return true;
  });
}

void CommitRound::DropPresent(const PresentBlock& each) {
  if (each.object->Drop(each.block, each.generation).empty()) return;
  --core_.counters.blocks;
  std::vector<Departure> departures;
  departures.push_back({each.object, {each.block}, false, false});
  places_.Free(std::move(departures));
}

IndexBatch CommitRound::MakeBatch(const Present& present) {
  IndexBatch batch;
  batch.erased_objects = stale_keys_;
  // First those that leave: a block that left and came back ends as recorded.
  AddDepartures(&batch);
  AddPresent(present, &batch);
  std::unordered_set<const StoredObject*> seen;
  for (const auto& departure : departures_) {
    const auto& object = departure.object;
    if (!departure.recorded || !seen.insert(object.get()).second) continue;
    if (object->object_recorded() && !object->HasRecorded()) {
      batch.erased_objects.push_back(object->key());
    }
  }
  for (const auto& object : metas_) {
    if (object->object_recorded() && object->HasRecorded()) {
      batch.objects.emplace_back(object->key(), object->facts()->meta);
    }
  }
  std::sort(dirty_.begin(), dirty_.end());
  dirty_.erase(std::unique(dirty_.begin(), dirty_.end()), dirty_.end());
  for (const auto& [object, chunk] : dirty_) {
    batch.chunks.emplace_back(ChunkKey{object->key(), static_cast<uint32_t>(chunk)},
                              object->Snapshot(chunk));
  }
  if (!core_.names.empty()) batch.names = core_.names.Take();
  return batch;
}

void CommitRound::AddDepartures(IndexBatch* batch) {
  for (const auto& departure : departures_) {
    if (!departure.recorded) continue;
    for (const uint64_t block : departure.blocks) {
      batch->sums.push_back({departure.object->key(), block, {}});
    }
  }
}

void CommitRound::AddPresent(const Present& present, IndexBatch* batch) {
  for (const auto& each : present) {
    const GranuleSums sums = each.object->MarkRecorded(each.block, each.generation);
    if (sums == nullptr) continue;  // dropped since
    const StoreKey key = each.object->key();
    if (!each.object->object_recorded()) {
      batch->objects.emplace_back(key, each.object->facts()->meta);
      each.object->set_object_recorded(true);
      new_objects_.push_back(each.object);
    }
    batch->sums.push_back({key, each.block, *sums});
    NoteDirty(each.object, core_.geometry.ChunkOf(each.block));
  }
}

Status CommitRound::Commit(const IndexBatch& batch) {
  const bool known_damage = core_.index->damaged();
  Status status = core_.index->Commit(batch);
  if (status || known_damage) return status;
  core_.counters.write_errors.fetch_add(1, std::memory_order_relaxed);
  if (core_.index->damaged()) {
    core_.bypass.EnterForGood(core_.index->DamageReason());
  } else {
    core_.bypass.Enter(status.error().ToString(), core_.clock.Now());
  }
  return status;
}

void CommitRound::Settle(const Present& present, const IndexBatch& batch) {
  stale_keys_.clear();
  dirty_.clear();
  marks_are_stale_ = false;
  metas_.clear();
  new_objects_.clear();
  if (!batch.names.empty()) core_.names.Committed();
  for (const auto& departure : departures_) {
    if (departure.object->object_recorded() && !departure.object->HasRecorded()) {
      departure.object->set_object_recorded(false);
    }
  }
  for (const auto& each : present) {
    each.object->ReleaseSums(each.block, each.generation);
    core_.bypass.NoteSuccess(each.bypass_number);
  }
}

// The records are as before: those of new blocks are not there, those of leaving ones still are.
void CommitRound::Undo(const Present& present) {
  for (const auto& each : present) DropPresent(each);
  for (const auto& object : new_objects_) object->set_object_recorded(false);
  new_objects_.clear();
  core_.names.Failed();
}

void CommitRound::Purge(const StoredObject* object) {
  std::erase_if(dirty_, [&](const auto& entry) { return entry.first.get() == object; });
  std::erase_if(metas_, [&](const auto& entry) { return entry.get() == object; });
  std::erase_if(departures_, [&](const Departure& departure) {
    if (departure.object.get() != object) return false;
    for (const uint64_t block : departure.blocks) {
      core_.space.Release(departure.object->StoredBytes(block));
    }
    return true;
  });
  places_.Purge(object);
}

Status CommitRound::DropObject(const std::shared_ptr<StoredObject>& object) {
  const StoreKey key = object->key();
  if (!core_.table.Remove(object)) return {};
  uint64_t bytes = 0;
  for (const auto& dropped : object->Retire()) {
    bytes += object->StoredBytes(dropped.block);
    --core_.counters.blocks;
  }
  Purge(object.get());
  if (object->SetPinned(false)) core_.pins.Give(core_.geometry.StoredBytesOfAll(object->size()));
  IndexBatch batch;
  batch.erased_objects.push_back(key);
  const Status status = CommitApart(std::move(batch));
  if (!status) stale_keys_.push_back(key);
  places_.UnlinkAndLeave(key);
  core_.ReleaseUnlinked(object->lent_file(), bytes);
  return status;
}

std::vector<Status> CommitRound::MarkLent(std::span<const std::shared_ptr<StoredObject>> objects) {
  std::vector<std::shared_ptr<StoredObject>> to_mark;
  for (const auto& object : objects) {
    if (object->is_lent_durably()) continue;
    if (std::find(to_mark.begin(), to_mark.end(), object) == to_mark.end()) {
      to_mark.push_back(object);
    }
  }
  SyncOutcomes outcomes = SyncObjects(to_mark);
  std::erase_if(to_mark, [&](const std::shared_ptr<StoredObject>& object) {
    Status& outcome = outcomes.at(object.get());
    if (!outcome) {
      core_.counters.write_errors.fetch_add(1, std::memory_order_relaxed);
    } else if (!object->MarkLent(core_.MakeLentFile(*object))) {
      outcome = MakeError(Code::kBusy, "not all of the object is there and checked");
    }
    return !outcome.has_value();
  });
  IndexBatch batch;
  for (const auto& object : to_mark) AddAllChunks(*object, &batch);
  const Status committed = batch.empty() ? Status() : CommitApart(std::move(batch));
  for (const auto& object : to_mark) {
    object->SettleLent(committed.has_value());
    outcomes.at(object.get()) = committed;
  }
  std::vector<Status> statuses;
  for (const auto& object : objects) {
    const auto found = outcomes.find(object.get());
    statuses.push_back(found == outcomes.end() ? Status() : found->second);
  }
  return statuses;
}

void CommitRound::AddAllChunks(StoredObject& object, IndexBatch* batch) {
  const uint64_t chunks = core_.geometry.ChunkCount(object.size());
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const ChunkRecord record = object.Snapshot(chunk);
    // One record is enough of an object without blocks.
    if (record.blocks == 0 && chunk > 0) continue;
    batch->chunks.emplace_back(ChunkKey{object.key(), static_cast<uint32_t>(chunk)}, record);
  }
}

Status CommitRound::CommitApart(IndexBatch batch) {
  batch.erased_objects.insert(batch.erased_objects.end(), stale_keys_.begin(), stale_keys_.end());
  Status status = Commit(batch);
  if (status) stale_keys_.clear();
  return status;
}

Status CommitRound::SetPinned(const std::shared_ptr<StoredObject>& object, bool pinned) {
  if (object->retired()) return MakeError(Code::kStale, "the object was dropped");
  if (object->is_pinned() == pinned) return {};
  const uint64_t bytes = core_.geometry.StoredBytesOfAll(object->size());
  if (pinned && !core_.pins.TryTake(bytes)) {
    return MakeError(Code::kTooLarge, "pinned objects would take more than 3/4 of the cache");
  }
  object->SetPinned(pinned);
  IndexBatch batch;
  AddAllChunks(*object, &batch);
  const Status status = CommitApart(std::move(batch));
  if (!status) object->SetPinned(!pinned);
  if (pinned != status.has_value()) core_.pins.Give(bytes);
  if (!object->is_pinned() && object->HoldsOnly({})) places_.NoteEmpty(object->key());
  return status;
}

Result<uint64_t> CommitRound::EvictObject(const std::shared_ptr<StoredObject>& object) {
  if (object->retired()) return uint64_t{0};
  Departure departure = core_.MakeDeparture(object, object->TakeAll());
  uint64_t bytes = 0;
  for (const uint64_t block : departure.blocks) bytes += object->StoredBytes(block);
  if (bytes == 0) return bytes;
  NoteDeparture(std::move(departure));
  TRY(Pass({}));
  return bytes;
}

Status CommitRound::Rekey(const std::shared_ptr<StoredObject>& object, ObjectFacts facts) {
  const StoreKey from = object->key();
  const StoreKey to = facts.key;
  if (object->retired()) return MakeError(Code::kStale, "object " + from.ToHex() + " was dropped");
  if (from == to) {
    object->SetFacts(std::move(facts));
    metas_.push_back(object);
    return Run({});
  }
  if (auto other = core_.table.Find(to)) TRY(DropObject(other));
  if (!core_.table.ClaimName(to)) {
    return MakeError(Code::kBusy, "object " + to.ToHex() + " is in use");
  }
  object->SetOtherKey(to);
  Status status = MoveFile(from, to);
  if (status && (object->object_recorded() || object->is_pinned())) {
    IndexBatch batch;
    batch.rekeys.push_back({from, to});
    if (object->object_recorded()) batch.objects.emplace_back(to, facts.meta);
    status = Commit(batch);
  }
  if (!status) {
    places_.UnlinkAndLeave(to);
    object->SetOtherKey(std::nullopt);
    return status;
  }
  std::erase(stale_keys_, to);
  core_.table.Move(object, std::move(facts));
  places_.UnlinkAndLeave(from);
  object->SetOtherKey(std::nullopt);
  return {};
}

// A second name first: whichever record is durable finds its file.
Status CommitRound::MoveFile(const StoreKey& from, const StoreKey& to) {
  const std::string old_path = core_.layout->ObjectPath(from);
  const std::string new_path = core_.layout->ObjectPath(to);
  const std::string new_dir = new_path.substr(0, new_path.rfind('/'));
  TRY(RemoveFile(new_path));
  if (::access(old_path.c_str(), F_OK) != 0) return {};  // nothing written so far
  TRY(MakeDirectory(new_dir));
  if (::link(old_path.c_str(), new_path.c_str()) != 0) return ErrnoError(errno, "link " + new_path);
  return SyncDirectory(new_dir);
}

}  // namespace dartfs::core
