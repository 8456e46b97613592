#include "p2p/route.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace dartfs::p2p {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = PeerFailure::Kind;

// The rank of WIRE.md's golden values: 03 04 05 07 08 00 09 06 01 02, parents -1 0 1 2 1 4 0 6 7 6.
constexpr uint64_t kKey = 0xdeadbeefcafebabe;

class RouteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Member> members;
    for (int i = 0; i < 10; ++i) {
      const std::string id = "node-0" + std::to_string(i);
      members.push_back({.id = id, .addr = id + ":1"});
    }
    request_.tree = std::make_shared<ChunkTree>(std::make_shared<View>(members), nullptr, kKey, 2);
    request_.origin = "origin.example";
    request_.changed = [this] { ++changes_; };
    Reset({});
  }
  void Reset(PeerTableOptions options) {
    route_.reset();
    peers_ = std::make_unique<PeerTable>(options);
  }
  // p99 of 40 ms, and credit for a hedge.
  void Learn() {
    for (int i = 0; i < 16; ++i) peers_->latencies().Add(milliseconds(40));
    for (int i = 0; i < 20; ++i) peers_->hedge_budget().OnFetch();
  }
  void Begin(const std::string& self) {
    options_.self = self;
    route_ = std::make_unique<Route>(options_, *peers_, request_, now_);
  }
  // The steps that are due: "04" asks node-04, "(04)" for what it holds alone, "origin", "-2" gives
  // up attempt 2.
  std::string Steps() {
    std::string text;
    while (const auto step = route_->Next(now_)) {
      if (!text.empty()) text += " ";
      if (step->kind == RouteStep::Kind::kCancel) {
        text += "-" + std::to_string(step->attempt);
      } else if (step->kind == RouteStep::Kind::kAskOrigin) {
        text += "origin";
      } else {
        const std::string peer = step->peer.substr(5);
        EXPECT_EQ(step->addr, step->peer + ":1");
        text += step->with_url ? peer : "(" + peer + ")";
      }
    }
    return text;
  }
  std::string Fail(AttemptId attempt, Kind kind, core::Duration retry_after = {}) {
    route_->OnFailure(attempt, {kind, retry_after}, now_);
    return Steps();
  }
  std::string Pass(core::Duration time) {
    now_ += time;
    return Steps();
  }
  Circuit CircuitOf(const std::string& peer) { return peers_->breaker().Of(peer, now_); }

  core::TimePoint now_ = core::TimePoint(seconds(1000));
  RouteOptions options_;
  RouteRequest request_;
  std::unique_ptr<PeerTable> peers_;
  std::unique_ptr<Route> route_;
  int changes_ = 0;
};

TEST_F(RouteTest, TheParentIsAskedAndTheOwnerAsksTheOrigin) {
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(route_->sources(), std::vector<std::string>{"node-05"});
  Begin("node-03");
  EXPECT_EQ(Steps(), "origin");
  EXPECT_TRUE(route_->at_origin());
  Begin("stranger");
  EXPECT_EQ(Steps(), "03") << "who is not in the tree asks the owner";
}

// All between the parent and the root were asked by the parent.
TEST_F(RouteTest, AMissGoesToTheRootAndThenToTheOrigin) {
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(Fail(1, Kind::kMiss), "03");
  EXPECT_EQ(Fail(2, Kind::kMiss), "origin");
  EXPECT_EQ(CircuitOf("node-05"), Circuit::kClosed);
}

TEST_F(RouteTest, FailoverIsNotOfTheHedgesBudget) {
  Begin("node-07");
  Steps();
  EXPECT_EQ(Fail(1, Kind::kHard), "04") << "without any credit";
  EXPECT_EQ(CircuitOf("node-05"), Circuit::kOpen);
  EXPECT_EQ(route_->counts().hedges, 0U);
  Begin("node-07");
  EXPECT_EQ(Steps(), "04") << "an open circuit is passed over";
}

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

TEST_F(RouteTest, ADeadOwnersPlaceIsTakenByTheFirstInRank) {
  peers_->breaker().OnHardFailure("node-03", now_);
  Begin("node-09");  // whose parent is the owner
  EXPECT_EQ(Steps(), "04");
  Begin("node-04");  // which is the first itself
  EXPECT_EQ(Steps(), "origin");
  peers_->breaker().OnHardFailure("node-04", now_);
  Begin("node-09");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(Fail(1, Kind::kMiss), "origin");
  for (int i = 0; i < 10; ++i) peers_->breaker().OnHardFailure("node-0" + std::to_string(i), now_);
  Begin("node-09");
  EXPECT_EQ(Steps(), "origin");
}

