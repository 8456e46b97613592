// EvictionPolicy: which chunk, or which complete object, goes next, by the least recent use. Pure.
//
// Times of use lie with the chunks, so that a use costs nothing here; now and then all chunks are
// looked through and the oldest part of them is kept as a queue. A chunk used since it was queued
// is recognised by its time of use and skipped by the caller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/store/index_record.h"

namespace dartfs::core {

struct EvictionCandidate {
  ChunkKey chunk;
  uint64_t used_ms = 0;
  bool whole = false;  // all of the object
};

class EvictionPolicy {
 public:
  // The oldest eighth of them, at least `kAtLeast`, becomes the queue.
  void Refill(std::vector<EvictionCandidate> all) {
    const auto older = [](const EvictionCandidate& a, const EvictionCandidate& b) {
      return a.used_ms != b.used_ms ? a.used_ms < b.used_ms : a.chunk.chunk < b.chunk.chunk;
    };
    const size_t kept = std::min(all.size(), std::max(kAtLeast, all.size() / 8));
    std::partial_sort(all.begin(), all.begin() + static_cast<ptrdiff_t>(kept), all.end(), older);
    all.resize(kept);
    queue_ = std::move(all);
    next_ = 0;
  }
  // The oldest; stays at the front until Pop.
  const EvictionCandidate* Front() const {
    return next_ < queue_.size() ? &queue_[next_] : nullptr;
  }
  void Pop() { ++next_; }

 private:
  static constexpr size_t kAtLeast = 1024;
  std::vector<EvictionCandidate> queue_;
  size_t next_ = 0;
};

}  // namespace dartfs::core
