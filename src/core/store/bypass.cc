#include "core/store/bypass.h"

#include "core/base/log.h"

namespace dartfs::core {

void Bypass::Enter(const std::string& reason, TimePoint now) {
  bool begins = false;
  {
    MutexLock lock(mu_);
    begins = EnterLocked(reason);
    next_try_ = now + retry_;
  }
  if (begins) LOG_WARN("cache in bypass, nothing is kept until its disk takes writes: {}", reason);
}

void Bypass::EnterForGood(const std::string& reason) {
  bool begins = false;
  {
    MutexLock lock(mu_);
    begins = EnterLocked(reason) || !for_good_;
    if (begins) reason_ = reason;  // what only a restart ends is what is to be known
    for_good_ = true;
  }
  if (begins) LOG_ERROR("cache in bypass until the next start: {}", reason);
}

bool Bypass::EnterLocked(const std::string& reason) {
  ++number_;
  if (active_) return false;
  active_ = true;
  reason_ = reason;
  return true;
}

void Bypass::Hold(bool on) {
  bool changed = false;
  bool active = false;
  {
    MutexLock lock(mu_);
    changed = held_ != on;
    held_ = on;
    active = active_;
  }
  if (changed && on) LOG_INFO("cache in bypass, nothing is kept: switched on by the operator");
  if (changed && !on && !active) LOG_INFO("cache keeps blocks again");
}

bool Bypass::MayWrite(TimePoint now) {
  MutexLock lock(mu_);
  if (held_) return false;
  if (!active_) return true;
  if (for_good_ || now < next_try_) return false;
  next_try_ = now + retry_;
  return true;
}

uint64_t Bypass::number() {
  MutexLock lock(mu_);
  return number_;
}

void Bypass::NoteSuccess(uint64_t number) {
  {
    MutexLock lock(mu_);
    if (!active_ || for_good_ || number != number_) return;
    active_ = false;
    reason_.clear();
  }
  LOG_INFO("cache keeps blocks again");
}

bool Bypass::active() {
  MutexLock lock(mu_);
  return active_ || held_;
}

std::string Bypass::reason() {
  MutexLock lock(mu_);
  return held_ ? "switched on by the operator" : reason_;
}

}  // namespace dartfs::core