// Blocks that were asked for before anybody knew: each child of the owner's would go to the origin.
TEST_F(RouteTest, AnOwnerThatDiesWhileItIsAskedIsReplacedToo) {
  for (const Kind kind : {Kind::kHard, Kind::kSoft}) {
    Reset({});
    Begin("node-09");
    EXPECT_EQ(Steps(), "03");
    for (int i = 0; i < 5; ++i) peers_->breaker().OnSoftFailure("node-03", now_);
    EXPECT_EQ(Fail(1, kind), "04");
    EXPECT_EQ(Fail(2, Kind::kMiss), "origin");
    Begin("node-09");
    EXPECT_EQ(Steps(), "04");
  }
  Reset({});
  Begin("node-04");
  EXPECT_EQ(Steps(), "03");
  EXPECT_EQ(Fail(1, Kind::kHard), "origin");
}

TEST_F(RouteTest, AStandInThatIsDeadAsWellIsReplacedAFewTimes) {
  for (const char* dead : {"node-04", "node-05"}) peers_->breaker().OnHardFailure(dead, now_);
  Begin("node-02");  // its upstreams: 09, 03
  EXPECT_EQ(Steps(), "09");
  EXPECT_EQ(Fail(1, Kind::kHard), "03");
  EXPECT_EQ(Fail(2, Kind::kHard), "07") << "the first in rank that may live";
  EXPECT_EQ(Fail(3, Kind::kHard), "08");
  EXPECT_EQ(Fail(4, Kind::kHard), "00");
  EXPECT_EQ(Fail(5, Kind::kHard), "origin") << "each takes a second, maybe";
}

TEST_F(RouteTest, OneWhoseConnectionBrokeIsAskedOnceMoreBeforeTheOrigin) {
  Begin("node-04");
  EXPECT_EQ(Steps(), "03");
  EXPECT_EQ(Fail(1, Kind::kSoft), "03");
  EXPECT_EQ(Fail(2, Kind::kSoft), "origin");
  Begin("node-09");
  EXPECT_EQ(Steps(), "03");
  EXPECT_EQ(Fail(1, Kind::kSoft), "03");
  EXPECT_EQ(Fail(2, Kind::kHard), "04") << "it was its death";
  Reset({});
  Begin("node-07");
  Steps();
  EXPECT_EQ(Fail(1, Kind::kSoft), "04") << "others come first";
  EXPECT_EQ(Fail(2, Kind::kMiss), "03");
  EXPECT_EQ(Fail(3, Kind::kMiss), "05");
  EXPECT_EQ(Fail(4, Kind::kMiss), "origin");
}

TEST_F(RouteTest, AnOwnerThatMissesHasNoStandIn) {
  Begin("node-09");
  EXPECT_EQ(Steps(), "03");
  EXPECT_EQ(Fail(1, Kind::kMiss), "origin");
}

TEST_F(RouteTest, ASuspectOwnersPlaceToo) {
  peers_->OnSilent("node-03", now_);
  Begin("node-09");
  EXPECT_EQ(Steps(), "04");
  EXPECT_EQ(Fail(1, Kind::kMiss), "03") << "before the origin, as it may have come back";
  EXPECT_EQ(Pass(milliseconds(50)), "origin") << "which is soon seen";
  Begin("node-04");
  EXPECT_EQ(Steps(), "origin") << "not first";
}

TEST_F(RouteTest, ANewOwnerAsksWhoMayHoldIt) {
  request_.new_owner = true;
  Begin("node-03");
  EXPECT_EQ(Steps(), "(04)");
  EXPECT_EQ(Fail(1, Kind::kMiss), "(05)");
  EXPECT_EQ(Fail(2, Kind::kHard), "(07)");
  EXPECT_EQ(Fail(3, Kind::kMiss), "origin");
  Begin("node-04");
  EXPECT_EQ(Steps(), "03") << "only the root does";
}

TEST_F(RouteTest, WhoIsOnTheWayIsNotAsked) {
  request_.path = {"node-05", "node-03"};
  Begin("node-07");
  EXPECT_EQ(Steps(), "04");
  EXPECT_EQ(Fail(1, Kind::kMiss), "origin");
}

