#include "core/base/scheduler.h"

#include <algorithm>
#include <deque>
#include <map>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace dartfs::core {
namespace {

// Even an idle thread looks at the clock this often: condition variables wait by CLOCK_MONOTONIC,
// which stands still in suspend, while timers go by CLOCK_BOOTTIME.
constexpr Duration kMaxWait = std::chrono::seconds(1);

// Of the idle threads one, the watcher, waits for the next timer; the others wait for a hand-over.
// A task's own code, its destructor included, runs with mu_ free.
class ThreadScheduler final : public Scheduler {
 public:
  ThreadScheduler(const std::string& name, size_t threads, Clock& clock) : clock_(clock) {
    DARTFS_CHECK(threads > 0);
    for (size_t i = 0; i < threads; ++i) {
      threads_.push_back(StartThread(name + "-" + std::to_string(i), [this] { Work(); }));
    }
  }
  ~ThreadScheduler() override { Stop(); }

  void Post(Task task) override;
  TimerId At(TimePoint when, Task task) override;
  bool Cancel(TimerId id) override;
  void Stop() override;
  Clock& clock() override { return clock_; }

 private:
  // Equal times run in the order in which they were set.
  using TimerKey = std::pair<TimePoint, TimerId>;

  void Work();
  // Waits for a task; empty once the scheduler stops.
  Task NextTask() EXCLUDES(mu_);
  Task TakeRunnable() REQUIRES(mu_);
  void WaitForRunnable() REQUIRES(mu_);
  void WakeOne() REQUIRES(mu_);
  bool DestroyPending() EXCLUDES(mu_);

  Clock& clock_;
  std::vector<std::thread> threads_;

  // A leaf: nothing is locked or called under it but the clock.
  Mutex mu_;
  CondVar hand_over_;
  CondVar watcher_wake_;
  std::deque<Task> posted_ GUARDED_BY(mu_);
  std::map<TimerKey, Task> timers_ GUARDED_BY(mu_);
  std::unordered_map<TimerId, TimePoint> when_ GUARDED_BY(mu_);
  TimerId last_timer_ GUARDED_BY(mu_) = kNoTimer;
  size_t idle_ GUARDED_BY(mu_) = 0;  // threads in wait for a hand-over
  bool watched_ GUARDED_BY(mu_) = false;
  bool timers_first_ GUARDED_BY(mu_) = true;
  bool stopping_ GUARDED_BY(mu_) = false;
};

void ThreadScheduler::Stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    hand_over_.NotifyAll();
    watcher_wake_.NotifyAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  while (DestroyPending()) {
  }
}

// A destroyed task may post another one; those are dropped by Post and At, so this ends.
bool ThreadScheduler::DestroyPending() {
  std::deque<Task> posted;
  std::map<TimerKey, Task> timers;
  MutexLock lock(mu_);
  posted.swap(posted_);
  timers.swap(timers_);
  when_.clear();
  return !posted.empty() || !timers.empty();
}

void ThreadScheduler::Post(Task task) {
  DARTFS_CHECK(task);
  MutexLock lock(mu_);
  if (stopping_) return;
  posted_.push_back(std::move(task));
  WakeOne();
}

TimerId ThreadScheduler::At(TimePoint when, Task task) {
  DARTFS_CHECK(task);
  MutexLock lock(mu_);
  const TimerId id = ++last_timer_;
  if (stopping_) return id;
  when_.emplace(id, when);
  const auto at = timers_.emplace(TimerKey(when, id), std::move(task)).first;
  if (at == timers_.begin()) {
    if (watched_) {
      watcher_wake_.NotifyOne();
    } else {
      WakeOne();
    }
  }
  return id;
}

bool ThreadScheduler::Cancel(TimerId id) {
  std::map<TimerKey, Task>::node_type dropped;
  MutexLock lock(mu_);
  const auto found = when_.find(id);
  if (found == when_.end()) return false;
  dropped = timers_.extract(TimerKey(found->second, id));
  when_.erase(found);
  return true;
}

void ThreadScheduler::Work() {
  while (Task task = NextTask()) task();
}

Task ThreadScheduler::NextTask() {
  MutexLock lock(mu_);
  while (!stopping_) {
    if (Task task = TakeRunnable()) return task;
    WaitForRunnable();
  }
  return nullptr;
}

// Due timers and posted tasks take turns, so that neither can starve the other.
Task ThreadScheduler::TakeRunnable() {
  const bool due = !timers_.empty() && timers_.begin()->first.first <= clock_.Now();
  Task task;
  if (due && (timers_first_ || posted_.empty())) {
    timers_first_ = false;
    auto node = timers_.extract(timers_.begin());
    when_.erase(node.key().second);
    task = std::move(node.mapped());
  } else if (!posted_.empty()) {
    timers_first_ = true;
    task = std::move(posted_.front());
    posted_.pop_front();
  }
  // This thread is busy now: more work, or the timers, need another one.
  const bool unwatched = !watched_ && !timers_.empty();
  if (task && (unwatched || !posted_.empty())) WakeOne();
  return task;
}

void ThreadScheduler::WaitForRunnable() {
  if (watched_) {
    ++idle_;
    hand_over_.WaitFor(mu_, kMaxWait);
    --idle_;
    return;
  }
  Duration wait = kMaxWait;
  if (!timers_.empty()) wait = std::min(wait, timers_.begin()->first.first - clock_.Now());
  watched_ = true;
  if (wait > Duration::zero()) watcher_wake_.WaitFor(mu_, wait);
  watched_ = false;
}

// An idle thread that has been woken but does not run yet still counts as idle: whoever takes a
// task wakes the next one, so a wake-up that went to nobody is made good.
void ThreadScheduler::WakeOne() {
  if (idle_ > 0) {
    hand_over_.NotifyOne();
  } else if (watched_) {
    watcher_wake_.NotifyOne();
  }
}

}  // namespace

std::unique_ptr<Scheduler> MakeThreadScheduler(const std::string& name, size_t threads,
                                               Clock& clock) {
  return std::make_unique<ThreadScheduler>(name, threads, clock);
}

}  // namespace dartfs::core
