#include "core/io/origin_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fake/manual_clock.h"
#include "fake/seeded_random.h"

namespace dartfs::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Admission = OriginQueue::Admission;
using Slot = OriginQueue::Slot;

class OriginQueueTest : public ::testing::Test {
 protected:
  void Make(size_t connections, size_t queue = 100) {
    OriginQueue::Limits limits;
    limits.connections = connections;
    limits.queue = queue;
    limits.max_throttle = seconds(60);
    queue_.emplace(limits);
  }
  Admission Push(uint64_t id, Priority priority = Priority::kDemand) {
    return queue_->Push(id, priority, clock_.Now());
  }
  // IDs of all that may start now; their slots stay in slots_.
  std::vector<uint64_t> PopAll() {
    std::vector<uint64_t> ids;
    while (const auto slot = queue_->Pop(clock_.Now())) {
      ids.push_back(slot->id);
      slots_[slot->id] = *slot;
    }
    return ids;
  }
  void Answer(uint64_t id, int status, std::optional<Duration> retry_after = std::nullopt) {
    queue_->OnAnswer(slots_.at(id), status, retry_after, clock_.Now(), random_);
  }
  void Release(uint64_t id) {
    queue_->Release(slots_.at(id));
    slots_.erase(id);
  }
  void AnswerAndRelease(uint64_t id, int status, std::optional<Duration> retry_after = {}) {
    Answer(id, status, retry_after);
    Release(id);
  }
  bool Throttled() { return queue_->Throttled(clock_.Now()); }
  Duration Left() { return queue_->ThrottleLeft(clock_.Now()); }
  using Ids = std::vector<uint64_t>;

  ManualClock clock_;
  SeededRandom random_{7};
  std::optional<OriginQueue> queue_;
  std::map<uint64_t, Slot> slots_;
};

TEST_F(OriginQueueTest, DemandFirstThenReadAheadThenBackgroundOldestFirst) {
  Make(100);
  Push(1, Priority::kBackground);
  Push(2, Priority::kReadAhead);
  Push(3);
  Push(4, Priority::kReadAhead);
  Push(5);
  EXPECT_EQ(PopAll(), (Ids{3, 5, 2, 4, 1}));
}

TEST_F(OriginQueueTest, SlotsAreLimitedAndComeBack) {
  Make(2);
  for (uint64_t id = 1; id <= 4; ++id) Push(id);
  EXPECT_EQ(PopAll(), (Ids{1, 2}));
  Release(1);
  EXPECT_EQ(PopAll(), (Ids{3}));
  EXPECT_EQ(queue_->active(), 2U);
  EXPECT_EQ(queue_->queued(), 1U);
}

TEST_F(OriginQueueTest, ReadAheadLeavesTwoSlotsToDemand) {
  Make(5);
  for (uint64_t id = 1; id <= 3; ++id) Push(id, Priority::kReadAhead);
  for (uint64_t id = 4; id <= 6; ++id) Push(id, Priority::kBackground);
  EXPECT_EQ(PopAll(), (Ids{1, 2, 3}));
  Push(7);
  Push(8);
  Push(9);
  EXPECT_EQ(PopAll(), (Ids{7, 8})) << "two demands find a slot though read-ahead waits";
  Release(7);
  EXPECT_EQ(PopAll(), (Ids{9}));
  Release(1);
  EXPECT_EQ(PopAll(), (Ids{4}));
}

TEST_F(OriginQueueTest, ReadAheadGetsOneSlotWhereThereAreFew) {
  for (const size_t connections : {1U, 2U, 3U}) {
    Make(connections);
    Push(1, Priority::kReadAhead);
    Push(2, Priority::kReadAhead);
    EXPECT_EQ(PopAll(), (Ids{1})) << connections;
  }
}

TEST_F(OriginQueueTest, RaisedCallsKeepTheirAge) {
  Make(1);
  Push(1);
  PopAll();
  Push(2, Priority::kReadAhead);
  Push(3);
  EXPECT_TRUE(queue_->Raise(2, Priority::kDemand));
  EXPECT_FALSE(queue_->Raise(2, Priority::kBackground)) << "never lowers";
  EXPECT_FALSE(queue_->Raise(1, Priority::kDemand)) << "runs already";
  Release(1);
  EXPECT_EQ(PopAll(), (Ids{2}));
}

