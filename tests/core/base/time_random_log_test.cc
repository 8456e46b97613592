// The small process-wide sources: clocks, random numbers, the log's level; and their fakes.
#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/thread.h"
#include "core/base/time.h"
#include "fake/manual_clock.h"
#include "fake/seeded_random.h"

namespace dartfs::core {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(RealClock, IsTheBootClock) {
  timespec before{};
  timespec after{};
  clock_gettime(CLOCK_BOOTTIME, &before);
  const Duration now = RealClock().Now().time_since_epoch();
  clock_gettime(CLOCK_BOOTTIME, &after);
  EXPECT_GE(now, std::chrono::seconds(before.tv_sec) + Duration(before.tv_nsec));
  EXPECT_LE(now, std::chrono::seconds(after.tv_sec) + Duration(after.tv_nsec));
}

TEST(RealClock, NoDeadlineIsFarFromOverflow) {
  EXPECT_GT(kNoDeadline, RealClock().Now() + hours(24 * 365 * 100));
  EXPECT_GT(kNoDeadline + hours(24 * 365 * 100), kNoDeadline);
}

TEST(Time, ToMillisCutsTowardsZero) {
  EXPECT_EQ(ToMillis(std::chrono::microseconds(1999)), 1);
  EXPECT_EQ(ToMillis(hours(1)), 3'600'000);
}

TEST(ManualClock, MovesBothClocksOrWallTimeAlone) {
  ManualClock clock;
  const TimePoint boot = clock.Now();
  const auto wall = clock.WallNow();
  clock.Advance(milliseconds(1500));
  EXPECT_EQ(clock.Now() - boot, milliseconds(1500));
  EXPECT_EQ(clock.WallNow() - wall, milliseconds(1500));
  clock.ShiftWall(-hours(2));
  EXPECT_EQ(clock.Now() - boot, milliseconds(1500));
  EXPECT_EQ(clock.WallNow() - wall, milliseconds(1500) - hours(2));
}

TEST(RealRandom, DoesNotRepeatAlsoAcrossThreads) {
  constexpr size_t kEach = 1000;
  std::array<std::vector<uint64_t>, 4> drawn;
  std::vector<std::thread> threads;
  for (auto& mine : drawn) {
    threads.push_back(StartThread("draw", [&mine] {
      for (size_t i = 0; i < kEach; ++i) mine.push_back(RealRandom().Next());
    }));
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> all;
  for (const auto& mine : drawn) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), kEach * drawn.size());
}

TEST(Random, DoubleLiesInTheHalfOpenInterval) {
  struct Fixed final : Random {
    explicit Fixed(uint64_t v) : value(v) {}
    uint64_t Next() override { return value; }
    uint64_t value;
  };
  EXPECT_EQ(Fixed(0).NextDouble(), 0.0);
  EXPECT_EQ(Fixed(uint64_t{1} << 63).NextDouble(), 0.5);
  EXPECT_LT(Fixed(UINT64_MAX).NextDouble(), 1.0);
}

TEST(SeededRandom, RepeatsForItsSeedOnly) {
  SeededRandom a(7);
  SeededRandom b(7);
  SeededRandom c(8);
  const uint64_t first = a.Next();
  EXPECT_EQ(first, b.Next());
  EXPECT_NE(first, c.Next());
  for (int i = 0; i < 100; ++i) EXPECT_LT(a.Below(3), 3U);
}

TEST(Log, TakesItsFiveLevelsOnly) {
  const auto before = spdlog::get_level();
  for (const char* level : {"trace", "debug", "info", "warn", "error"}) {
    EXPECT_TRUE(SetLogLevel(level)) << level;
  }
  EXPECT_EQ(spdlog::get_level(), spdlog::level::err);
  EXPECT_TRUE(SetLogLevel("warn"));
  EXPECT_EQ(spdlog::get_level(), spdlog::level::warn);
  for (const char* level : {"", "off", "WARN", "warning", "2"}) {
    EXPECT_FALSE(SetLogLevel(level)) << level;
  }
  EXPECT_EQ(spdlog::get_level(), spdlog::level::warn);
  spdlog::set_level(before);
}

TEST(Log, GoesToStderrLineByLine) {
  const auto before = spdlog::default_logger();
  LogToStderr();
  ::testing::internal::CaptureStderr();
  LOG_WARN("disk {} is full", 3);
  const std::string text = ::testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  EXPECT_NE(text.find(" warning disk 3 is full\n"), std::string::npos) << text;
}

TEST(CheckDeathTest, SaysThePlaceAndTheExpression) {
  DARTFS_CHECK(1 + 1 == 2);
  EXPECT_DEATH(DARTFS_CHECK(1 + 1 == 3), "time_random_log_test.cc:[0-9]+: check failed: 1 \\+ 1");
}

}  // namespace
}  // namespace dartfs::core
