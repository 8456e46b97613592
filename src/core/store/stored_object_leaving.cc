// StoredObject: what leaves as one: eviction, and files that are lent.
#include <algorithm>
#include <bit>
#include <utility>

#include "core/store/stored_object.h"

namespace dartfs::core {

std::vector<Evictable> StoredObject::FindEvictable() {
  MutexLock lock(mu_);
  std::vector<Evictable> found;
  if (pinned_) return found;
  if (MayLeaveWholeLocked()) {
    const Placement placement = OnlyPlacementLocked().value_or(Placement::kOwned);
    found.push_back({.whole = true, .used_ms = NewestUseLocked(), .placement = placement});
    return found;
  }
  // What is complete waits for its last commit, to go as one.
  const bool goes_as_one = IsAll(counts_.present) && OnlyPlacementLocked().has_value();
  if (lent_ != nullptr || goes_as_one) return found;
  for (const Chunk& chunk : chunks_) {
    if (EvictableMask(chunk) == 0) continue;
    found.push_back({.chunk = chunk.index, .used_ms = chunk.used_ms, .placement = chunk.placement});
  }
  return found;
}

// Complete ones, but where only a part of it may have to give way to the other kind.
bool StoredObject::MayLeaveWholeLocked() const {
  if (!IsAll(is_volatile() ? counts_.present : counts_.recorded)) return false;
  if (lent_ != nullptr) return !lent_->on_loan() && !AnyPinsLocked();
  return OnlyPlacementLocked().has_value();
}

std::vector<uint64_t> StoredObject::TakeForEviction(const Evictable& from, uint64_t bytes) {
  MutexLock lock(mu_);
  std::vector<uint64_t> taken;
  if (pinned_) return taken;
  if (from.whole) {
    if (NewestUseLocked() != from.used_ms || !MayLeaveWholeLocked()) return taken;
    for (Chunk& chunk : chunks_) TakeChunkLocked(chunk, UINT64_MAX, &taken);
    return taken;
  }
  Chunk* const chunk = Find(from.chunk);
  if (chunk == nullptr || chunk->used_ms != from.used_ms || lent_ != nullptr) return taken;
  TakeChunkLocked(*chunk, bytes, &taken);
  return taken;
}

std::vector<uint64_t> StoredObject::TakeAll() {
  MutexLock lock(mu_);
  std::vector<uint64_t> taken;
  if (pinned_ || (lent_ != nullptr && !MayLeaveWholeLocked())) return taken;
  for (Chunk& chunk : chunks_) TakeChunkLocked(chunk, UINT64_MAX, &taken);
  return taken;
}

bool StoredObject::SetPinned(bool pinned) {
  MutexLock lock(mu_);
  return std::exchange(pinned_, pinned) != pinned;
}

bool StoredObject::is_pinned() const {
  MutexLock lock(mu_);
  return pinned_;
}

bool StoredObject::SetPlacement(uint64_t chunk, Placement placement) {
  MutexLock lock(mu_);
  Chunk& entry = FindOrAdd(chunk);
  if (entry.placement == placement) return false;
  const uint64_t bytes = geometry_.StoredBytesOf(size_, chunk, entry.present);
  const auto blocks = static_cast<uint64_t>(std::popcount(entry.present));
  usage_.Remove(entry.placement, bytes, blocks);
  usage_.Add(placement, bytes, blocks);
  entry.placement = placement;
  return entry.present != 0;
}

Placement StoredObject::PlacementOf(uint64_t block) {
  MutexLock lock(mu_);
  const Chunk* const chunk = Find(geometry_.ChunkOf(block));
  return chunk == nullptr ? Placement::kOwned : chunk->placement;
}

std::optional<Placement> StoredObject::OnlyPlacementLocked() const {
  std::optional<Placement> only;
  for (const Chunk& chunk : chunks_) {
    if (chunk.present == 0) continue;
    if (only && *only != chunk.placement) return std::nullopt;
    only = chunk.placement;
  }
  return only;
}

void StoredObject::TakeChunkLocked(Chunk& chunk, uint64_t bytes, std::vector<uint64_t>* taken) {
  const uint64_t candidates = EvictableMask(chunk);
  uint64_t taken_bytes = 0;
  for (unsigned bit = 0; bit < geometry_.blocks_per_chunk() && taken_bytes < bytes; ++bit) {
    if ((candidates >> bit & 1) == 0) continue;
    const uint64_t block = geometry_.BlockOf(chunk.index, bit);
    if (PinsOf(block) > 0) continue;
    DropLocked(chunk, block);
    chunk.busy |= geometry_.MaskOf(block);
    taken->push_back(block);
    taken_bytes += StoredBytes(block);
  }
}

uint64_t StoredObject::EvictableMask(const Chunk& chunk) const {
  return is_volatile() ? chunk.present : chunk.recorded;
}

uint64_t StoredObject::NewestUseLocked() const {
  uint64_t newest = 0;
  for (const Chunk& chunk : chunks_) {
    if (EvictableMask(chunk) != 0) newest = std::max(newest, chunk.used_ms);
  }
  return newest;
}

bool StoredObject::AnyPinsLocked() const {
  return std::any_of(uses_.begin(), uses_.end(),
                     [](const auto& entry) { return entry.second.pins > 0; });
}

bool StoredObject::IsComplete() const {
  MutexLock lock(mu_);
  return IsAll(counts_.present);
}

bool StoredObject::IsVerified() const {
  MutexLock lock(mu_);
  return IsAll(counts_.verified);
}

std::shared_ptr<LentFile> StoredObject::lent_file() const {
  MutexLock lock(mu_);
  return lent_;
}

bool StoredObject::MarkLent(std::shared_ptr<LentFile> lent) {
  MutexLock lock(mu_);
  if (retired_ || !IsAll(counts_.recorded) || !IsAll(counts_.verified)) return false;
  if (lent_ == nullptr) lent_ = std::move(lent);
  return true;
}

bool StoredObject::is_lent_durably() const {
  MutexLock lock(mu_);
  return lent_durably_;
}

void StoredObject::LoadLent(std::shared_ptr<LentFile> lent) {
  MutexLock lock(mu_);
  lent_ = std::move(lent);
  lent_durably_ = true;
}

void StoredObject::SettleLent(bool durable) {
  MutexLock lock(mu_);
  if (lent_ == nullptr || lent_durably_) return;
  lent_durably_ = durable;
  if (durable) return;
  DARTFS_CHECK(!lent_->on_loan());
  lent_.reset();
}

std::shared_ptr<LentFile> StoredObject::BeginLoan(uint64_t file_number, bool* too_much) {
  MutexLock lock(mu_);
  *too_much = false;
  if (retired_ || !lent_durably_ || file_number != file_number_) return nullptr;
  if (!IsAll(counts_.verified)) return nullptr;
  *too_much = !lent_->BeginLoan();
  return *too_much ? nullptr : lent_;
}

bool StoredObject::MayUnlinkLent(size_t claimed) {
  MutexLock lock(mu_);
  size_t busy = 0;
  for (const Chunk& chunk : chunks_) {
    if (chunk.present != 0) return false;
    busy += static_cast<size_t>(std::popcount(chunk.busy));
  }
  return busy == claimed && !AnyPinsLocked();
}

std::shared_ptr<LentFile> StoredObject::ReplaceFile() {
  std::shared_ptr<ObjectFile> file;  // closed after the lock is released
  MutexLock lock(mu_);
  file.swap(file_);
  ++file_number_;
  for (Chunk& chunk : chunks_) chunk.busy = 0;
  lent_durably_ = false;
  return std::exchange(lent_, nullptr);
}

}  // namespace dartfs::core
