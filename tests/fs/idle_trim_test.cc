#include "fs/idle_trim.h"

#include <gtest/gtest.h>

#include "fake/manual_scheduler.h"

namespace dartfs::fs {
namespace {

class IdleTrimTest : public ::testing::Test {
 protected:
  core::ManualScheduler scheduler_;
  int trims_ = 0;
  IdleTrim trim_{scheduler_, [this] { ++trims_; }};
};

TEST_F(IdleTrimTest, OnceQuietAfterManyNames) {
  for (int i = 0; i < 3; ++i) {
    for (uint64_t n = 0; n < IdleTrim::kWorthIt; ++n) trim_.Note(1);
    scheduler_.Advance(IdleTrim::kQuiet / 2);
    EXPECT_EQ(trims_, i);
    scheduler_.Advance(IdleTrim::kQuiet);
    EXPECT_EQ(trims_, i + 1);
  }
}

TEST_F(IdleTrimTest, NotForAFew) {
  trim_.Note(IdleTrim::kWorthIt - 1);
  scheduler_.Advance(IdleTrim::kQuiet * 10);
  EXPECT_EQ(trims_, 0);
  trim_.Note(1);
  scheduler_.Advance(IdleTrim::kQuiet);
  EXPECT_EQ(trims_, 1);
}

TEST_F(IdleTrimTest, NotWhileNamesComeAndGo) {
  trim_.Note(IdleTrim::kWorthIt);
  for (int i = 0; i < 20; ++i) {
    scheduler_.Advance(IdleTrim::kQuiet * 3 / 4);
    trim_.Note(1);
  }
  EXPECT_EQ(trims_, 0);
  scheduler_.Advance(IdleTrim::kQuiet * 2);
  EXPECT_EQ(trims_, 1);
}

}  // namespace
}  // namespace dartfs::fs
