#include "p2p/route.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "p2p/route_fixture.h"

namespace dartfs::p2p {
namespace {

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

// It may deny what it has, and each of its children would go to the origin.
TEST_F(RouteTest, AnOwnerThatMissesHasOneStandIn) {
  Begin("node-09");
  EXPECT_EQ(Steps(), "03");
  EXPECT_EQ(Fail(1, Kind::kMiss), "04");
  EXPECT_EQ(Fail(2, Kind::kMiss), "origin");
  Begin("node-04");
  EXPECT_EQ(Steps(), "03");
  EXPECT_EQ(Fail(1, Kind::kMiss), "origin") << "the stand-in itself";
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

// A chain of members that do not exist.
TEST_F(RouteTest, AfterSomeThatAreDeadTheRootAloneIsAsked) {
  request_.tree = std::make_shared<ChunkTree>(request_.tree->view(), nullptr, kKey, 1);
  Begin("node-02");  // the last of ten
  EXPECT_EQ(Steps(), "01");
  EXPECT_EQ(Fail(1, Kind::kHard), "06");
  EXPECT_EQ(Fail(2, Kind::kHard), "09");
  EXPECT_EQ(Fail(3, Kind::kHard), "03");
  EXPECT_EQ(Fail(4, Kind::kMiss), "origin");
}

// However they time it: there is always one that has just become free.
TEST_F(RouteTest, PeersThatAreBusyForEverAreLeftInTheEnd) {
  for (const core::Duration busy : {core::Duration{}, core::Duration(milliseconds(50)),
                                    core::Duration(std::chrono::hours(100000))}) {
    for (const core::Duration answer : {milliseconds(1), milliseconds(1950)}) {
      Begin("node-07");
      const core::TimePoint begun = now_;
      AttemptId asked = 0;
      while (!route_->at_origin() && now_ - begun < seconds(60)) {
        while (const auto step = route_->Next(now_)) asked = step->attempt;
        if (route_->at_origin()) break;
        now_ += std::max<core::Duration>(answer, milliseconds(1));
        route_->OnFailure(asked, {Kind::kBusy, busy}, now_);
      }
      EXPECT_TRUE(route_->at_origin());
      EXPECT_LE(now_ - begun, seconds(14));
      EXPECT_LE(asked, 3200U) << "not as often as the network carries it";
    }
  }
}

// Whoever claims that a request has come through all of them makes the origin nobody's duty.
TEST_F(RouteTest, AForgedPathTakesTheLastResortsBudget) {
  PeerTableOptions options;
  options.last_resort = {.per_second = 1, .burst = 2, .reserve = 0};
  Reset(options);
  request_.path = {"node-03", "node-04", "node-05", "node-09", "node-06", "node-08"};
  for (const char* self : {"node-07", "node-01", "node-02", "node-00"}) {
    peers_->TakeLastResort("origin.example", true, now_);
    peers_->TakeLastResort("origin.example", true, now_);
    Begin(self);
    EXPECT_EQ(Steps(), "") << self;
  }
}

TEST_F(RouteTest, APeerThatIsSendingOutlivesTheOriginsFailure) {
  Begin("node-07");
  EXPECT_EQ(Steps(), "05");
  EXPECT_EQ(Pass(seconds(2)), "04");
  EXPECT_EQ(Pass(seconds(2)), "03 -1");
  EXPECT_EQ(Pass(seconds(2)), "origin");
  route_->OnBytes(3, now_);
  EXPECT_EQ(Fail(4, Kind::kMiss), "");
  EXPECT_FALSE(route_->over());
  EXPECT_EQ(Pass(seconds(1)), "");
  route_->OnBytes(3, now_);
  EXPECT_EQ(Pass(seconds(2)), "-2 -3") << "it is silent, too";
  EXPECT_TRUE(route_->over());
}

// Its bytes may be cut short or be wrong yet.
TEST_F(RouteTest, ABodyThatIsCutShortCountsAlthoughItHadBegun) {
  for (int i = 0; i < 5; ++i) {
    Begin("node-07");
    EXPECT_EQ(Steps(), "05") << i;
    route_->OnBytes(1, now_);
    Fail(1, Kind::kSoft);
  }
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
    Begin("node-09");
    Steps();
    Fail(1, Kind::kMiss);
    return Fail(2, Kind::kMiss);
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

// What DART does: parent, then grandparent, then the origin; no suspects, no budget.
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