TEST_F(OriginQueueTest, RemovedCallsDoNotStart) {
  Make(4);
  Push(1);
  Push(2);
  EXPECT_TRUE(queue_->Remove(1));
  EXPECT_FALSE(queue_->Remove(1));
  EXPECT_EQ(PopAll(), (Ids{2}));
  EXPECT_FALSE(queue_->Remove(2)) << "it runs";
}

TEST_F(OriginQueueTest, FullQueueSaysSo) {
  Make(1, 2);
  EXPECT_EQ(Push(1), Admission::kQueued);
  EXPECT_EQ(Push(2), Admission::kQueued);
  EXPECT_EQ(Push(3), Admission::kFull);
  PopAll();
  EXPECT_EQ(Push(4), Admission::kQueued);
}

TEST_F(OriginQueueTest, RetryAfterHoldsEverythingThenOneProbe) {
  Make(4);
  Push(1);
  PopAll();
  Push(2);
  Push(3, Priority::kReadAhead);
  AnswerAndRelease(1, 429, seconds(3));
  EXPECT_TRUE(Throttled());
  EXPECT_EQ(Left(), seconds(3));
  EXPECT_EQ(Push(4, Priority::kReadAhead), Admission::kThrottled);
  EXPECT_EQ(Push(5, Priority::kBackground), Admission::kThrottled);
  EXPECT_EQ(Push(6), Admission::kQueued);
  EXPECT_EQ(queue_->TakeRefused(clock_.Now()), (Ids{3}));
  EXPECT_EQ(PopAll(), Ids{});
  EXPECT_EQ(queue_->WakeAt(clock_.Now()), clock_.Now() + seconds(3));

  clock_.Advance(seconds(3));
  EXPECT_EQ(PopAll(), (Ids{2})) << "the probe alone";
  EXPECT_TRUE(Throttled()) << "until it is answered";
  EXPECT_EQ(queue_->WakeAt(clock_.Now()), std::nullopt);
  Answer(2, 206);
  EXPECT_FALSE(Throttled());
  EXPECT_EQ(PopAll(), (Ids{6}));
}

TEST_F(OriginQueueTest, WithoutRetryAfterItDoublesWithJitterUpToTheLimit) {
  Make(4);
  Duration expected = milliseconds(500);
  for (uint64_t id = 1; id <= 12; ++id) {
    Push(id);
    ASSERT_EQ(PopAll(), (Ids{id}));
    AnswerAndRelease(id, 429);
    EXPECT_LE(Left(), expected) << id;
    EXPECT_GE(Left(), expected / 2) << id;
    clock_.Advance(Left());
    expected = std::min<Duration>(expected * 2, seconds(5));
  }
  Push(100);
  PopAll();
  AnswerAndRelease(100, 200);
  Push(101);
  PopAll();
  AnswerAndRelease(101, 429);
  EXPECT_LE(Left(), milliseconds(500)) << "a success begins anew";
}

TEST_F(OriginQueueTest, WhatThrottlesAndWhatDoesNot) {
  struct Case {
    int status;
    std::optional<Duration> retry_after;
    bool throttles;
  };
  for (const Case& c :
       {Case{429, std::nullopt, true}, Case{429, seconds(1), true}, Case{429, seconds(0), true},
        Case{503, seconds(1), true}, Case{503, std::nullopt, false}, Case{500, seconds(1), false},
        Case{404, std::nullopt, false}, Case{206, std::nullopt, false}}) {
    Make(4);
    Push(1);
    PopAll();
    AnswerAndRelease(1, c.status, c.retry_after);
    EXPECT_EQ(Throttled(), c.throttles) << c.status;
    slots_.clear();
  }
}

TEST_F(OriginQueueTest, LongWishesAreCut) {
  Make(4);
  Push(1);
  PopAll();
  AnswerAndRelease(1, 503, std::chrono::hours(24));
  EXPECT_EQ(Left(), seconds(60));
}

TEST_F(OriginQueueTest, ABurstOfRefusalsIsOneStep) {
  Make(16);
  for (uint64_t id = 1; id <= 16; ++id) Push(id);
  PopAll();
  for (uint64_t id = 1; id <= 15; ++id) AnswerAndRelease(id, 429);
  EXPECT_LE(Left(), milliseconds(500));
  AnswerAndRelease(16, 429, seconds(2));
  EXPECT_EQ(Left(), seconds(2)) << "a longer wish is heard all the same";
}

