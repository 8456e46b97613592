#include "core/store/stored_object.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace dartfs::core {
namespace {

// A use is news to the index when it falls into another of these than the last.
constexpr uint64_t kUseResolutionMs = 10 * 60 * 1000;

bool IsNews(uint64_t used_ms, uint64_t now_ms) {
  return used_ms / kUseResolutionMs != now_ms / kUseResolutionMs;
}

bool Counts(ChunkState& chunk, uint64_t now_ms) {
  constexpr uint64_t kMsPerSecond = 1000;
  const auto now_s = static_cast<uint32_t>(now_ms / kMsPerSecond);
  return std::exchange(chunk.counted_s, now_s) != now_s;
}

}  // namespace

StoredObject::~StoredObject() = default;

StoreKey StoredObject::key() const {
  const ObjectFacts* const known = facts();
  return known != nullptr ? known->key : first_key_;
}

std::optional<StoreKey> StoredObject::other_key() const {
  MutexLock lock(mu_);
  return other_key_;
}

void StoredObject::SetFacts(ObjectFacts facts) {
  MutexLock lock(mu_);
  kept_facts_.push_back(std::make_unique<const ObjectFacts>(std::move(facts)));
  facts_.store(kept_facts_.back().get(), std::memory_order_release);
}

void StoredObject::SetOtherKey(std::optional<StoreKey> key) {
  MutexLock lock(mu_);
  other_key_ = key;
}

uint64_t StoredObject::Load(uint32_t chunk, const ChunkRecord& record) {
  MutexLock lock(mu_);
  const uint64_t blocks = record.blocks & geometry_.LegalMask(size_, chunk);
  if (blocks == 0) return 0;
  set_owns_file();
  Chunk& entry = FindOrAdd(chunk);
  entry.present = blocks;
  entry.recorded = blocks;
  counts_.present += static_cast<uint64_t>(std::popcount(blocks));
  counts_.recorded += static_cast<uint64_t>(std::popcount(blocks));
  entry.used_ms = record.used_ms;
  entry.placement =
      record.placement == IndexOf(Placement::kBorrowed) ? Placement::kBorrowed : Placement::kOwned;
  usage_.Add(entry.placement, geometry_.StoredBytesOf(size_, chunk, blocks),
             static_cast<uint64_t>(std::popcount(blocks)));
  set_object_recorded(true);
  return blocks;
}

bool StoredObject::Pin(uint64_t block, uint64_t now_ms, UseNews* news) {
  MutexLock lock(mu_);
  Chunk* const chunk = Find(geometry_.ChunkOf(block));
  if (!PinLocked(chunk, block, now_ms)) return false;
  news->to_index = IsNews(chunk->used_ms, now_ms);
  news->to_count = Counts(*chunk, now_ms);
  chunk->used_ms = now_ms;
  return true;
}

bool StoredObject::PinUnused(uint64_t block, uint64_t now_ms) {
  MutexLock lock(mu_);
  return PinLocked(Find(geometry_.ChunkOf(block)), block, now_ms);
}

bool StoredObject::PinLocked(Chunk* chunk, uint64_t block, uint64_t now_ms) {
  if (now_ms < withheld_until_ms_) return false;
  if (chunk == nullptr || (chunk->present & geometry_.MaskOf(block)) == 0) return false;
  ++uses_[block].pins;
  return true;
}

bool StoredObject::CountUse(uint64_t block, uint64_t now_ms) {
  MutexLock lock(mu_);
  return Counts(FindOrAdd(geometry_.ChunkOf(block)), now_ms);
}

std::vector<uint32_t> StoredObject::TouchAll(uint64_t now_ms) {
  MutexLock lock(mu_);
  std::vector<uint32_t> news;
  for (Chunk& chunk : chunks_) {
    if (chunk.present == 0) continue;
    if (IsNews(chunk.used_ms, now_ms)) news.push_back(chunk.index);
    chunk.used_ms = now_ms;
  }
  return news;
}

void StoredObject::Unpin(uint64_t block) {
  MutexLock lock(mu_);
  const auto use = uses_.find(block);
  DARTFS_CHECK(use != uses_.end() && use->second.pins > 0);
  --use->second.pins;
  ForgetIfUnused(block);
}

void StoredObject::WithholdUntil(uint64_t time_ms) {
  MutexLock lock(mu_);
  withheld_until_ms_ = time_ms;
}

