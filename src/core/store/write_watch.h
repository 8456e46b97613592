// WriteWatch: since when the writes that the disk has not answered are under way. Thread-safe;
// takes the time as argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/time.h"

namespace dartfs::core {

class WriteWatch {
 public:
  // A number for End.
  uint64_t Begin(uint64_t bytes, TimePoint now) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    bytes_ += bytes;
    under_way_.emplace(++last_, Write{now, bytes});
    return last_;
  }
  void End(uint64_t number) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const auto at = under_way_.find(number);
    bytes_ -= at->second.bytes;
    under_way_.erase(at);
  }
  // How long the oldest has been under way; zero where there is none.
  Duration OldestAge(TimePoint now) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return under_way_.empty() ? Duration::zero() : now - under_way_.begin()->second.since;
  }
  size_t count() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return under_way_.size();
  }
  uint64_t bytes() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return bytes_;
  }

 private:
  struct Write {
    TimePoint since;
    uint64_t bytes = 0;
  };
  Mutex mu_;                                             // a leaf
  std::map<uint64_t, Write> under_way_ GUARDED_BY(mu_);  // in the order of their beginning
  uint64_t bytes_ GUARDED_BY(mu_) = 0;
  uint64_t last_ GUARDED_BY(mu_) = 0;
};

}  // namespace dartfs::core
