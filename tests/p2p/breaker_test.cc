#include "p2p/breaker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace dartfs::p2p {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class BreakerTest : public ::testing::Test {
 protected:
  void Softly(int times) {
    for (int i = 0; i < times; ++i) breaker_.OnSoftFailure("p", now_);
  }
  bool Allowed() const { return breaker_.Allows("p", now_); }
  Circuit State() const { return breaker_.Of("p", now_); }

  core::TimePoint now_ = core::TimePoint(seconds(1000));
  Breaker breaker_{BreakerOptions{.soft_failures = 5, .cooldown = seconds(5), .max_peers = 4}};
};

TEST_F(BreakerTest, SoftFailuresInARowOpenIt) {
  Softly(4);
  EXPECT_TRUE(Allowed());
  Softly(1);
  EXPECT_FALSE(Allowed());
  EXPECT_EQ(State(), Circuit::kOpen);
  EXPECT_TRUE(breaker_.Allows("another", now_));
}

TEST_F(BreakerTest, AnAnswerBetweenThemStartsTheCountAnew) {
  Softly(4);
  breaker_.OnAnswered("p", now_);
  Softly(4);
  EXPECT_TRUE(Allowed());
}

TEST_F(BreakerTest, AHardFailureOpensItAtOnce) {
  breaker_.OnHardFailure("p", now_);
  EXPECT_FALSE(Allowed());
  now_ += seconds(5) - milliseconds(1);
  EXPECT_FALSE(Allowed());
  now_ += milliseconds(1);
  EXPECT_TRUE(Allowed());
  EXPECT_EQ(State(), Circuit::kHalfOpen);
}

TEST_F(BreakerTest, OneTrialDecides) {
  breaker_.OnHardFailure("p", now_);
  now_ += seconds(5);
  breaker_.OnSent("p", now_);
  EXPECT_FALSE(Allowed()) << "somebody tries already";
  EXPECT_EQ(State(), Circuit::kHalfOpen);
  breaker_.OnSoftFailure("p", now_);
  EXPECT_EQ(State(), Circuit::kOpen) << "one soft failure is enough here";
  now_ += seconds(5);
  breaker_.OnSent("p", now_);
  breaker_.OnAnswered("p", now_);
  EXPECT_EQ(State(), Circuit::kClosed);
  EXPECT_EQ(breaker_.remembered(), 0U);
}

TEST_F(BreakerTest, ATrialThatIsCancelledMakesRoomAtOnceAndOneThatIsLostLater) {
  breaker_.OnHardFailure("p", now_);
  now_ += seconds(5);
  breaker_.OnSent("p", now_);
  breaker_.OnCancelled("p", true);
  EXPECT_TRUE(Allowed());
  breaker_.OnSent("p", now_);
  now_ += seconds(5);
  EXPECT_TRUE(Allowed()) << "nobody told how it went";
}

TEST_F(BreakerTest, ACancelledRequestChargesNobody) {
  Softly(4);
  for (int i = 0; i < 10; ++i) {
    breaker_.OnSent("p", now_);
    breaker_.OnCancelled("p", true);
  }
  EXPECT_TRUE(Allowed());
  Softly(1);
  EXPECT_FALSE(Allowed()) << "nor does it excuse";
}

TEST_F(BreakerTest, FailuresOfEarlierRequestsDoNotLengthenIt) {
  Softly(5);
  now_ += seconds(4);
  Softly(3);
  breaker_.OnHardFailure("p", now_);
  now_ += seconds(1);
  EXPECT_TRUE(Allowed());
}

TEST_F(BreakerTest, ASilentPeerIsSuspectUntilItAnswersSomething) {
  breaker_.OnSilent("p", now_);
  EXPECT_TRUE(breaker_.IsSuspect("p"));
  EXPECT_TRUE(Allowed()) << "no circuit opens for that";
  now_ += seconds(3600);
  EXPECT_TRUE(breaker_.IsSuspect("p"));
  breaker_.OnCancelled("p", true);
  EXPECT_TRUE(breaker_.IsSuspect("p"));
  breaker_.OnAnswered("p", now_);
  EXPECT_FALSE(breaker_.IsSuspect("p"));
  breaker_.OnSilent("p", now_);
  breaker_.Forget("p");
  EXPECT_FALSE(breaker_.IsSuspect("p"));
}

