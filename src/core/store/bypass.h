// Bypass: whether the store takes writes at present. Entered with what the disk refused, left when
// a commit succeeds again; said once in the log each time. In between one write now and then is let
// through, to try. Thread-safe; takes the time as argument.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/mutex.h"
#include "core/base/time.h"

namespace dartfs::core {

class Bypass {
 public:
  explicit Bypass(Duration retry) : retry_(retry) {}

  void Enter(const std::string& reason, TimePoint now) EXCLUDES(mu_);
  // Only a restart ends it.
  void EnterForGood(const std::string& reason) EXCLUDES(mu_);
  // By the operator, whatever the disk does, until it is taken back.
  void Hold(bool on) EXCLUDES(mu_);
  // True outside of bypass, and for one try each `retry`.
  bool MayWrite(TimePoint now) EXCLUDES(mu_);
  // Counts the refusals. What was begun under an older number says nothing about the disk since.
  uint64_t number() EXCLUDES(mu_);
  // Blocks admitted under this number have been written and committed.
  void NoteSuccess(uint64_t number) EXCLUDES(mu_);

  bool active() EXCLUDES(mu_);
  std::string reason() EXCLUDES(mu_);

 private:
  bool EnterLocked(const std::string& reason) REQUIRES(mu_);

  const Duration retry_;
  Mutex mu_;  // a leaf
  bool active_ GUARDED_BY(mu_) = false;
  bool for_good_ GUARDED_BY(mu_) = false;
  bool held_ GUARDED_BY(mu_) = false;
  uint64_t number_ GUARDED_BY(mu_) = 0;
  std::string reason_ GUARDED_BY(mu_);
  TimePoint next_try_ GUARDED_BY(mu_);
};

}  // namespace dartfs::core
