// LentFile: one file that is marked lent: how many loans of it are out, and what becomes of its
// bytes. An object has at most one; it and the loans share it, so that a loan may outlive the
// file's name. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/store/byte_budget.h"
#include "core/store/space.h"

namespace dartfs::core {

class LentFile {
 public:
  // `bytes`: what the file takes of the disk. `lent` and `space` outlive it.
  LentFile(uint64_t bytes, ByteBudget& lent, Space& space)
      : bytes_(bytes), lent_(lent), space_(space) {}

  // One more loan; false: too much would be under loans.
  bool BeginLoan() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (loans_ == 0 && !lent_.TryTake(bytes_)) return false;
    ++loans_;
    return true;
  }
  void EndLoan() EXCLUDES(mu_) {
    uint64_t to_release = 0;
    {
      MutexLock lock(mu_);
      DARTFS_CHECK(loans_ > 0);
      if (--loans_ > 0) return;
      lent_.Give(bytes_);
      to_release = held_bytes_;
      held_bytes_ = 0;
    }
    if (to_release > 0) space_.Release(to_release);
  }
  // The store no longer vouches for it, whatever its loans.
  void MarkBroken() { broken_.store(true, std::memory_order_release); }
  const std::atomic<bool>& broken() const { return broken_; }
  bool on_loan() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return loans_ > 0;
  }
  // The name is gone. What was counted for it is given back once no loan keeps it on the disk.
  void NoteUnlinked(uint64_t counted_bytes) EXCLUDES(mu_) {
    {
      MutexLock lock(mu_);
      if (loans_ > 0) {
        held_bytes_ += counted_bytes;
        return;
      }
    }
    space_.Release(counted_bytes);
  }

 private:
  const uint64_t bytes_;
  ByteBudget& lent_;
  Space& space_;
  std::atomic<bool> broken_ = false;
  Mutex mu_;  // taken after an object's; before the budget's
  size_t loans_ GUARDED_BY(mu_) = 0;
  uint64_t held_bytes_ GUARDED_BY(mu_) = 0;
};

}  // namespace dartfs::core