TEST_F(RouteTest, ABusyPeerIsAskedAgainAndTheOriginIsNotTheNextResort) {
  Begin("node-04");
  EXPECT_EQ(Steps(), "03");
  EXPECT_EQ(Fail(1, Kind::kBusy, milliseconds(300)), "");
  EXPECT_EQ(route_->wake_at(now_), now_ + milliseconds(300));
  EXPECT_EQ(Pass(milliseconds(300)), "03");
  EXPECT_EQ(CircuitOf("node-03"), Circuit::kClosed);
  EXPECT_EQ(Fail(2, Kind::kBusy, seconds(600)), "");
  EXPECT_EQ(Pass(seconds(9)), "");
  EXPECT_EQ(Pass(seconds(1)), "origin") << "not for ever";
}

// It is at work on it. Those above it may be what it waits for.
TEST_F(RouteTest, OneThatIsBusyUntilTheLastMomentIsAskedOnceMore) {
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(Pass(milliseconds(1950)), "");
  EXPECT_EQ(Fail(1, Kind::kBusy, milliseconds(50)), "05");
  EXPECT_EQ(Pass(milliseconds(1950)), "");
  EXPECT_EQ(Fail(2, Kind::kBusy, milliseconds(50)), "04") << "not for ever";
}

TEST_F(RouteTest, WhileOneIsBusyTheOthersAreAsked) {
  Begin("node-07");
  Steps();
  EXPECT_EQ(Fail(1, Kind::kBusy, seconds(1)), "04");
  EXPECT_EQ(Fail(2, Kind::kMiss), "03");
  EXPECT_EQ(Fail(3, Kind::kMiss), "");
  EXPECT_EQ(Pass(seconds(1)), "05");
}

TEST_F(RouteTest, ACredentialThatTheOriginRefusesIsNotTriedThroughOthers) {
  Begin("node-07");
  Steps();
  EXPECT_EQ(Fail(1, Kind::kRefused), "origin");
  EXPECT_EQ(CircuitOf("node-05"), Circuit::kClosed);
}

TEST_F(RouteTest, WrongBytesOpenTheCircuit) {
  Begin("node-07");
  Steps();
  EXPECT_EQ(Fail(1, Kind::kWrong), "04");
  EXPECT_EQ(CircuitOf("node-05"), Circuit::kOpen);
}

TEST_F(RouteTest, WithoutAUrlPeersAreAskedForWhatTheyHold) {
  request_.with_url = false;
  Begin("node-07");
  EXPECT_EQ(Steps(), "(05)");
  EXPECT_EQ(Fail(1, Kind::kMiss), "(04)");
}

TEST_F(RouteTest, TheLastResortHasABudgetAndTheOwnerNeedsNone) {
  PeerTableOptions options;
  options.last_resort = {.per_second = 1, .burst = 2, .reserve = 1};
  Reset(options);
  const auto fall = [this] {
    Begin("node-04");
    Steps();
    return Fail(1, Kind::kMiss);
  };
  EXPECT_EQ(fall(), "origin");
  request_.urgent = false;
  EXPECT_EQ(fall(), "") << "the rest is for readers that wait";
  EXPECT_EQ(route_->wake_at(now_), now_ + seconds(1));
  route_->MakeUrgent();
  EXPECT_EQ(Steps(), "origin");
  request_.urgent = true;
  EXPECT_EQ(fall(), "");
  EXPECT_EQ(Pass(seconds(1)), "origin");
  request_.origin = "another.example";
  EXPECT_EQ(fall(), "origin") << "each origin has its own";
  for (int i = 0; i < 50; ++i) {
    Begin("node-03");
    EXPECT_EQ(Steps(), "origin");
  }
}

TEST_F(RouteTest, AnOriginThatFailsEndsTheRoute) {
  Begin("node-03");
  Steps();
  route_->OnFailure(1, {Kind::kSoft, {}}, now_);
  EXPECT_TRUE(route_->over());
  EXPECT_EQ(Steps(), "");
  EXPECT_EQ(route_->wake_at(now_), core::kNoDeadline);
}

TEST_F(RouteTest, ALateAnswerOfASilentPeerEndsTheOriginsTurn) {
  Begin("node-04");
  EXPECT_EQ(Steps(), "03");
  EXPECT_EQ(Pass(seconds(2)), "origin");
  route_->OnBytes(1, now_);
  route_->OnServed(1, now_);
  EXPECT_EQ(Steps(), "-2");
}

TEST_F(RouteTest, EventsOfWhatWasGivenUpAreNothing) {
  Begin("node-07");
  Steps();
  Fail(1, Kind::kMiss);
  route_->OnBytes(1, now_);
  EXPECT_EQ(Fail(1, Kind::kHard), "");
  EXPECT_EQ(CircuitOf("node-05"), Circuit::kClosed);
  route_->OnServed(2, now_);
  route_->OnServed(2, now_);
  EXPECT_EQ(peers_->latencies().samples(), 1U);
}