// Of a burst some fail and some do not, in any order.
TEST_F(BreakerTest, AnswersToWhatWasSentBeforeItOpenedDoNotCloseIt) {
  const core::TimePoint sent = now_;
  now_ += seconds(1);
  breaker_.OnWrongBytes("p", now_);
  breaker_.OnAnswered("p", sent);
  EXPECT_EQ(State(), Circuit::kOpen);
  now_ += seconds(5);
  EXPECT_TRUE(breaker_.OnSent("p", now_));
  breaker_.OnAnswered("p", now_);
  EXPECT_EQ(State(), Circuit::kClosed);
}

TEST_F(BreakerTest, BytesAloneForgiveNothing) {
  Softly(4);
  breaker_.OnBytes("p");
  Softly(1);
  EXPECT_EQ(State(), Circuit::kOpen);
  breaker_.OnBytes("p");
  EXPECT_EQ(State(), Circuit::kOpen);
}

TEST_F(BreakerTest, OnlyTheTrialMakesRoomForAnother) {
  breaker_.OnHardFailure("p", now_);
  EXPECT_FALSE(breaker_.OnSent("p", now_)) << "it is no trial yet";
  now_ += seconds(5);
  EXPECT_TRUE(breaker_.OnSent("p", now_));
  breaker_.OnCancelled("p", false);
  EXPECT_FALSE(Allowed()) << "an old request of somebody else's";
  breaker_.OnCancelled("p", true);
  EXPECT_TRUE(Allowed());
}

// As it answers for its roster, though nobody has asked it for a block since.
TEST_F(BreakerTest, WhoIsReachedAgainIsClosedUnlessThereWasMoreWrong) {
  breaker_.OnHardFailure("p", now_);
  breaker_.OnReachable("p", now_);
  EXPECT_EQ(State(), Circuit::kClosed);
  EXPECT_EQ(breaker_.remembered(), 0U);
  Softly(5);
  breaker_.OnReachable("p", now_);
  EXPECT_EQ(State(), Circuit::kOpen) << "it was reached all the time";
  now_ += seconds(5);
  breaker_.OnReachable("p", now_);
  EXPECT_EQ(State(), Circuit::kClosed) << "after the cool-down";
  Softly(1);
  EXPECT_EQ(State(), Circuit::kOpen) << "on probation";
  breaker_.OnAnswered("p", now_);
  breaker_.OnWrongBytes("p", now_);
  breaker_.OnReachable("p", now_);
  EXPECT_EQ(State(), Circuit::kOpen) << "liars answer too";
  now_ += seconds(5);
  breaker_.OnReachable("p", now_);
  EXPECT_EQ(State(), Circuit::kHalfOpen) << "a trial decides";
  breaker_.OnHardFailure("p", now_);
  breaker_.OnReachable("p", now_);
  EXPECT_EQ(State(), Circuit::kOpen) << "and are away sometimes";
}

TEST_F(BreakerTest, WhoCallsIsNoSuspectAndMayBeUnreachableAllTheSame) {
  breaker_.OnSilent("p", now_);
  breaker_.OnCalledBy("p");
  EXPECT_FALSE(breaker_.IsSuspect("p"));
  EXPECT_EQ(breaker_.remembered(), 0U);
  breaker_.OnHardFailure("p", now_);
  breaker_.OnCalledBy("p");
  EXPECT_EQ(State(), Circuit::kOpen);
}

TEST_F(BreakerTest, WhoIsReachedIsNoSuspect) {
  breaker_.OnSilent("p", now_);
  breaker_.OnReachable("p", now_);
  EXPECT_FALSE(breaker_.IsSuspect("p"));
  EXPECT_EQ(breaker_.remembered(), 0U);
  Softly(4);
  breaker_.OnSilent("p", now_);
  breaker_.OnReachable("p", now_);
  Softly(1);
  EXPECT_FALSE(Allowed()) << "its failures are remembered";
  breaker_.OnReachable("unknown", now_);
}

TEST_F(BreakerTest, RemembersOnlySoMany) {
  breaker_.OnHardFailure("late", now_ + seconds(60));
  breaker_.OnHardFailure("early", now_);
  Softly(1);
  for (int i = 0; i < 100; ++i) breaker_.OnHardFailure("x" + std::to_string(i), now_ + seconds(1));
  EXPECT_EQ(breaker_.remembered(), 4U);
  EXPECT_EQ(breaker_.Of("late", now_), Circuit::kOpen) << "the longest closed is kept";
  EXPECT_EQ(breaker_.Of("early", now_), Circuit::kClosed);
  EXPECT_EQ(breaker_.CountOpen(now_), 4U);
}

}  // namespace
}  // namespace dartfs::p2p