ReadView StoredObject::View(uint64_t block, GranuleRange granules) {
  MutexLock lock(mu_);
  ReadView view;
  const uint64_t mask = geometry_.MaskOf(block);
  Chunk* const chunk = Find(geometry_.ChunkOf(block));
  if (chunk == nullptr || (chunk->present & mask) == 0) return view;
  view.present = true;
  view.verified = (chunk->verified & mask) != 0;
  view.file = file_;
  file_used_ = true;
  const auto use = uses_.find(block);
  DARTFS_CHECK(use != uses_.end());  // pinned
  view.generation = use->second.generation;
  if (view.verified) return view;
  view.sums = use->second.sums;
  const auto& done = use->second.verified;
  view.verified = !done.empty();
  for (uint64_t i = 0; view.verified && i < granules.count; ++i) {
    view.verified = done[granules.first + i];
  }
  return view;
}

void StoredObject::KeepSums(uint64_t block, uint64_t generation, GranuleSums sums) {
  MutexLock lock(mu_);
  const auto use = uses_.find(block);
  if (use == uses_.end() || use->second.generation != generation) return;
  const Chunk* const chunk = Find(geometry_.ChunkOf(block));
  if ((chunk->present & ~chunk->verified & geometry_.MaskOf(block)) == 0) return;
  use->second.sums = std::move(sums);
}

void StoredObject::MarkVerified(uint64_t block, uint64_t generation, GranuleRange granules) {
  MutexLock lock(mu_);
  const auto at = uses_.find(block);
  if (at == uses_.end() || at->second.generation != generation) return;
  const uint64_t mask = geometry_.MaskOf(block);
  Chunk* const chunk = Find(geometry_.ChunkOf(block));
  if ((chunk->present & ~chunk->verified & mask) == 0) return;
  BlockUse& use = at->second;
  use.verified.resize(GranulesOf(block));
  for (uint64_t i = 0; i < granules.count; ++i) use.verified[granules.first + i] = true;
  if (std::find(use.verified.begin(), use.verified.end(), false) != use.verified.end()) return;
  chunk->verified |= mask;
  ++counts_.verified;
  use.verified.clear();
  // Checksums that are not durable yet are still needed.
  if (!use.pending) use.sums.reset();
  ForgetIfUnused(block);
}

uint64_t StoredObject::PresentBlocks() const {
  MutexLock lock(mu_);
  return counts_.present;
}

uint64_t StoredObject::PresentBytes() const {
  MutexLock lock(mu_);
  uint64_t bytes = 0;
  for (const Chunk& chunk : chunks_) {
    bytes += geometry_.StoredBytesOf(size_, chunk.index, chunk.present);
  }
  return bytes;
}

std::vector<bool> StoredObject::PresentMap() const {
  MutexLock lock(mu_);
  std::vector<bool> map(geometry_.grid().BlockCount(size_));
  for (const Chunk& chunk : chunks_) {
    for (unsigned bit = 0; bit < geometry_.blocks_per_chunk(); ++bit) {
      if ((chunk.present >> bit & 1) != 0) map[geometry_.BlockOf(chunk.index, bit)] = true;
    }
  }
  return map;
}

StoredObject::Claim StoredObject::ClaimForWrite(uint64_t block, uint64_t now_ms) {
  MutexLock lock(mu_);
  if (retired_) return Claim::kDropped;
  if (now_ms < withheld_until_ms_) return Claim::kWithheld;
  Chunk& chunk = FindOrAdd(geometry_.ChunkOf(block));
  const uint64_t mask = geometry_.MaskOf(block);
  if ((chunk.present & mask) != 0) return Claim::kPresent;
  if (lent_ != nullptr) return Claim::kWithheld;  // about to be unlinked
  if ((chunk.busy & mask) != 0) return Claim::kBusy;
  chunk.busy |= mask;
  return Claim::kClaimed;
}

std::optional<uint64_t> StoredObject::FinishWrite(uint64_t block, GranuleSums sums,
                                                  uint64_t now_ms) {
  MutexLock lock(mu_);
  Chunk& chunk = FindOrAdd(geometry_.ChunkOf(block));
  const uint64_t mask = geometry_.MaskOf(block);
  chunk.busy &= ~mask;
  if (retired_) return std::nullopt;
  chunk.present |= mask;
  ++counts_.present;
  chunk.used_ms = now_ms;
  usage_.Add(chunk.placement, StoredBytes(block), 1);
  BlockUse& use = uses_[block];
  use.generation = ++last_generation_;
  use.pending = !is_volatile();
  use.sums = std::move(sums);
  return use.generation;
}

