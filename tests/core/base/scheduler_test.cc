#include "core/base/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "fake/manual_scheduler.h"

namespace dartfs::core {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Counts events from other threads, and waits for a number of them.
class Counter {
 public:
  void Add() {
    MutexLock lock(mu_);
    ++count_;
    changed_.NotifyAll();
  }
  // False when `count` is not reached in time.
  bool WaitFor(int count) {
    const TimePoint deadline = RealClock().Now() + seconds(20);
    MutexLock lock(mu_);
    while (count_ < count) {
      const Duration left = deadline - RealClock().Now();
      if (left <= Duration::zero()) return false;
      changed_.WaitFor(mu_, left);
    }
    return true;
  }
  int count() {
    MutexLock lock(mu_);
    return count_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  int count_ GUARDED_BY(mu_) = 0;
};

// Runs its function when destroyed, and can sit in a task.
struct OnDrop {
  explicit OnDrop(std::function<void()> f) : fn(std::move(f)) {}
  OnDrop(OnDrop&& other) noexcept : fn(std::exchange(other.fn, nullptr)) {}
  ~OnDrop() {
    if (fn) fn();
  }
  std::function<void()> fn;
};

class ThreadSchedulerTest : public ::testing::TestWithParam<size_t> {
 protected:
  std::unique_ptr<Scheduler> Make() { return MakeThreadScheduler("test", GetParam(), RealClock()); }
};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadSchedulerTest, ::testing::Values(1, 2, 4));

TEST_P(ThreadSchedulerTest, RunsAllPostedTasksOffTheCallersStack) {
  Counter ran;
  auto scheduler = Make();
  const auto caller = std::this_thread::get_id();
  for (int i = 0; i < 1000; ++i) {
    scheduler->Post([&] {
      EXPECT_TRUE(std::this_thread::get_id() != caller);
      ran.Add();
    });
  }
  EXPECT_TRUE(ran.WaitFor(1000));
}

TEST_P(ThreadSchedulerTest, TimersRunNotBeforeTheirTimeAndInOrder) {
  Counter ran;
  Mutex mu;
  std::vector<int> order;
  auto scheduler = Make();
  const TimePoint start = RealClock().Now();
  for (const int delay_ms : {60, 1, 30}) {
    scheduler->At(start + milliseconds(delay_ms), [&, delay_ms] {
      EXPECT_GE(RealClock().Now(), start + milliseconds(delay_ms));
      MutexLock lock(mu);
      order.push_back(delay_ms);
      ran.Add();
    });
  }
  ASSERT_TRUE(ran.WaitFor(3));
  MutexLock lock(mu);
  EXPECT_EQ(order, (std::vector<int>{1, 30, 60}));
}

TEST_P(ThreadSchedulerTest, AnEarlierTimerWakesAThreadThatWaitsForALaterOne) {
  Counter ran;
  auto scheduler = Make();
  scheduler->After(hours(1), [&] { ADD_FAILURE(); });
  Counter idle;
  scheduler->Post([&] { idle.Add(); });
  ASSERT_TRUE(idle.WaitFor(1));
  scheduler->After(milliseconds(1), [&] { ran.Add(); });
  EXPECT_TRUE(ran.WaitFor(1));
}

TEST_P(ThreadSchedulerTest, CancelDestroysTheTaskBeforeItReturns) {
  Counter dropped;
  auto scheduler = Make();
  const TimerId id =
      scheduler->After(hours(1), [on_drop = OnDrop([&] { dropped.Add(); })] { ADD_FAILURE(); });
  EXPECT_NE(id, kNoTimer);
  EXPECT_TRUE(scheduler->Cancel(id));
  EXPECT_EQ(dropped.count(), 1);
  EXPECT_FALSE(scheduler->Cancel(id));
  EXPECT_FALSE(scheduler->Cancel(kNoTimer));
}

TEST_P(ThreadSchedulerTest, CancelOfATimerThatRanIsFalse) {
  Counter ran;
  auto scheduler = Make();
  const TimerId id = scheduler->After(Duration::zero(), [&] { ran.Add(); });
  ASSERT_TRUE(ran.WaitFor(1));
  EXPECT_FALSE(scheduler->Cancel(id));
}

TEST_P(ThreadSchedulerTest, ATaskCanCancelAnotherAndNotItself) {
  Counter ran;
  auto scheduler = Make();
  const TimerId other = scheduler->After(hours(1), [] { ADD_FAILURE(); });
  auto own = std::make_shared<std::atomic<TimerId>>(kNoTimer);
  Counter known;
  *own = scheduler->After(milliseconds(1), [&, own] {
    EXPECT_TRUE(known.WaitFor(1));
    EXPECT_FALSE(scheduler->Cancel(*own));
    EXPECT_TRUE(scheduler->Cancel(other));
    ran.Add();
  });
  known.Add();
  EXPECT_TRUE(ran.WaitFor(1));
}

TEST_P(ThreadSchedulerTest, PostedTasksAndTimersThatRenewThemselvesDoNotStarveEachOther) {
  Counter by_post;
  Counter by_timer;
  std::function<void()> post_again;
  std::function<void()> set_again;
  auto scheduler = Make();
  post_again = [&] {
    by_post.Add();
    scheduler->Post([&] { post_again(); });
  };
  set_again = [&] {
    by_timer.Add();
    scheduler->After(Duration::zero(), [&] { set_again(); });
  };
  scheduler->Post([&] { post_again(); });
  scheduler->Post([&] { set_again(); });
  EXPECT_TRUE(by_post.WaitFor(100));
  EXPECT_TRUE(by_timer.WaitFor(100));
}

TEST_P(ThreadSchedulerTest, DestructionDropsWhatHasNotBegun) {
  Counter dropped;
  Counter began;
  Counter go_on;
  auto scheduler = Make();
  for (size_t i = 0; i < GetParam(); ++i) {
    scheduler->Post([&] {
      began.Add();
      EXPECT_TRUE(go_on.WaitFor(1));
    });
  }
  ASSERT_TRUE(began.WaitFor(static_cast<int>(GetParam())));
  scheduler->After(hours(1), [on_drop = OnDrop([&] { dropped.Add(); })] { ADD_FAILURE(); });
  // A destructor that posts again must neither dead-lock nor be run.
  Scheduler* const raw = scheduler.get();
  scheduler->At(kNoDeadline, [on_drop = OnDrop([&, raw] {
                                raw->Post([] { ADD_FAILURE(); });
                                raw->After(Duration::zero(), [] { ADD_FAILURE(); });
                                dropped.Add();
                              })] { ADD_FAILURE(); });
  go_on.Add();
  scheduler.reset();
  EXPECT_EQ(dropped.count(), 2);
}

TEST_P(ThreadSchedulerTest, AStoppedOneDropsWhatItIsGiven) {
  Counter dropped;
  auto scheduler = Make();
  scheduler->Stop();
  scheduler->Post([on_drop = OnDrop([&] { dropped.Add(); })] { ADD_FAILURE(); });
  const TimerId timer = scheduler->After(
      Duration::zero(), [on_drop = OnDrop([&] { dropped.Add(); })] { ADD_FAILURE(); });
  EXPECT_EQ(dropped.count(), 2);
  EXPECT_FALSE(scheduler->Cancel(timer));
  scheduler->Stop();
}

TEST_P(ThreadSchedulerTest, EveryTimerRunsOrIsCancelledNeverBoth) {
  constexpr int kTimers = 2000;
  Counter ran;
  auto scheduler = Make();
  std::vector<TimerId> ids;
  for (int i = 0; i < kTimers; ++i) {
    ids.push_back(scheduler->After(std::chrono::microseconds(i), [&] { ran.Add(); }));
  }
  int cancelled = 0;
  for (const TimerId id : ids) cancelled += scheduler->Cancel(id) ? 1 : 0;
  EXPECT_TRUE(ran.WaitFor(kTimers - cancelled));
  scheduler.reset();
  EXPECT_EQ(ran.count(), kTimers - cancelled);
}

TEST(ManualScheduler, RunsOnlyWhenStepped) {
  ManualScheduler scheduler;
  std::vector<int> order;
  scheduler.Post([&] { order.push_back(1); });
  scheduler.After(seconds(2), [&] { order.push_back(3); });
  scheduler.After(seconds(1), [&] {
    order.push_back(2);
    scheduler.Post([&] { order.push_back(20); });
  });
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(scheduler.RunReady(), 1U);
  EXPECT_EQ(scheduler.Advance(milliseconds(999)), 0U);
  EXPECT_EQ(scheduler.Advance(milliseconds(1)), 2U);
  EXPECT_TRUE(scheduler.RunNextTimer());
  EXPECT_FALSE(scheduler.RunNextTimer());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 20, 3}));
}

