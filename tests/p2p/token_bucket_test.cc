#include "p2p/token_bucket.h"

#include <gtest/gtest.h>

#include <chrono>

namespace dartfs::p2p {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr core::TimePoint kStart = core::TimePoint(seconds(1000));

int TakeAll(TokenBucket& bucket, bool urgent, core::TimePoint now) {
  int taken = 0;
  while (bucket.Take(urgent, now)) ++taken;
  return taken;
}

TEST(TokenBucket, TheRateHoldsAfterTheBurst) {
  TokenBucket bucket({.per_second = 10, .burst = 5, .reserve = 0}, kStart);
  EXPECT_EQ(TakeAll(bucket, true, kStart), 5);
  int taken = 0;
  for (core::TimePoint now = kStart; now < kStart + seconds(60); now += milliseconds(7)) {
    taken += TakeAll(bucket, true, now);
  }
  EXPECT_NEAR(taken, 600, 2);
  EXPECT_EQ(TakeAll(bucket, true, kStart + seconds(3600)), 5) << "no more is saved";
}

TEST(TokenBucket, TheReserveIsForWhatIsUrgent) {
  TokenBucket bucket({.per_second = 1, .burst = 8, .reserve = 4}, kStart);
  EXPECT_EQ(TakeAll(bucket, false, kStart), 4);
  EXPECT_EQ(TakeAll(bucket, true, kStart), 4);
  EXPECT_EQ(bucket.NextAt(true, kStart), kStart + seconds(1));
  EXPECT_EQ(bucket.NextAt(false, kStart), kStart + seconds(5));
}

TEST(TokenBucket, NextAtIsWhenTakeSucceeds) {
  TokenBucket bucket({.per_second = 3, .burst = 2, .reserve = 1}, kStart);
  core::TimePoint now = kStart;
  for (int i = 0; i < 1000; ++i) {
    const bool urgent = i % 3 != 0;
    const core::TimePoint next = bucket.NextAt(urgent, now);
    if (next > now) {
      EXPECT_FALSE(bucket.Take(urgent, now));
    }
    now = next;
    ASSERT_TRUE(bucket.Take(urgent, now)) << i;
  }
}

TEST(TokenBucket, ClocksThatGoBackGiveNothing) {
  TokenBucket bucket({.per_second = 10, .burst = 1, .reserve = 0}, kStart);
  EXPECT_TRUE(bucket.Take(true, kStart));
  EXPECT_FALSE(bucket.Take(true, kStart - seconds(5)));
  EXPECT_FALSE(bucket.Take(true, kStart));
  EXPECT_TRUE(bucket.Take(true, kStart + milliseconds(100)));
}

TEST(TokenBucket, NonsenseIsMadeUsable) {
  TokenBucket bucket({.per_second = -1, .burst = 0, .reserve = 99}, kStart);
  EXPECT_TRUE(bucket.Take(false, kStart));
  EXPECT_FALSE(bucket.Take(true, kStart));
  EXPECT_LT(bucket.NextAt(false, kStart), kStart + seconds(1001));
}

}  // namespace
}  // namespace dartfs::p2p