void StoredObject::Unclaim(uint64_t block) {
  MutexLock lock(mu_);
  Chunk* const chunk = Find(geometry_.ChunkOf(block));
  if (chunk != nullptr) chunk->busy &= ~geometry_.MaskOf(block);
}

uint64_t StoredObject::ClaimAbsent(uint64_t chunk, uint64_t file_number) {
  MutexLock lock(mu_);
  if (retired_ || lent_ != nullptr || file_number != file_number_) return 0;
  Chunk& entry = FindOrAdd(chunk);
  const uint64_t absent = geometry_.LegalMask(size_, chunk) & ~entry.present & ~entry.busy;
  entry.busy |= absent;
  return absent;
}

bool StoredObject::HasRecorded() {
  MutexLock lock(mu_);
  return counts_.recorded != 0;
}

GranuleSums StoredObject::MarkRecorded(uint64_t block, uint64_t generation) {
  MutexLock lock(mu_);
  const auto use = uses_.find(block);
  if (use == uses_.end() || use->second.generation != generation) return nullptr;
  const uint64_t mask = geometry_.MaskOf(block);
  Chunk* const chunk = Find(geometry_.ChunkOf(block));
  if ((chunk->present & ~chunk->recorded & mask) == 0) return nullptr;
  chunk->recorded |= mask;
  ++counts_.recorded;
  return use->second.sums;
}

void StoredObject::ReleaseSums(uint64_t block, uint64_t generation) {
  MutexLock lock(mu_);
  const auto use = uses_.find(block);
  if (use == uses_.end() || use->second.generation != generation) return;
  use->second.pending = false;
  use->second.sums.reset();
  ForgetIfUnused(block);
}

ChunkRecord StoredObject::Snapshot(uint64_t chunk) {
  MutexLock lock(mu_);
  ChunkRecord record;
  record.object_size = size_;
  if (lent_ != nullptr) record.flags |= ChunkRecord::kLent;
  Chunk* const entry = Find(chunk);
  // Of a pinned object's records without blocks, the first chunk's is enough.
  const bool stays = chunk == 0 || (entry != nullptr && entry->recorded != 0);
  if (pinned_ && stays) record.flags |= ChunkRecord::kPinned;
  if (entry == nullptr) return record;
  entry->dirty = false;
  record.blocks = entry->recorded;
  record.used_ms = entry->used_ms;
  record.placement = static_cast<uint8_t>(entry->placement);
  return record;
}

bool StoredObject::MarkDirty(uint64_t chunk) {
  MutexLock lock(mu_);
  return !std::exchange(FindOrAdd(chunk).dirty, true);
}

std::vector<DroppedBlock> StoredObject::Drop(uint64_t block, uint64_t generation) {
  MutexLock lock(mu_);
  const auto use = uses_.find(block);
  if (use == uses_.end() || use->second.generation != generation) return {};
  Chunk* const chunk = Find(geometry_.ChunkOf(block));
  if ((chunk->present & geometry_.MaskOf(block)) == 0) return {};
  if (lent_ == nullptr) return {DropLocked(*chunk, block)};
  lent_->MarkBroken();
  return DropAllLocked();
}

std::vector<DroppedBlock> StoredObject::DropAll() {
  MutexLock lock(mu_);
  return DropAllLocked();
}

std::vector<DroppedBlock> StoredObject::Retire() {
  MutexLock lock(mu_);
  retired_ = true;
  if (lent_ != nullptr) lent_->MarkBroken();
  return DropAllLocked();
}

std::vector<DroppedBlock> StoredObject::DropAllLocked() {
  std::vector<DroppedBlock> dropped;
  for (Chunk& chunk : chunks_) {
    for (unsigned bit = 0; bit < geometry_.blocks_per_chunk(); ++bit) {
      if ((chunk.present >> bit & 1) == 0) continue;
      dropped.push_back(DropLocked(chunk, geometry_.BlockOf(chunk.index, bit)));
    }
  }
  return dropped;
}

StoredObject::Claim StoredObject::ClaimForPunch(uint64_t block) {
  MutexLock lock(mu_);
  if (retired_) return Claim::kDropped;
  Chunk& chunk = FindOrAdd(geometry_.ChunkOf(block));
  const uint64_t mask = geometry_.MaskOf(block);
  if ((chunk.present & mask) != 0) return Claim::kPresent;
  if (lent_ != nullptr || (chunk.busy & mask) != 0 || PinsOf(block) > 0) return Claim::kBusy;
  chunk.busy |= mask;
  return Claim::kClaimed;
}

