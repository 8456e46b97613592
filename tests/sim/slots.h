// Slots: things by a number that is never used twice, found without hashing.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace dartfs::sim {

template <typename T>
class Slots {
 public:
  // Never 0.
  uint64_t Add(T value) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const uint32_t at = free_.back();
    free_.pop_back();
    Slot& slot = slots_[at];
    slot.value = std::move(value);
    slot.used = true;
    return (uint64_t{slot.generation} << 32) | at;
  }

  // null: it is gone. Valid until it is erased.
  T* Find(uint64_t id) {
    const auto at = static_cast<uint32_t>(id);
    if (at >= slots_.size()) return nullptr;
    Slot& slot = slots_[at];
    return slot.used && slot.generation == id >> 32 ? &slot.value : nullptr;
  }
  T& At(uint64_t id) {
    T* found = Find(id);
    DARTFS_CHECK(found != nullptr);
    return *found;
  }

  // Of one that is gone: nothing.
  void Erase(uint64_t id) {
    if (Find(id) == nullptr) return;
    Slot& slot = slots_[static_cast<uint32_t>(id)];
    slot.value = T{};
    slot.used = false;
    ++slot.generation;
    free_.push_back(static_cast<uint32_t>(id));
  }

  size_t size() const { return slots_.size() - free_.size(); }
  // In the order of their slots.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint32_t at = 0; at < slots_.size(); ++at) {
      const Slot& slot = slots_[at];
      if (slot.used) visit((uint64_t{slot.generation} << 32) | at, slot.value);
    }
  }

 private:
  struct Slot {
    T value{};
    uint32_t generation = 1;
    bool used = false;
  };
  std::deque<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace dartfs::sim
