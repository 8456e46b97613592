#include "core/io/origin_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fake/manual_clock.h"
#include "fake/seeded_random.h"

namespace dartfs::core {
namespace {

using std::chrono::seconds;

class OriginTableTest : public ::testing::Test {
 protected:
  OriginTable::Origin* Push(const std::string& authority, uint64_t id,
                            Priority priority = Priority::kDemand) {
    OriginTable::Origin* origin = table_.FindOrAdd(authority, clock_.Now());
    if (origin == nullptr) return nullptr;
    origin->queue.Push(id, priority, clock_.Now());
    table_.Touch(*origin, clock_.Now());
    return origin;
  }
  std::vector<OriginTable::Ready> TakeReady() {
    std::vector<OriginTable::Ready> ready;
    refused_.clear();
    table_.TakeReady(clock_.Now(), &ready, &refused_);
    return ready;
  }
  void Finish(const OriginTable::Ready& ready, int status, std::optional<Duration> wait = {}) {
    ready.origin->queue.OnAnswer(ready.slot, status, wait, clock_.Now(), random_);
    ready.origin->queue.Release(ready.slot);
    table_.Touch(*ready.origin, clock_.Now());
  }

  ManualClock clock_;
  SeededRandom random_{1};
  std::vector<uint64_t> refused_;
  OriginTable table_{OriginQueue::Limits{2, 8, seconds(60)}, 3};
};

TEST_F(OriginTableTest, ForgetsTheOneIdleLongest) {
  for (const char* authority : {"a", "b", "c"}) {
    Push(authority, 1);
    for (const auto& ready : TakeReady()) Finish(ready, 200);
    clock_.Advance(seconds(1));
  }
  ASSERT_NE(Push("d", 2), nullptr);
  EXPECT_EQ(table_.size(), 3U);
  EXPECT_EQ(table_.Find("a"), nullptr);
  EXPECT_NE(table_.Find("b"), nullptr);
}

TEST_F(OriginTableTest, KeepsBusyOnesAndRefusesWhenAllAre) {
  Push("a", 1);
  Push("b", 2);
  Push("c", 3);
  EXPECT_EQ(Push("d", 4), nullptr);
  const auto ready = TakeReady();
  ASSERT_EQ(ready.size(), 3U);
  EXPECT_EQ(Push("d", 4), nullptr) << "running ones are not idle either";
  Finish(ready[1], 200);
  EXPECT_NE(Push("d", 4), nullptr);
  EXPECT_NE(table_.Find(ready[0].origin->status.authority), nullptr);
}

TEST_F(OriginTableTest, ForgetsAThrottledOneLast) {
  Push("a", 1);
  Finish(TakeReady()[0], 429, seconds(30));
  for (const char* authority : {"b", "c"}) {
    clock_.Advance(seconds(1));
    Push(authority, 1);
    Finish(TakeReady()[0], 200);
  }
  Push("d", 2);
  EXPECT_NE(table_.Find("a"), nullptr);
  EXPECT_EQ(table_.Find("b"), nullptr);
}

TEST_F(OriginTableTest, WakesWhenAThrottleEnds) {
  Push("a", 1);
  Finish(TakeReady()[0], 429, seconds(30));
  Push("a", 2);
  Push("b", 3);
  ASSERT_EQ(TakeReady().size(), 1U) << "b alone";
  EXPECT_EQ(table_.WakeAt(), clock_.Now() + seconds(30));
  EXPECT_TRUE(TakeReady().empty());
  clock_.Advance(seconds(30));
  const auto ready = TakeReady();
  ASSERT_EQ(ready.size(), 1U);
  EXPECT_EQ(ready[0].slot.id, 2U);
  EXPECT_EQ(table_.WakeAt(), std::nullopt);
}

TEST_F(OriginTableTest, ReportsReadAheadThatAThrottleEnds) {
  Push("a", 1);
  Push("a", 2);
  const auto ready = TakeReady();
  Push("a", 3, Priority::kReadAhead);
  Finish(ready[0], 429, seconds(5));
  EXPECT_TRUE(TakeReady().empty());
  EXPECT_EQ(refused_, (std::vector<uint64_t>{3}));
  EXPECT_EQ(table_.Snapshot(clock_.Now())[0].refused, 1U);
}

TEST_F(OriginTableTest, SnapshotIsForPeople) {
  Push("b", 1);
  Push("a", 2);
  Push("a", 3);
  Push("a", 4);
  TakeReady();
  OriginTable::Origin* a = table_.Find("a");
  table_.RecordError(*a, "reset", clock_.Now());
  clock_.Advance(seconds(2));
  const auto all = table_.Snapshot(clock_.Now());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].authority, "a");
  EXPECT_EQ(all[0].active, 2U);
  EXPECT_EQ(all[0].queued, 1U);
  EXPECT_EQ(all[0].failures, 1U);
  EXPECT_EQ(all[0].last_error, "reset");
  EXPECT_EQ(all[0].last_error_age_ms, 2000);
  EXPECT_EQ(all[1].last_error_age_ms, -1);
}

}  // namespace
}  // namespace dartfs::core
