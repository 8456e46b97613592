#include "app/watchdog.h"

#include <gtest/gtest.h>

#include "fake/manual_scheduler.h"

namespace dartfs::app {
namespace {

using std::chrono::seconds;

class WatchdogTest : public testing::Test {
 protected:
  // The main loop comes round after so long.
  void Round(core::Duration after) {
    scheduler_.Advance(after);
    watchdog_.Tick();
  }

  core::ManualScheduler scheduler_;
  int told_ = 0;
  Watchdog watchdog_{seconds(30), scheduler_, [this] { ++told_; }};
};

TEST_F(WatchdogTest, TellsThriceInTheTime) {
  watchdog_.Tick();
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(watchdog_.Left(), seconds(10));
  for (int round = 0; round < 12; ++round) Round(seconds(5));
  EXPECT_EQ(told_, 7);
}

TEST_F(WatchdogTest, RoundsInBetweenTellNothing) {
  watchdog_.Tick();
  for (int round = 0; round < 9; ++round) Round(seconds(1));
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(watchdog_.Left(), seconds(1));
}

TEST_F(WatchdogTest, ASchedulerThatHangsIsNotToldOfAsWell) {
  watchdog_.Tick();
  // Time passes without the scheduler doing what it was given.
  for (int round = 0; round < 5; ++round) {
    scheduler_.clock().Advance(seconds(10));
    watchdog_.Tick();
  }
  EXPECT_EQ(told_, 1);
  scheduler_.RunReady();
  Round(seconds(10));
  EXPECT_EQ(told_, 2) << "well again";
}

TEST(Watchdog, NobodyListens) {
  core::ManualScheduler scheduler;
  int told = 0;
  Watchdog watchdog(std::nullopt, scheduler, [&told] { ++told; });
  watchdog.Tick();
  EXPECT_EQ(told, 0);
  EXPECT_FALSE(watchdog.Left());
}

}  // namespace
}  // namespace dartfs::app