bool StoredObject::HoldsOnly(const std::vector<uint64_t>& claimed) {
  MutexLock lock(mu_);
  if (pinned_) return false;
  uint64_t busy = 0;
  for (const Chunk& chunk : chunks_) {
    if (chunk.present != 0) return false;
    busy += static_cast<uint64_t>(std::popcount(chunk.busy));
  }
  return busy == claimed.size();
}

bool StoredObject::retired() {
  MutexLock lock(mu_);
  return retired_;
}

std::shared_ptr<ObjectFile> StoredObject::file() {
  MutexLock lock(mu_);
  file_used_ = true;
  return file_;
}

uint64_t StoredObject::file_number() const {
  MutexLock lock(mu_);
  return file_number_;
}

bool StoredObject::SetFile(std::shared_ptr<ObjectFile> file, uint64_t number) {
  MutexLock lock(mu_);
  if (number != file_number_) return false;
  file_.swap(file);  // the old one closes after the lock is released
  file_used_ = true;
  return true;
}

void StoredObject::CloseFile() {
  std::shared_ptr<ObjectFile> file;  // closed after the lock is released
  MutexLock lock(mu_);
  file.swap(file_);
  file_used_ = true;
}

bool StoredObject::TestAndClearFileUsed() {
  MutexLock lock(mu_);
  return std::exchange(file_used_, false);
}

void StoredObject::Trim() {
  std::shared_ptr<ObjectFile> file;  // closed after the lock is released
  MutexLock lock(mu_);
  file.swap(file_);
  std::vector<uint64_t> idle;
  for (const auto& [block, use] : uses_) {
    if (use.pins == 0 && !use.pending) idle.push_back(block);
  }
  for (const uint64_t block : idle) uses_.erase(block);
  const ObjectFacts* const known = facts();
  if (known == nullptr || known->meta.volatile_version || known->key != first_key_) return;
  facts_.store(nullptr, std::memory_order_release);
  kept_facts_.clear();
}

StoredObject::Chunk* StoredObject::Find(uint64_t chunk) {
  const auto at = std::lower_bound(chunks_.begin(), chunks_.end(), chunk,
                                   [](const Chunk& a, uint64_t index) { return a.index < index; });
  return at != chunks_.end() && at->index == chunk ? &*at : nullptr;
}

StoredObject::Chunk& StoredObject::FindOrAdd(uint64_t chunk) {
  const auto at = std::lower_bound(chunks_.begin(), chunks_.end(), chunk,
                                   [](const Chunk& a, uint64_t index) { return a.index < index; });
  if (at != chunks_.end() && at->index == chunk) return *at;
  Chunk fresh;
  fresh.index = static_cast<uint32_t>(chunk);
  return *chunks_.insert(at, fresh);
}

DroppedBlock StoredObject::DropLocked(Chunk& chunk, uint64_t block) {
  const uint64_t mask = geometry_.MaskOf(block);
  const DroppedBlock dropped = {block, (chunk.recorded & mask) != 0};
  usage_.Remove(chunk.placement, StoredBytes(block), 1);
  --counts_.present;
  counts_.recorded -= dropped.recorded ? 1 : 0;
  counts_.verified -= (chunk.verified & mask) != 0 ? 1 : 0;
  chunk.present &= ~mask;
  chunk.recorded &= ~mask;
  chunk.verified &= ~mask;
  const auto use = uses_.find(block);
  if (use == uses_.end()) return dropped;
  use->second.generation = ++last_generation_;
  use->second.pending = false;
  use->second.sums.reset();
  use->second.verified.clear();
  ForgetIfUnused(block);
  return dropped;
}

uint32_t StoredObject::PinsOf(uint64_t block) const {
  const auto use = uses_.find(block);
  return use == uses_.end() ? 0 : use->second.pins;
}

void StoredObject::ForgetIfUnused(uint64_t block) {
  const auto use = uses_.find(block);
  if (use == uses_.end()) return;
  const BlockUse& state = use->second;
  const bool needed = state.pins > 0 || state.pending;
  if (!needed && state.sums == nullptr && state.verified.empty()) uses_.erase(use);
}

uint64_t StoredObject::GranulesOf(uint64_t block) const {
  return geometry_.grid().GranuleCount(geometry_.grid().BlockLength(size_, block));
}

}  // namespace dartfs::core
