// StoredObject: what leaves as one: eviction, and files that are lent.
#include <algorithm>
#include <bit>
#include <utility>

#include "core/store/stored_object.h"

namespace dartfs::core {

std::vector<Evictable> StoredObject::FindEvictable() {
  MutexLock lock(mu_);
  std::vector<Evictable> found;
  const bool complete = IsFullLocked(is_volatile() ? &Chunk::present : &Chunk::recorded);
  if (lent_ != nullptr && (!complete || lent_->on_loan())) return found;
  if (complete) {
    found.push_back({.whole = true, .used_ms = NewestUseLocked()});
    return found;
  }
  for (const Chunk& chunk : chunks_) {
    if (EvictableMask(chunk) == 0) continue;
    found.push_back({.chunk = chunk.index, .used_ms = chunk.used_ms});
  }
  return found;
}

std::vector<uint64_t> StoredObject::TakeForEviction(const Evictable& from, uint64_t bytes) {
  MutexLock lock(mu_);
  std::vector<uint64_t> taken;
  if (from.whole) {
    if (NewestUseLocked() != from.used_ms) return taken;
    if (lent_ != nullptr) {
      if (!IsFullLocked(&Chunk::recorded) || lent_->on_loan() || AnyPinsLocked()) return taken;
    }
    for (Chunk& chunk : chunks_) TakeChunkLocked(chunk, UINT64_MAX, &taken);
    return taken;
  }
  Chunk* const chunk = Find(from.chunk);
  if (chunk == nullptr || chunk->used_ms != from.used_ms || lent_ != nullptr) return taken;
  TakeChunkLocked(*chunk, bytes, &taken);
  return taken;
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

bool StoredObject::IsFullLocked(uint64_t Chunk::*mask) const {
  uint64_t count = 0;
  for (const Chunk& chunk : chunks_) count += static_cast<uint64_t>(std::popcount(chunk.*mask));
  return count != 0 && count == geometry_.grid().BlockCount(size_);
}

bool StoredObject::AnyPinsLocked() const {
  return std::any_of(uses_.begin(), uses_.end(),
                     [](const auto& entry) { return entry.second.pins > 0; });
}

bool StoredObject::IsComplete() const {
  MutexLock lock(mu_);
  return IsFullLocked(&Chunk::present);
}

bool StoredObject::IsVerified() const {
  MutexLock lock(mu_);
  return IsFullLocked(&Chunk::verified);
}

std::shared_ptr<LentFile> StoredObject::lent_file() const {
  MutexLock lock(mu_);
  return lent_;
}

bool StoredObject::MarkLent(std::shared_ptr<LentFile> lent) {
  MutexLock lock(mu_);
  if (retired_ || !IsFullLocked(&Chunk::recorded) || !IsFullLocked(&Chunk::verified)) return false;
  if (lent_ == nullptr) lent_ = std::move(lent);
  return true;
}

void StoredObject::LoadLent(std::shared_ptr<LentFile> lent) {
  MutexLock lock(mu_);
  lent_ = std::move(lent);
}

void StoredObject::UnmarkLent() {
  MutexLock lock(mu_);
  lent_.reset();
}

std::shared_ptr<LentFile> StoredObject::BeginLoan(uint64_t file_number, bool* too_much) {
  MutexLock lock(mu_);
  *too_much = false;
  if (retired_ || lent_ == nullptr || file_number != file_number_) return nullptr;
  if (!IsFullLocked(&Chunk::verified)) return nullptr;
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
  return std::exchange(lent_, nullptr);
}

}  // namespace dartfs::core
