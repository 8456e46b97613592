// Space: how much of the disk the blocks may take. Bytes are counted from the reservation before a
// write until the place in the file has been freed. Thread-safe; waits only in WaitForRoom.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/base/mutex.h"
#include "core/store/placement_shares.h"

namespace dartfs::core {

class Space {
 public:
  explicit Space(uint64_t limit_bytes) : limit_(limit_bytes) {}

  uint64_t limit() const { return limit_; }
  uint64_t used() EXCLUDES(mu_);

  // At the start, whatever the limit.
  void Load(uint64_t bytes) EXCLUDES(mu_);
  // For a write: counted as used and as in flight, if that stays within the limit and leaves the
  // disk its reserve.
  bool Reserve(uint64_t bytes) EXCLUDES(mu_);
  // The write of these bytes has ended, well or not: they lie on the disk.
  void Settle(uint64_t bytes) EXCLUDES(mu_);
  // They no longer do.
  void Release(uint64_t bytes) EXCLUDES(mu_);

  // What the disk has left beyond its reserve, as just measured, or what it lacks of it.
  void SetSpare(uint64_t spare_bytes, uint64_t missing_bytes) EXCLUDES(mu_);

  // A write of so many bytes waits; 0: none does. One at a time.
  void Want(uint64_t bytes, Placement placement = Placement::kOwned) EXCLUDES(mu_);
  // Blocks until what is wanted has been reserved, or `patience` ran out, or GiveUp.
  bool WaitForRoom(std::chrono::nanoseconds patience) EXCLUDES(mu_);
  // Which Want it is, for GiveUp; 0 where nothing waits.
  uint64_t WantNumber() EXCLUDES(mu_);
  // Eviction did what it could after it had seen that Want. If it still has no room, and none comes
  // with the end of writes under way, WaitForRoom need not wait any longer.
  void GiveUp(uint64_t want_number) EXCLUDES(mu_);
  bool gave_up() EXCLUDES(mu_);
  // No block fits within what the disk can spare.
  bool DiskIsFull() EXCLUDES(mu_);
  // How many bytes must go so that what waits fits, or the limits hold; 0 where all is well.
  uint64_t Shortage() EXCLUDES(mu_);
  // The same, and for whom.
  Pressure CurrentPressure() EXCLUDES(mu_);
  // Whether a write of so many bytes takes from the last that is free.
  bool IsShort(uint64_t bytes) EXCLUDES(mu_);

 private:
  uint64_t ShortageLocked() const REQUIRES(mu_);
  bool FitsLocked(uint64_t bytes) const REQUIRES(mu_);

  const uint64_t limit_;
  Mutex mu_;  // a leaf
  CondVar room_;
  uint64_t used_ GUARDED_BY(mu_) = 0;
  uint64_t in_flight_ GUARDED_BY(mu_) = 0;  // of used_
  uint64_t spare_ GUARDED_BY(mu_) = UINT64_MAX;
  uint64_t missing_ GUARDED_BY(mu_) = 0;
  uint64_t wanted_ GUARDED_BY(mu_) = 0;
  Placement wanted_for_ GUARDED_BY(mu_) = Placement::kOwned;
  uint64_t want_number_ GUARDED_BY(mu_) = 0;
  bool given_up_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
