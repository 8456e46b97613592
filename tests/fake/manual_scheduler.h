// ManualScheduler: a Scheduler that runs tasks only inside RunReady and Advance, on the thread of
// the test. Posting, At and Cancel are safe from any thread. Owns a ManualClock.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "fake/manual_clock.h"

namespace dartfs::core {

class ManualScheduler final : public Scheduler {
 public:
  ~ManualScheduler() override { Stop(); }

  void Post(Task task) override {
    DARTFS_CHECK(task);
    MutexLock lock(mu_);
    if (!stopped_) posted_.push_back(std::move(task));
  }

  TimerId At(TimePoint when, Task task) override {
    DARTFS_CHECK(task);
    MutexLock lock(mu_);
    const TimerId id = ++last_timer_;
    if (!stopped_) timers_.emplace(TimerKey(when, id), std::move(task));
    return id;
  }

  bool Cancel(TimerId id) override {
    std::map<TimerKey, Task>::node_type dropped;
    MutexLock lock(mu_);
    for (auto it = timers_.begin(); it != timers_.end(); ++it) {
      if (it->first.second != id) continue;
      dropped = timers_.extract(it);
      return true;
    }
    return false;
  }

  void Stop() override {
    // Destroyed outside the lock: a task's destructor may come back here.
    std::deque<Task> posted;
    std::map<TimerKey, Task> timers;
    MutexLock lock(mu_);
    stopped_ = true;
    posted.swap(posted_);
    timers.swap(timers_);
  }
  ManualClock& clock() override { return clock_; }

  // Runs posted tasks and due timers, and those which they post or make due, until none is left;
  // returns how many ran. Ends the process when they go on for ever.
  size_t RunReady() {
    constexpr size_t kTooMany = 1'000'000;
    size_t ran = 0;
    while (Task task = TakeReady()) {
      task();
      DARTFS_CHECK(++ran < kTooMany);
    }
    return ran;
  }

  // Moves the clock on by `by`, stopping at each timer on the way: it runs at its own time.
  // Returns how many tasks ran.
  size_t Advance(Duration by) {
    const TimePoint end = clock_.Now() + by;
    size_t ran = RunReady();
    for (auto next = NextTimer(); next && *next <= end; next = NextTimer()) {
      clock_.Advance(*next - clock_.Now());
      ran += RunReady();
    }
    clock_.Advance(end - clock_.Now());
    return ran + RunReady();
  }

  // Moves on to the next timer and runs it; false when there is none.
  bool RunNextTimer() {
    RunReady();
    const auto next = NextTimer();
    if (!next) return false;
    Advance(*next - clock_.Now());
    return true;
  }

  // When the earliest timer is due.
  std::optional<TimePoint> NextTimer() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (timers_.empty()) return std::nullopt;
    return timers_.begin()->first.first;
  }
  size_t posted() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return posted_.size();
  }
  size_t timers() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return timers_.size();
  }

 private:
  using TimerKey = std::pair<TimePoint, TimerId>;

  Task TakeReady() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (!posted_.empty()) {
      Task task = std::move(posted_.front());
      posted_.pop_front();
      return task;
    }
    if (timers_.empty() || timers_.begin()->first.first > clock_.Now()) return nullptr;
    return std::move(timers_.extract(timers_.begin()).mapped());
  }

  ManualClock clock_;
  Mutex mu_;
  std::deque<Task> posted_ GUARDED_BY(mu_);
  std::map<TimerKey, Task> timers_ GUARDED_BY(mu_);
  TimerId last_timer_ GUARDED_BY(mu_) = kNoTimer;
  bool stopped_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
