// Of routes: peers that are slow or silent.
#include "p2p/route.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "p2p/route_fixture.h"

namespace dartfs::p2p {
namespace {

TEST_F(RouteTest, ASlowParentIsHedgedOnceTheEstimatorKnows) {
  Begin("node-07");
  Steps();
  EXPECT_EQ(Pass(seconds(1)), "") << "it knows nothing yet";
  Learn();
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(route_->wake_at(now_), now_ + milliseconds(40));
  EXPECT_EQ(Pass(milliseconds(39)), "");
  EXPECT_EQ(Pass(milliseconds(1)), "04");
  EXPECT_EQ(route_->sources().size(), 2U);
  route_->OnBytes(2, now_);
  route_->OnServed(2, now_);
  EXPECT_EQ(Steps(), "-1");
  EXPECT_EQ(route_->counts().backup_won, 1U);
  EXPECT_TRUE(peers_->breaker().IsSuspect("node-05")) << "lost the race without a byte";
  EXPECT_EQ(CircuitOf("node-05"), Circuit::kClosed) << "and is not charged";
}

TEST_F(RouteTest, AHedgeThatTheBudgetDeniesIsNotTriedAgain) {
  Learn();
  ASSERT_TRUE(peers_->hedge_budget().Take());
  Begin("node-07");
  Steps();
  peers_->OnHeard("node-05", now_ + milliseconds(20));  // by another block
  EXPECT_EQ(Pass(milliseconds(50)), "");
  for (int i = 0; i < 20; ++i) peers_->hedge_budget().OnFetch();
  EXPECT_EQ(Pass(milliseconds(50)), "");
  EXPECT_EQ(route_->wake_at(now_), core::TimePoint(seconds(1002))) << "when it owes bytes";
}

TEST_F(RouteTest, ProgressIsNeverChargedThoughAHedgeIsAllowed) {
  Learn();
  Begin("node-07");
  Steps();
  for (int i = 0; i < 3; ++i) {
    now_ += milliseconds(10);
    route_->OnBytes(1, now_);
    EXPECT_EQ(Steps(), "");
  }
  EXPECT_EQ(Pass(milliseconds(10)), "04");
  route_->OnServed(2, now_);
  Steps();
  EXPECT_FALSE(peers_->breaker().IsSuspect("node-05"));
  EXPECT_EQ(CircuitOf("node-05"), Circuit::kClosed);
}

TEST_F(RouteTest, AHedgeUnderWayIsNotLaunchedAgainWhenTheFirstFails) {
  Learn();
  Begin("node-07");
  Steps();
  EXPECT_EQ(Pass(milliseconds(40)), "04");
  EXPECT_EQ(Fail(1, Kind::kSoft), "");
  EXPECT_EQ(Fail(2, Kind::kMiss), "03");
}

TEST_F(RouteTest, WhereBothOfARaceMissTheOriginIsAsked) {
  Learn();
  Begin("node-05");  // its upstreams: 04, 03
  EXPECT_EQ(Steps(), "04");
  EXPECT_EQ(Pass(milliseconds(40)), "03");
  EXPECT_EQ(Fail(1, Kind::kMiss), "");
  EXPECT_EQ(Fail(2, Kind::kMiss), "origin");
}

TEST_F(RouteTest, WithoutHedgingASlowParentIsWaitedFor) {
  PeerTableOptions options;
  options.hedge.enabled = false;
  Reset(options);
  Learn();
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  for (int i = 0; i < 19; ++i) EXPECT_EQ(Pass(milliseconds(100)), "");
}

// A member that has two names, or an address that was another's.
TEST_F(RouteTest, OneAddressIsNotRacedAgainstItself) {
  std::vector<Member> members;
  for (int i = 0; i < 10; ++i) {
    const bool same = i == 4 || i == 5;
    const std::string id = "node-0" + std::to_string(i);
    members.push_back({.id = id, .addr = same ? "node-05:1" : id + ":1"});
  }
  request_.tree = std::make_shared<ChunkTree>(std::make_shared<View>(members), nullptr, kKey, 2);
  Learn();
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(Pass(milliseconds(40)), "03") << "not 04, which is the same";
}

TEST_F(RouteTest, WinsAreCountedOnlyWhereAHedgeFired) {
  Begin("node-07");
  Steps();
  Fail(1, Kind::kSoft);
  route_->OnServed(2, now_);
  EXPECT_EQ(route_->counts().backup_won + route_->counts().primary_won, 0U);
  Learn();
  Begin("node-07");
  Steps();
  Pass(milliseconds(40));
  route_->OnServed(1, now_);
  EXPECT_EQ(route_->counts().primary_won, 1U);
  EXPECT_EQ(Steps(), "-2");
  EXPECT_FALSE(peers_->breaker().IsSuspect("node-04")) << "it was not the slow one";
}

TEST_F(RouteTest, ASilentParentIsSuspectAndAnotherIsAskedAtOnce) {
  Begin("node-07");
  Steps();
  EXPECT_EQ(Pass(seconds(2) - milliseconds(1)), "");
  EXPECT_EQ(Pass(milliseconds(1)), "04");
  EXPECT_TRUE(peers_->breaker().IsSuspect("node-05"));
  EXPECT_EQ(route_->sources().size(), 2U) << "it may still answer";
  Begin("node-07");
  EXPECT_EQ(Steps(), "04") << "nothing new goes to it first";
}

TEST_F(RouteTest, OneThatStopsInTheMiddleIsSilentToo) {
  Begin("node-07");
  Steps();
  now_ += seconds(1);
  route_->OnBytes(1, now_);
  EXPECT_EQ(Pass(milliseconds(1999)), "");
  EXPECT_EQ(Pass(milliseconds(1)), "04");
  route_->OnBytes(1, now_);
  EXPECT_FALSE(peers_->breaker().IsSuspect("node-05")) << "it goes on after all";
}

TEST_F(RouteTest, AllThatWaitForASuspectFailOverTogether) {
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  now_ += seconds(1);
  Route second(options_, *peers_, request_, now_);
  EXPECT_EQ(second.Next(now_)->peer, "node-05");
  Route third(options_, *peers_, request_, now_);
  EXPECT_EQ(third.Next(now_)->peer, "node-05");
  now_ += milliseconds(990);
  third.OnBytes(1, now_);
  EXPECT_EQ(Pass(milliseconds(10)), "04");
  EXPECT_EQ(changes_, 2) << "the others are told";
  EXPECT_EQ(second.Next(now_)->peer, "node-04");
  EXPECT_EQ(third.Next(now_), std::nullopt) << "it is getting bytes";
  EXPECT_EQ(third.wake_at(now_), now_ + milliseconds(40));
  now_ += milliseconds(40);
  EXPECT_EQ(third.Next(now_)->peer, "node-04") << "it got none any more";
}

// The first hedge against a peer from which nobody hears anything is not left to the budget: by it
// the others learn.
TEST_F(RouteTest, AQuietPeerIsHedgedOnceWithoutCredit) {
  Learn();
  ASSERT_TRUE(peers_->hedge_budget().Take());
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  Route second(options_, *peers_, request_, now_);
  EXPECT_EQ(second.Next(now_)->peer, "node-05");
  EXPECT_EQ(Pass(milliseconds(40)), "04");
  EXPECT_EQ(second.Next(now_), std::nullopt) << "one is enough";
  now_ += milliseconds(5);
  route_->OnServed(2, now_);
  EXPECT_EQ(second.Next(now_)->peer, "node-04") << "it has lost without a byte";
}

TEST_F(RouteTest, APeerThatIsHeardByOthersIsJustSlow) {
  Learn();
  ASSERT_TRUE(peers_->hedge_budget().Take());
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  Route second(options_, *peers_, request_, now_);
  second.Next(now_);
  second.OnBytes(1, now_ + milliseconds(20));
  EXPECT_EQ(Pass(milliseconds(40)), "");
}

TEST_F(RouteTest, AHedgeLostInTheMiddleIsASignToo) {
  Learn();
  Begin("node-07");
  Steps();
  route_->OnBytes(1, now_ + milliseconds(1));
  EXPECT_EQ(Pass(milliseconds(40)), "04");
  now_ += milliseconds(5);
  route_->OnServed(2, now_);
  EXPECT_TRUE(peers_->breaker().IsSuspect("node-05")) << "no byte for as long as a block takes";
}

TEST_F(RouteTest, TwoAtMostAreAsked) {
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(Pass(seconds(2)), "04");
  EXPECT_EQ(Pass(seconds(2)), "03 -1");
  EXPECT_EQ(route_->sources().size(), 2U);
}

// It is at others' blocks.
TEST_F(RouteTest, APeerThatServesOthersIsNoSuspectForALostRace) {
  Learn();
  Begin("node-07");
  Steps();
  EXPECT_EQ(Pass(milliseconds(40)), "04");
  Route other(options_, *peers_, request_, now_);
  const auto step = other.Next(now_);
  ASSERT_TRUE(step);
  other.OnBytes(step->attempt, now_);  // of 05
  route_->OnServed(2, now_);
  EXPECT_FALSE(peers_->breaker().IsSuspect("node-05"));
}

// Progress is not charged; but a byte a second is no reason to wait for ever.
TEST_F(RouteTest, ATricklingPeerIsRacedInTheEnd) {
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  std::string steps;
  for (int i = 0; i < 40; ++i) {
    route_->OnBytes(1, now_);
    steps += Pass(seconds(1));
  }
  EXPECT_EQ(steps.substr(0, 2), "04");
  EXPECT_FALSE(peers_->breaker().IsSuspect("node-05"));
  EXPECT_EQ(CircuitOf("node-05"), Circuit::kClosed);
}

TEST_F(RouteTest, OneThatSaysNothingFiveTimesIsNotAskedForAWhile) {
  for (int i = 0; i < 5; ++i) {
    peers_->breaker().OnCalledBy("node-05");  // for its roster
    Begin("node-07");
    EXPECT_EQ(Steps(), "05") << i;
    Pass(seconds(2));
  }
  peers_->breaker().OnCalledBy("node-05");
  Begin("node-07");
  EXPECT_EQ(Steps(), "04");
}

// One after another, and none of them again.
TEST_F(RouteTest, WhereAllAreSilentTheOriginIsAskedInTheEnd) {
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(Pass(seconds(2)), "04");
  EXPECT_EQ(Pass(seconds(2)), "03 -1");
  std::string steps;
  for (int i = 0; i < 10; ++i) steps += Pass(seconds(1));
  EXPECT_EQ(steps, "origin");
}

TEST_F(RouteTest, ARelayWaitsALittleLessThanItsRequester) {
  request_.deadline = now_ + milliseconds(1500);
  Begin("node-07");
  const auto step = route_->Next(now_);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->patience, milliseconds(1400));
  EXPECT_EQ(Pass(milliseconds(1399)), "");
  EXPECT_EQ(Pass(milliseconds(1)), "04");
  EXPECT_TRUE(peers_->breaker().IsSuspect("node-05"));
}

TEST_F(RouteTest, OneWhoseRequesterIsAboutToGiveUpGoesOnAtItsOwnPace) {
  request_.deadline = now_ + milliseconds(150);
  Begin("node-07");
  const auto step = route_->Next(now_);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->patience, seconds(2));
}

}  // namespace
}  // namespace dartfs::p2p
