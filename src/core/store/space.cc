#include "core/store/space.h"

#include <algorithm>

#include "core/base/check.h"

namespace dartfs::core {

uint64_t Space::used() {
  MutexLock lock(mu_);
  return used_;
}

void Space::Load(uint64_t bytes) {
  MutexLock lock(mu_);
  used_ += bytes;
}

bool Space::Reserve(uint64_t bytes) {
  MutexLock lock(mu_);
  if (!FitsLocked(bytes)) return false;
  used_ += bytes;
  in_flight_ += bytes;
  return true;
}

void Space::Settle(uint64_t bytes) {
  MutexLock lock(mu_);
  DARTFS_CHECK(bytes <= in_flight_);
  in_flight_ -= bytes;
  // Measured before the write, the disk has that much less.
  if (spare_ != UINT64_MAX) spare_ -= std::min(bytes, spare_);
}

void Space::Release(uint64_t bytes) {
  MutexLock lock(mu_);
  DARTFS_CHECK(bytes <= used_);
  used_ -= bytes;
  const uint64_t of_missing = std::min(bytes, missing_);
  missing_ -= of_missing;
  if (spare_ != UINT64_MAX) spare_ += bytes - of_missing;
  room_.NotifyAll();
}

void Space::SetSpare(uint64_t spare_bytes, uint64_t missing_bytes) {
  MutexLock lock(mu_);
  spare_ = spare_bytes;
  missing_ = missing_bytes;
  room_.NotifyAll();
}

void Space::Want(uint64_t bytes, Placement placement) {
  MutexLock lock(mu_);
  wanted_ = bytes;
  wanted_for_ = placement;
  ++want_number_;
  given_up_ = false;
}

bool Space::WaitForRoom(std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  MutexLock lock(mu_);
  bool fits = FitsLocked(wanted_);
  while (!fits && !given_up_) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) break;
    room_.WaitFor(mu_, left);
    fits = FitsLocked(wanted_);
  }
  if (!fits) return false;
  used_ += wanted_;
  in_flight_ += wanted_;
  wanted_ = 0;
  return true;
}

uint64_t Space::WantNumber() {
  MutexLock lock(mu_);
  return wanted_ > 0 ? want_number_ : 0;
}

void Space::GiveUp(uint64_t want_number) {
  MutexLock lock(mu_);
  if (wanted_ == 0 || want_number != want_number_) return;
  if (in_flight_ > 0 || FitsLocked(wanted_)) return;
  given_up_ = true;
  room_.NotifyAll();
}

bool Space::gave_up() {
  MutexLock lock(mu_);
  return given_up_;
}

bool Space::DiskIsFull() {
  MutexLock lock(mu_);
  return spare_ <= in_flight_ || missing_ > 0;
}

uint64_t Space::Shortage() {
  MutexLock lock(mu_);
  return ShortageLocked();
}

Pressure Space::CurrentPressure() {
  MutexLock lock(mu_);
  Pressure pressure = {.to_free = ShortageLocked(), .incoming = {}, .incoming_bytes = wanted_};
  if (wanted_ > 0) pressure.incoming = wanted_for_;
  return pressure;
}

bool Space::IsShort(uint64_t bytes) {
  // Eviction frees more than what is needed at once; that is not for everybody.
  constexpr uint64_t kShortFraction = 16;
  MutexLock lock(mu_);
  return !FitsLocked(bytes) || used_ + bytes > limit_ - limit_ / kShortFraction;
}

uint64_t Space::ShortageLocked() const {
  const uint64_t over = used_ + wanted_ > limit_ ? used_ + wanted_ - limit_ : 0;
  const uint64_t coming = in_flight_ + wanted_;
  const uint64_t lacking = missing_ + (coming > spare_ ? coming - spare_ : 0);
  return std::min(std::max(over, lacking), used_);
}

bool Space::FitsLocked(uint64_t bytes) const {
  if (bytes > limit_ || used_ > limit_ - bytes) return false;
  return spare_ == UINT64_MAX || in_flight_ + bytes <= spare_;
}

}  // namespace dartfs::core
