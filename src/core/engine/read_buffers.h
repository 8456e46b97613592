// ReadBuffers: memory for reads that could not be answered on the spot, used again and again:
// pages that are touched for the first time cost more than the copy into them. Thread-safe; leaf.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/mutex.h"

namespace dartfs::core {

class ReadBuffers {
 public:
  static constexpr size_t kPooledBytes = size_t{1} << 20;  // what FUSE reads at most
  static constexpr size_t kLeastPooled = kPooledBytes / 8;
  static constexpr size_t kMost = 8;

  // At least `size` bytes, of unspecified content.
  AlignedBuffer Take(size_t size) {
    if (!IsPooled(size)) return AlignedBuffer::Allocate(size);
    {
      MutexLock lock(mu_);
      if (!free_.empty()) {
        AlignedBuffer buffer = std::move(free_.back());
        free_.pop_back();
        return buffer;
      }
    }
    return AlignedBuffer::Allocate(kPooledBytes);
  }
  // Of Take, when it is done with.
  void Give(AlignedBuffer buffer) {
    if (buffer.size() != kPooledBytes) return;
    MutexLock lock(mu_);
    if (free_.size() < kMost) free_.push_back(std::move(buffer));
  }

 private:
  static bool IsPooled(size_t size) { return size >= kLeastPooled && size <= kPooledBytes; }
  Mutex mu_;
  std::vector<AlignedBuffer> free_ GUARDED_BY(mu_);
};

}  // namespace dartfs::core