TEST_F(OriginQueueTest, AnswersToOlderCallsDoNotLiftTheHold) {
  Make(4);
  Push(1);
  Push(2);
  PopAll();
  AnswerAndRelease(1, 429, seconds(5));
  AnswerAndRelease(2, 206);
  EXPECT_TRUE(Throttled());
  EXPECT_EQ(Left(), seconds(5));
}

TEST_F(OriginQueueTest, AProbeThatBreaksIsFollowedByTheNext) {
  Make(4);
  Push(1);
  PopAll();
  AnswerAndRelease(1, 429, seconds(1));
  Push(2);
  Push(3);
  clock_.Advance(seconds(1));
  EXPECT_EQ(PopAll(), (Ids{2}));
  Release(2);  // the connection broke: no answer
  EXPECT_EQ(PopAll(), (Ids{3}));
  AnswerAndRelease(3, 500);
  EXPECT_FALSE(Throttled()) << "it talks again; failures are not this queue's matter";
}

TEST_F(OriginQueueTest, ReadAheadMayProbeWhenNobodyElseIsThere) {
  Make(4);
  Push(1, Priority::kReadAhead);
  PopAll();
  AnswerAndRelease(1, 429, seconds(1));
  clock_.Advance(seconds(1));
  EXPECT_FALSE(Throttled());
  EXPECT_EQ(Push(2, Priority::kReadAhead), Admission::kQueued);
  EXPECT_EQ(PopAll(), (Ids{2}));
  EXPECT_EQ(Push(3, Priority::kReadAhead), Admission::kThrottled) << "one probe";
}

// A model of all of it at random: never more than the limits, nothing lost, nothing twice.
TEST_F(OriginQueueTest, RandomOperationsLoseNothing) {
  SeededRandom chance(TestSeed());
  Make(6, 20);
  std::map<uint64_t, Priority> waiting;
  uint64_t next = 1;
  size_t ahead = 0;
  for (int step = 0; step < 20000; ++step) {
    clock_.Advance(milliseconds(chance.Below(50)));
    switch (chance.Below(6)) {
      case 0:
      case 1: {
        const auto priority = static_cast<Priority>(chance.Below(3));
        const Admission admission = Push(next, priority);
        if (admission == Admission::kQueued) waiting[next] = priority;
        ASSERT_EQ(admission == Admission::kFull, waiting.size() >= 20 && waiting.count(next) == 0 &&
                                                     admission != Admission::kThrottled);
        ++next;
        break;
      }
      case 2:
        if (const auto slot = queue_->Pop(clock_.Now())) {
          ASSERT_EQ(waiting.erase(slot->id), 1U);
          slots_[slot->id] = *slot;
          ahead += slot->priority != Priority::kDemand;
          ASSERT_LE(ahead, 4U);
          ASSERT_LE(slots_.size(), 6U);
        }
        break;
      case 3:
        if (!slots_.empty()) {
          const Slot slot = slots_.begin()->second;
          constexpr int kStatuses[] = {200, 206, 500, 429, 0};
          const int status = kStatuses[chance.Below(5)];
          if (status != 0) Answer(slot.id, status);
          ahead -= slot.priority != Priority::kDemand;
          Release(slot.id);
          for (const uint64_t id : queue_->TakeRefused(clock_.Now())) {
            ASSERT_EQ(waiting.erase(id), 1U);
          }
        }
        break;
      case 4:
        if (!waiting.empty() && chance.Below(4) == 0) {
          ASSERT_TRUE(queue_->Remove(waiting.begin()->first));
          waiting.erase(waiting.begin());
        }
        break;
      default:
        if (!waiting.empty()) queue_->Raise(waiting.begin()->first, Priority::kDemand);
    }
    ASSERT_EQ(queue_->queued(), waiting.size());
    ASSERT_EQ(queue_->active(), slots_.size());
  }
  // It drains: with every probe answered well, all that waits starts in the end.
  while (!slots_.empty()) AnswerAndRelease(slots_.begin()->first, 200);
  for (int round = 0; round < 100 && queue_->queued() > 0; ++round) {
    clock_.Advance(seconds(60));
    for (const uint64_t id : PopAll()) AnswerAndRelease(id, 200);
  }
  EXPECT_TRUE(queue_->idle());
}

}  // namespace
}  // namespace dartfs::core
