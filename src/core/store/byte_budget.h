// ByteBudget: bytes set aside for something, up to a limit. Thread-safe.
#pragma once

#include <cstdint>

#include "core/base/check.h"
#include "core/base/mutex.h"

namespace dartfs::core {

class ByteBudget {
 public:
  explicit ByteBudget(uint64_t limit) : limit_(limit) {}

  bool TryTake(uint64_t bytes) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (!FitsLocked(bytes)) return false;
    taken_ += bytes;
    return true;
  }
  // Whatever the limit: what is remembered from before.
  void Take(uint64_t bytes) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    taken_ += bytes;
  }
  void Give(uint64_t bytes) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    DARTFS_CHECK(bytes <= taken_);
    taken_ -= bytes;
  }
  bool Fits(uint64_t bytes) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return FitsLocked(bytes);
  }
  uint64_t taken() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return taken_;
  }

 private:
  bool FitsLocked(uint64_t bytes) const REQUIRES(mu_) {
    return taken_ <= limit_ && bytes <= limit_ - taken_;
  }

  const uint64_t limit_;
  Mutex mu_;  // a leaf
  uint64_t taken_ GUARDED_BY(mu_) = 0;
};

}  // namespace dartfs::core
