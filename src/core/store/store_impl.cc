#include "core/store/store_impl.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "core/base/log.h"
#include "core/base/text.h"

namespace dartfs::core {
namespace {

constexpr auto kLeavingPatience = std::chrono::seconds(10);
constexpr auto kStopPatience = std::chrono::seconds(15);
constexpr size_t kUntrimmedObjects = 16'384;

void WarnOfSmallDisk(const Layout& layout, uint64_t limit_bytes) {
  const auto free = layout.Free();
  if (!free || free->total_bytes == 0 || free->total_bytes >= limit_bytes) return;
  LOG_WARN("the file system of the cache {} has {} bytes, less than the {} of --cache-size",
           EscapeForeign(layout.dir()), free->total_bytes, limit_bytes);
}

// Whether both name the same bytes. Everything else of a meta may change.
bool SameObject(const ObjectMeta& a, const ObjectMeta& b) {
  return a.kind == b.kind && a.id == b.id && a.version == b.version && a.size == b.size &&
         a.volatile_version == b.volatile_version;
}

bool SameRecord(const ObjectMeta& a, const ObjectMeta& b) {
  return SameObject(a, b) && a.etag == b.etag && a.last_modified == b.last_modified &&
         a.content_type == b.content_type && a.verified == b.verified;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::Open(StoreOptions options, DiskIo& io, Scheduler& scheduler) {
  TRY_ASSIGN(auto layout, Layout::Open(options.dir, options.grid));
  TRY(CheckHoles(layout->objects_dir()));
  WarnOfSmallDisk(*layout, options.limit_bytes);
  auto core =
      std::make_shared<StoreCore>(std::move(options), io, scheduler.clock(), std::move(layout));
  IndexOptions index_options;
  index_options.dir = core->layout->index_dir();
  index_options.map_bytes = core->options.index_map_bytes;
  Index::Chunks chunks;
  TRY_ASSIGN(core->index, Index::Open(index_options, &chunks));
  return std::unique_ptr<Store>(std::make_unique<StoreImpl>(std::move(core), chunks));
}

StoreImpl::StoreImpl(std::shared_ptr<StoreCore> core, const Index::Chunks& chunks)
    : core_((Load(*core, chunks), std::move(core))),
      committer_(std::make_shared<Committer>(core_)),
      writer_(core_, committer_),
      reader_(core_, committer_),
      verifier_(core_, committer_),
      orphans_(core_, !core_->index->was_clean()) {
  DropBrokenLent(chunks);
}

void StoreImpl::Load(StoreCore& core, const Index::Chunks& chunks) {
  std::shared_ptr<StoredObject> object;
  core.table.Reserve(chunks.size());
  for (const auto& [key, record] : chunks) {
    // Records of one object follow one another.
    if (object == nullptr || object->key() != key.object) {
      if (!core.geometry.IsStorableSize(record.object_size)) continue;
      auto added = core.table.FindOrAdd(key.object, record.object_size, {});
      if (!added) continue;
      object = *std::move(added);
    }
    if (record.object_size != object->size()) continue;
    if ((record.flags & ChunkRecord::kLent) != 0 && object->lent_file() == nullptr) {
      object->LoadLent(core.MakeLentFile(*object));
    }
    if ((record.flags & ChunkRecord::kPinned) != 0 && object->SetPinned(true)) {
      core.pins.Take(core.geometry.StoredBytesOfAll(object->size()));
    }
    const uint64_t blocks = object->Load(key.chunk, record);
    core.space.Load(core.geometry.StoredBytesOf(object->size(), key.chunk, blocks));
    core.counters.blocks += static_cast<uint64_t>(std::popcount(blocks));
    core.use_clock.NotBefore(record.used_ms);
  }
}

void StoreImpl::DropBrokenLent(const Index::Chunks& chunks) {
  const StoreKey* last = nullptr;  // records of one object follow one another
  for (const auto& [key, record] : chunks) {
    if ((record.flags & ChunkRecord::kLent) == 0) continue;
    if (last != nullptr && *last == key.object) continue;
    last = &key.object;
    const auto object = core_->table.Find(key.object);
    if (object == nullptr || object->lent_file() == nullptr || object->IsComplete()) continue;
    // Without any block, as one that is pinned may be, its file and its mark have to go all the
    // same.
    Departure departure;
    departure.object = object;
    departure.recorded = true;
    for (const auto& dropped : object->DropAll()) departure.blocks.push_back(dropped.block);
    core_->counters.blocks -= departure.blocks.size();
    committer_->NoteDeparture(std::move(departure));
  }
}

Result<std::shared_ptr<StoredObject>> StoreImpl::OpenObject(const StoreKey& key,
                                                            const ObjectMeta& meta) {
  const OpInside inside(core_->gate);
  if (!inside) return MakeError(Code::kCancelled, "the store has stopped");
  if (meta.size != 0 && !core_->geometry.IsStorableSize(meta.size)) {
    return MakeError(Code::kTooLarge, std::to_string(meta.size) + " bytes can't be an object's");
  }
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    TRY_ASSIGN(auto object, core_->table.FindOrAdd(key, meta.size, kLeavingPatience));
    const bool first = object->facts() == nullptr;
    if (Adopt(object, key, meta)) {
      if (first) TrimIdle(key);
      return object;
    }
    // The index may refuse; the object has left memory all the same.
    const Status dropped = committer_->Drop(object);
    if (!dropped) LOG_DEBUG("{}", dropped.error().ToString());
  }
  return MakeError(Code::kBusy, "object " + key.ToHex() + " keeps changing");
}

void StoreImpl::TrimIdle(const StoreKey& opened) {
  StoreKey oldest;
  {
    MutexLock lock(opened_mu_);
    opened_.push_back(opened);
    if (opened_.size() <= kUntrimmedObjects) return;
    oldest = opened_.front();
    opened_.pop_front();
  }
  const auto object = core_->table.Find(oldest);
  if (object == nullptr || core_->table.TrimIfIdle(object)) return;
  MutexLock lock(opened_mu_);
  opened_.push_back(oldest);
}

bool StoreImpl::Adopt(const std::shared_ptr<StoredObject>& object, const StoreKey& key,
                      const ObjectMeta& meta) {
  if (object->size() != meta.size || object->retired()) return false;
  ObjectMeta adopted = meta;
  const ObjectFacts* const known = object->facts();
  if (known != nullptr) {
    if (!SameObject(known->meta, meta)) return false;
    adopted.verified |= known->meta.verified;
    if (SameRecord(known->meta, adopted)) return true;
  } else if (object->object_recorded()) {
    const auto record = core_->index->GetObject(key);
    if (!record || !SameObject(*record, meta)) return false;
    adopted.verified |= record->verified;
    if (SameRecord(*record, adopted)) {
      object->SetFacts({key, std::move(adopted)});
      return true;
    }
  }
  const bool is_recorded = object->object_recorded();
  object->SetFacts({key, std::move(adopted)});
  if (is_recorded) {
    committer_->NoteMeta(object);
  } else {
    committer_->NoteEmpty(key);
  }
  return true;
}

std::optional<ObjectMeta> StoreImpl::FindObject(const StoreKey& key) {
  const OpInside inside(core_->gate);
  if (!inside) return std::nullopt;
  if (const auto object = core_->table.Find(key)) {
    if (const ObjectFacts* const facts = object->facts()) return facts->meta;
  }
  return core_->index->GetObject(key);
}

BlockPin StoreImpl::Pin(const std::shared_ptr<StoredObject>& object, uint64_t block) {
  UseNews news;
  if (!object->Pin(block, core_->use_clock.NowMs(), &news)) return {};
  const uint64_t chunk = core_->geometry.ChunkOf(block);
  if (news.to_index) committer_->NoteUse(object, chunk);
  if (news.to_count) core_->frequencies.Add(FrequencyHash(object->key(), chunk));
  return {object, block};
}

uint64_t StoreImpl::PresentBlocks(const StoredObject& object) { return object.PresentBlocks(); }

std::vector<bool> StoreImpl::PresentMap(const StoredObject& object) { return object.PresentMap(); }

bool StoreImpl::TryRead(const BlockPin& pin, uint64_t offset, std::span<std::byte> into) {
  return reader_.TryRead(pin, offset, into);
}

std::optional<FileBytes> StoreImpl::FindCached(const BlockPin& pin, uint64_t offset,
                                               uint64_t length) {
  return reader_.FindCached(pin, offset, length);
}

void StoreImpl::Read(BlockPin pin, uint64_t offset, std::span<std::byte> into, IoDone done) {
  reader_.Read(std::move(pin), offset, into, std::move(done));
}

void StoreImpl::Write(std::shared_ptr<StoredObject> object, uint64_t block,
                      std::shared_ptr<const AlignedBuffer> bytes, IoDone done,
                      WriteOptions options) {
  writer_.Write(std::move(object), block, std::move(bytes), std::move(done), options);
}

Status StoreImpl::DropObject(const std::shared_ptr<StoredObject>& object) {
  return committer_->Drop(object);
}

Status StoreImpl::Rekey(const std::shared_ptr<StoredObject>& object, const StoreKey& key,
                        const ObjectMeta& meta) {
  if (meta.size != object->size()) {
    return MakeError(Code::kInvalidArgument, "an object keeps its size when it gets another key");
  }
  return committer_->Rekey(object, key, meta);
}

bool StoreImpl::IsNeverLent(const StoredObject& object) const {
  return object.is_volatile() || object.size() < core_->options.least_lent_bytes;
}

bool StoreImpl::DiskRefuses() {
  return core_->bypass.active() || writer_.OldestWriteAge() > core_->options.lend_patience;
}

LendState StoreImpl::Lendable(const StoredObject& object) {
  if (IsNeverLent(object)) return LendState::kNotPossible;
  if (!object.IsComplete()) return LendState::kIncomplete;
  // The first loan of a file waits for a sync and a commit.
  if (!object.is_lent_durably() && DiskRefuses()) return LendState::kDiskRefuses;
  if (!object.IsVerified()) return LendState::kUnverified;
  const auto lent = object.lent_file();
  if (lent != nullptr && lent->on_loan()) return LendState::kReady;
  const bool fits = core_->lent.Fits(core_->geometry.StoredBytesOfAll(object.size()));
  return fits ? LendState::kReady : LendState::kTooMuchLent;
}

Result<FileLoan> StoreImpl::Lend(const std::shared_ptr<StoredObject>& object) {
  if (IsNeverLent(*object)) {
    return MakeError(Code::kUnsupported,
                     "an object without a version, or a small one, is not lent");
  }
  const OpInside inside(core_->gate);
  if (!inside) return MakeError(Code::kCancelled, "the store has stopped");
  if (Lendable(*object) != LendState::kReady) {
    return MakeError(Code::kBusy,
                     "not complete and checked, too much is lent, or the disk refuses");
  }
  if (!object->is_lent_durably()) TRY(committer_->MarkLent(object));
  // Opened before it is lent: should it be replaced in between, there is nothing to lend.
  const uint64_t number = object->file_number();
  TRY_ASSIGN(const auto file, core_->files.ForRead(object));
  UniqueFd fd = file->Reopen(O_RDONLY);
  if (!fd.valid()) return ErrnoError(errno, "cannot open a file of the cache to lend it");
  bool too_much = false;
  auto lent = object->BeginLoan(number, &too_much);
  if (lent == nullptr) {
    return MakeError(Code::kBusy, too_much ? "too much is lent" : "the object has just changed");
  }
  TouchUse(object);
  std::shared_ptr<const std::atomic<bool>> broken(lent, &lent->broken());
  return FileLoan(
      std::move(fd), [core = core_, lent = std::move(lent)] { lent->EndLoan(); },
      std::move(broken));
}

Result<VerifyReport> StoreImpl::Verify(const std::shared_ptr<StoredObject>& object,
                                       const std::function<bool()>& go_on) {
  return verifier_.Verify(object, go_on);
}

void StoreImpl::TouchUse(const std::shared_ptr<StoredObject>& object) {
  for (const uint32_t chunk : object->TouchAll(core_->use_clock.NowMs())) {
    committer_->NoteUse(object, chunk);
  }
}

Result<uint64_t> StoreImpl::Evict(const std::shared_ptr<StoredObject>& object) {
  return committer_->Evict(object);
}

Status StoreImpl::SetPinned(const std::shared_ptr<StoredObject>& object, bool pinned) {
  if (object->is_volatile()) {
    return MakeError(Code::kUnsupported, "an object without a version can't be pinned");
  }
  return committer_->SetPinned(object, pinned);
}

bool StoreImpl::IsPinned(const StoredObject& object) { return object.is_pinned(); }

void StoreImpl::SetBypass(bool on) { core_->bypass.Hold(on); }

void StoreImpl::SetPlacement(const std::shared_ptr<StoredObject>& object, uint64_t chunk,
                             Placement placement) {
  // The grid's chunk is one of ours, or several.
  const uint64_t ours =
      core_->geometry.grid().BlocksPerChunk() / core_->geometry.blocks_per_chunk();
  const uint64_t end = std::min((chunk + 1) * ours, core_->geometry.ChunkCount(object->size()));
  for (uint64_t each = chunk * ours; each < end; ++each) {
    if (object->SetPlacement(each, placement)) committer_->NoteUse(object, each);
  }
}

void StoreImpl::PutName(NameTable table, std::string_view name, std::string_view value) {
  if (core_->index->damaged()) return;
  if (core_->names.Put(table, name, std::string(value))) return committer_->NoteNames();
  // An older value must not show instead.
  DeleteName(table, name);
}

std::optional<std::string> StoreImpl::GetName(NameTable table, std::string_view name) {
  // What was put since can't be kept, so nothing older must show instead.
  if (core_->index->damaged()) return std::nullopt;
  auto found = core_->names.Get(table, name);
  if (found.known) return std::move(found.value);
  const OpInside inside(core_->gate);
  if (!inside) return std::nullopt;
  return core_->index->GetName(table, name);
}

void StoreImpl::DeleteName(NameTable table, std::string_view name) {
  if (core_->index->damaged()) return;
  if (core_->names.Put(table, name, std::nullopt)) committer_->NoteNames();
}

Status StoreImpl::Flush() { return committer_->Flush(); }

StoreStats StoreImpl::Stats() {
  const auto& counters = core_->counters;
  StoreStats stats;
  stats.limit_bytes = core_->space.limit();
  stats.used_bytes = core_->space.used();
  stats.blocks = counters.blocks;
  stats.objects = core_->table.size();
  stats.pending_blocks = counters.pending_blocks;
  stats.owned_bytes = core_->table.usage().of(Placement::kOwned);
  stats.borrowed_bytes = core_->table.usage().of(Placement::kBorrowed);
  stats.owned_blocks = core_->table.usage().blocks_of(Placement::kOwned);
  stats.borrowed_blocks = core_->table.usage().blocks_of(Placement::kBorrowed);
  stats.owned_limit_bytes = static_cast<uint64_t>(static_cast<double>(core_->space.limit()) *
                                                  core_->options.owned_fraction);
  stats.lent_bytes = core_->lent.taken();
  stats.pinned_bytes = core_->pins.taken();
  stats.not_admitted_blocks = counters.not_admitted_blocks;
  stats.evicted_blocks = counters.evicted_blocks;
  stats.corrupt_granules = counters.corrupt_granules;
  stats.write_errors = counters.write_errors;
  stats.corrupt_records = counters.corrupt_records + core_->index->corrupt_records();
  stats.commit_seq = core_->index->commit_seq();
  stats.bypass = core_->bypass.active();
  stats.bypass_reason = core_->bypass.reason();
  stats.disk_io = core_->io.Describe();
  return stats;
}

void StoreImpl::Stop() {
  MutexLock lock(stop_mu_);
  if (std::exchange(stopped_, true)) return;
  writer_.Stop();
  orphans_.Stop();
  const bool all_left = core_->gate.CloseAndWait(kStopPatience);
  const Status flushed = committer_->Stop();
  if (!flushed) LOG_WARN("cache: the last commit failed: {}", flushed.error().ToString());
  if (all_left) {
    const Status closed = core_->index->Close();
    if (!closed) LOG_WARN("cache: {}", closed.error().ToString());
  } else {
    LOG_WARN("cache: its disk still has not answered; the next start checks the index");
  }
  core_->layout->Unlock();
}

BlockPin::BlockPin(std::shared_ptr<StoredObject> object, uint64_t block)
    : object_(std::move(object)), block_(block) {}

BlockPin::BlockPin(BlockPin&& other) noexcept
    : object_(std::move(other.object_)), block_(other.block_) {}

BlockPin& BlockPin::operator=(BlockPin&& other) noexcept {
  if (this == &other) return *this;
  if (object_ != nullptr) object_->Unpin(block_);
  object_ = std::move(other.object_);
  block_ = other.block_;
  return *this;
}

BlockPin::~BlockPin() {
  if (object_ != nullptr) object_->Unpin(block_);
}

const StoreKey& KeyOf(const StoredObject& object) { return object.facts()->key; }

const ObjectMeta& MetaOf(const StoredObject& object) { return object.facts()->meta; }

}  // namespace dartfs::core