TEST(ManualScheduler, AdvanceStopsAtEachTimerAlsoAtNewOnes) {
  ManualScheduler scheduler;
  const TimePoint start = scheduler.clock().Now();
  std::vector<int64_t> at_ms;
  std::function<void()> tick = [&] {
    at_ms.push_back(ToMillis(scheduler.clock().Now() - start));
    scheduler.After(milliseconds(300), [&] { tick(); });
  };
  tick();
  scheduler.Advance(seconds(1));
  EXPECT_EQ(at_ms, (std::vector<int64_t>{0, 300, 600, 900}));
  EXPECT_EQ(ToMillis(scheduler.clock().Now() - start), 1000);
  EXPECT_EQ(scheduler.timers(), 1U);
}

TEST(ManualScheduler, CancelDestroysTheTask) {
  ManualScheduler scheduler;
  int dropped = 0;
  const TimerId id =
      scheduler.After(seconds(1), [on_drop = OnDrop([&] { ++dropped; })] { ADD_FAILURE(); });
  EXPECT_TRUE(scheduler.Cancel(id));
  EXPECT_EQ(dropped, 1);
  EXPECT_FALSE(scheduler.Cancel(id));
  EXPECT_EQ(scheduler.Advance(seconds(2)), 0U);
}

}  // namespace
}  // namespace dartfs::core
