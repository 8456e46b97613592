#include "core/engine/held_blocks.h"

#include <gtest/gtest.h>

#include <vector>

#include "fake/manual_scheduler.h"

namespace dartfs::core {
namespace {

class HeldBlocksTest : public ::testing::Test {
 protected:
  HeldBlocks::Id Add(int name, uint64_t bytes, const std::string& group = "a") {
    return held_.Add(group, bytes, [this, name] { dropped_.push_back(name); });
  }
  ManualScheduler scheduler_;
  HeldBlocks held_{100, scheduler_};
  std::vector<int> dropped_;
};

TEST_F(HeldBlocksTest, TheOldestGoWhenTheLimitIsPassed) {
  Add(1, 40);
  Add(2, 40);
  EXPECT_TRUE(dropped_.empty());
  Add(3, 40);
  EXPECT_EQ(dropped_, std::vector<int>{1});
  EXPECT_EQ(held_.bytes(), 80u);
}

TEST_F(HeldBlocksTest, WhatIsReadIsNotDroppedAgain) {
  const auto id = Add(1, 40);
  Add(2, 40);
  held_.Remove(id);
  held_.Remove(id);
  EXPECT_EQ(held_.bytes(), 40u);
  Add(3, 100);
  EXPECT_EQ(dropped_, std::vector<int>{2});
}

TEST_F(HeldBlocksTest, MemoryThatIsWantedIsLetGoSoon) {
  Add(1, 30);
  Add(2, 30);
  Add(3, 30);
  held_.ReleaseSoon("a", 20);
  held_.ReleaseSoon("a", 20);
  EXPECT_TRUE(dropped_.empty());  // not under the caller's locks
  scheduler_.RunReady();
  EXPECT_EQ(dropped_, (std::vector<int>{1, 2}));
}

TEST_F(HeldBlocksTest, TheGroupThatWantsMemoryGivesItsOwnFirst) {
  Add(1, 30, "other");
  Add(2, 30, "mine");
  held_.ReleaseSoon("mine", 20);
  scheduler_.RunReady();
  EXPECT_EQ(dropped_, std::vector<int>{2});
  held_.ReleaseSoon("mine", 20);
  scheduler_.RunReady();
  EXPECT_EQ(dropped_, (std::vector<int>{2, 1}));
}

TEST_F(HeldBlocksTest, WhatNobodyReadsForAWhileGoes) {
  Add(1, 30);
  scheduler_.Advance(HeldBlocks::kIdle / 2);
  Add(2, 30);
  scheduler_.Advance(HeldBlocks::kIdle / 2);
  EXPECT_EQ(dropped_, std::vector<int>{1});
  scheduler_.Advance(HeldBlocks::kIdle);
  EXPECT_EQ(dropped_, (std::vector<int>{1, 2}));
  EXPECT_EQ(held_.bytes(), 0u);
}

}  // namespace
}  // namespace dartfs::core
