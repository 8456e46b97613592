#include "core/engine/memory_budget.h"

#include <gtest/gtest.h>

#include <vector>

#include "fake/manual_scheduler.h"

namespace dartfs::core {
namespace {

constexpr size_t kBlock = 16384;

class MemoryBudgetTest : public ::testing::Test {
 protected:
  SharedBuffer Take(const std::string& group, Priority priority = Priority::kDemand) {
    return budget_.TryAcquire(group, kBlock, priority);
  }
  ManualScheduler scheduler_;
  MemoryBudget budget_{8 * kBlock, kBlock, scheduler_};
};

TEST_F(MemoryBudgetTest, LimitHolds) {
  std::vector<SharedBuffer> held;
  for (int i = 0; i < 8; ++i) {
    held.push_back(Take(i % 2 == 0 ? "a" : "b"));
    ASSERT_NE(held.back(), nullptr) << i;
  }
  EXPECT_EQ(Take("c"), nullptr);
  EXPECT_EQ(budget_.used_bytes(), 8 * kBlock);
  held.clear();
  EXPECT_EQ(budget_.used_bytes(), 0u);
}

TEST_F(MemoryBudgetTest, OneGroupHoldsHalfAtMost) {
  std::vector<SharedBuffer> held;
  for (int i = 0; i < 4; ++i) held.push_back(Take("stalled"));
  ASSERT_NE(held.back(), nullptr);
  EXPECT_EQ(Take("stalled"), nullptr);
  EXPECT_NE(Take("healthy"), nullptr);
}

TEST_F(MemoryBudgetTest, ReadAheadLeavesAQuarter) {
  std::vector<SharedBuffer> held;
  for (int i = 0; i < 6; ++i) held.push_back(Take(i < 3 ? "a" : "b", Priority::kReadAhead));
  ASSERT_NE(held.back(), nullptr);
  EXPECT_EQ(Take("c", Priority::kReadAhead), nullptr);
  EXPECT_NE(Take("c", Priority::kDemand), nullptr);
}

TEST_F(MemoryBudgetTest, OneBufferIsAlwaysGranted) {
  MemoryBudget tiny(kBlock / 2, kBlock, scheduler_);
  const SharedBuffer held = tiny.TryAcquire("a", kBlock, Priority::kReadAhead);
  EXPECT_NE(held, nullptr);
  EXPECT_EQ(tiny.TryAcquire("b", kBlock, Priority::kDemand), nullptr);
}

TEST_F(MemoryBudgetTest, AWaitThatIsRaisedIsServedAsWhatItIsNow) {
  std::vector<SharedBuffer> held;
  for (int i = 0; i < 8; ++i) held.push_back(Take(i % 2 == 0 ? "a" : "b"));
  SharedBuffer granted;
  const uint64_t wait = budget_.Acquire("c", kBlock, Priority::kReadAhead,
                                        [&](SharedBuffer buffer) { granted = std::move(buffer); });
  held.pop_back();  // 7 of 8: no room for read-ahead
  scheduler_.RunReady();
  ASSERT_EQ(granted, nullptr);
  budget_.RaiseWait(wait, Priority::kDemand);
  scheduler_.RunReady();
  EXPECT_NE(granted, nullptr);
}

TEST_F(MemoryBudgetTest, PooledBuffersCountAndGoWhenIdle) {
  std::vector<SharedBuffer> held;
  for (int i = 0; i < 8; ++i) held.push_back(Take(i % 2 == 0 ? "a" : "b"));
  held.clear();
  EXPECT_EQ(budget_.pooled_bytes(), 8 * kBlock);
  const SharedBuffer small = budget_.TryAcquire("a", kBlock / 2, Priority::kDemand);
  EXPECT_LE(budget_.used_bytes() + budget_.pooled_bytes(), budget_.limit_bytes());
  EXPECT_GT(budget_.pooled_bytes(), 0u);
  held.push_back(Take("b"));
  held.clear();
  scheduler_.Advance(std::chrono::minutes(2));
  EXPECT_GT(budget_.pooled_bytes(), 0u) << "something is still held";
}

TEST_F(MemoryBudgetTest, AnIdleBudgetHoldsNothing) {
  Take("a") = nullptr;
  ASSERT_EQ(budget_.pooled_bytes(), kBlock);
  scheduler_.Advance(std::chrono::minutes(2));
  EXPECT_EQ(budget_.pooled_bytes(), 0u);
}

TEST_F(MemoryBudgetTest, DemandIsServedBeforeReadAheadAndAFullGroupHoldsUpNobody) {
  std::vector<SharedBuffer> held;
  for (int i = 0; i < 4; ++i) held.push_back(Take("a"));
  for (int i = 0; i < 4; ++i) held.push_back(Take("b"));
  std::vector<std::string> order;
  std::vector<SharedBuffer> granted;
  const auto wait = [&](const std::string& group, Priority priority, const std::string& name) {
    return budget_.Acquire(group, kBlock, priority, [&, name](SharedBuffer buffer) {
      order.push_back(name);
      granted.push_back(std::move(buffer));
    });
  };
  wait("c", Priority::kReadAhead, "ahead");
  wait("a", Priority::kDemand, "full group");
  wait("c", Priority::kDemand, "demand");
  const uint64_t cancelled = wait("c", Priority::kDemand, "cancelled");
  EXPECT_TRUE(budget_.CancelWait(cancelled));
  EXPECT_FALSE(budget_.CancelWait(cancelled));
  scheduler_.RunReady();
  EXPECT_TRUE(order.empty());
  held.resize(4);  // those of b go
  scheduler_.RunReady();
  EXPECT_EQ(order, (std::vector<std::string>{"demand", "ahead"}));
  held.clear();
  scheduler_.RunReady();
  EXPECT_EQ(order.back(), "full group");
}

TEST_F(MemoryBudgetTest, BuffersOutliveTheBudget) {
  auto budget = std::make_unique<MemoryBudget>(4 * kBlock, kBlock, scheduler_);
  SharedBuffer held = budget->TryAcquire("a", kBlock, Priority::kDemand);
  budget->Acquire("a", 4 * kBlock, Priority::kDemand, [](SharedBuffer) { FAIL(); });
  budget.reset();
  held.reset();
  scheduler_.RunReady();
}

}  // namespace
}  // namespace dartfs::core