TEST_F(RouteTest, MissesDoNotFeedTheEstimator) {
  Begin("node-07");
  Steps();
  Fail(1, Kind::kMiss);
  Fail(2, Kind::kSoft);
  EXPECT_EQ(peers_->latencies().samples(), 0U);
  now_ += milliseconds(7);
  route_->OnServed(3, now_);
  EXPECT_EQ(peers_->latencies().samples(), 1U);
}

TEST_F(RouteTest, ARouteThatEndsLeavesNobodyCharged) {
  peers_->breaker().OnHardFailure("node-05", now_);
  now_ += seconds(5);
  Begin("node-07");
  EXPECT_EQ(Steps(), "05") << "the trial";
  EXPECT_FALSE(peers_->breaker().Allows("node-05", now_));
  route_.reset();
  EXPECT_TRUE(peers_->breaker().Allows("node-05", now_));
  peers_->OnSilent("node-05", now_);  // would call a route that is no more
  EXPECT_EQ(changes_, 0);
}

// What DART does: parent, then grandparent, then the origin; no suspects, no budget.
// Whoever relayed it may have been lied to: the owner's bytes come from the origin.
TEST_F(RouteTest, AfterAWrongDigestTheOwnerAloneIsAskedAndThenNobody) {
  request_.trust = Trust::kOwner;
  Begin("node-07");
  EXPECT_EQ(Steps(), "03");
  EXPECT_EQ(Fail(1, Kind::kMiss), "origin");
  request_.trust = Trust::kOrigin;
  Begin("node-07");
  EXPECT_EQ(Steps(), "origin");
  Begin("node-03");
  EXPECT_EQ(Steps(), "origin");
  request_.trust = Trust::kOwner;
  request_.new_owner = true;
  Begin("node-03");
  EXPECT_EQ(Steps(), "origin") << "not those who may hold it";
}

TEST_F(RouteTest, AnOwnerThatIsDeadIsStoodInForAlsoThen) {
  peers_->breaker().OnHardFailure("node-03", now_);
  request_.trust = Trust::kOwner;
  Begin("node-07");
  EXPECT_EQ(Steps(), "04");
}

// DART's nodes name no object.
TEST_F(RouteTest, PeersThatCannotNameTheObjectArePassedOver) {
  request_.must_be_named = true;
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(Fail(1, Kind::kUnproven), "04");
  EXPECT_EQ(CircuitOf("node-05"), Circuit::kClosed) << "it is none the worse for that";
  Begin("node-07");
  EXPECT_EQ(Steps(), "04") << "it is not even asked";
  request_.must_be_named = false;
  Begin("node-07");
  EXPECT_EQ(Steps(), "05") << "but for other objects";
  request_.must_be_named = true;
  now_ += std::chrono::minutes(5);
  Begin("node-07");
  EXPECT_EQ(Steps(), "05") << "it may have been replaced by now";
}

TEST_F(RouteTest, AnOwnerThatCannotNameTheObjectIsStoodInFor) {
  request_.must_be_named = true;
  peers_->OnUnproven("node-03", now_);
  peers_->OnUnproven("node-04", now_);
  Begin("node-07");
  EXPECT_EQ(Steps(), "05") << "its parent is a dartfs node";
  peers_->OnUnproven("node-05", now_);
  Begin("node-08");
  EXPECT_EQ(Steps(), "07") << "the first in rank that can";
  Begin("node-07");
  EXPECT_EQ(Steps(), "origin") << "itself";
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

TEST_F(RouteTest, WithoutExtensionsItDecidesAsADartNodeDoes) {
  options_.extensions = false;
  PeerTableOptions options;
  options.last_resort = {.per_second = 1, .burst = 1, .reserve = 0};
  Reset(options);
  for (int i = 0; i < 3; ++i) {
    Begin("node-07");
    EXPECT_EQ(Steps(), "05");
    EXPECT_EQ(Fail(1, Kind::kBusy, seconds(1)), "04");
    EXPECT_EQ(Fail(2, Kind::kMiss), "origin");
  }
  Begin("node-07");
  Steps();
  EXPECT_EQ(Pass(seconds(2)), "04");
  EXPECT_FALSE(peers_->breaker().IsSuspect("node-05"));
  request_.new_owner = true;
  Begin("node-03");
  EXPECT_EQ(Steps(), "origin");
  request_.new_owner = false;
  peers_->breaker().OnHardFailure("node-03", now_);
  Begin("node-04");
  EXPECT_EQ(Steps(), "origin") << "no usable ancestor";
}

}  // namespace
}  // namespace dartfs::p2p
