#include "p2p/membership.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "fake/seeded_random.h"

namespace dartfs::p2p {
namespace {

using std::chrono::seconds;

class MembershipTest : public ::testing::Test {
 protected:
  void Make(MembershipOptions options) {
    options.self = {.id = "self", .addr = "s:1"};
    members_ = std::make_unique<Membership>(std::move(options));
  }
  void SetUp() override { Make({}); }
  std::vector<RejectedMember> Hear(const std::string& id, const std::string& addr = "h:1",
                                   double weight = 1) {
    const Member member{.id = id, .addr = addr, .weight = weight};
    return members_->Learn(std::span(&member, 1), now_);
  }
  const Member* Find(const std::string& id) {
    view_ = std::make_unique<View>(members_->Members());
    return view_->Find(id);
  }
  void Pass(int count) {
    members_->Expire(now_);
    for (int i = 0; i < count; ++i) Jump(1);
  }
  void Jump(int count) {
    now_ += seconds(count);
    members_->Expire(now_);
  }

  core::TimePoint now_ = core::TimePoint(seconds(1000));
  std::unique_ptr<Membership> members_;
  std::unique_ptr<View> view_;
  core::SeededRandom random_{5};
};

TEST_F(MembershipTest, IsAlwaysAmongItsMembers) {
  EXPECT_EQ(Find("self")->addr, "s:1");
  Hear("self", "elsewhere:9", 7);
  EXPECT_EQ(Find("self")->addr, "s:1") << "nobody tells us who we are";
  Pass(3600);
  EXPECT_NE(Find("self"), nullptr);
}

TEST_F(MembershipTest, AddsOnHearsayAtOnceAndForgetsSlowly) {
  Hear("a");
  EXPECT_NE(Find("a"), nullptr);
  Pass(59);
  EXPECT_NE(Find("a"), nullptr);
  Pass(1);
  EXPECT_EQ(Find("a"), nullptr);
}

// Two survivors that go on mentioning a dead member, with changing addresses even, would remember
// it for ever.
TEST_F(MembershipTest, HearsayIsNoSignOfLife) {
  Hear("a", "h:1");
  for (int i = 0; i < 59; ++i) {
    Pass(1);
    Hear("a", i % 2 == 0 ? "h:2" : "h:1");
  }
  EXPECT_EQ(Find("a")->addr, "h:2") << "the newest address";
  Pass(1);
  EXPECT_EQ(Find("a"), nullptr);
}

TEST_F(MembershipTest, AnAnswerIsCreditedToWhoGaveIt) {
  Hear("dead", "h:1");
  Hear("heir", "h:1");  // has the dead one's address now
  for (int i = 0; i < 6; ++i) {
    Pass(10);
    members_->OnAnswerOf("heir", now_);
    members_->OnAnswerOf("", now_);
    members_->OnAnswerOf("unknown", now_);
  }
  EXPECT_EQ(Find("dead"), nullptr);
  EXPECT_NE(Find("heir"), nullptr);
  EXPECT_EQ(Find("unknown"), nullptr);
}

TEST_F(MembershipTest, WhoCallsIsAliveWhereverItIs) {
  members_->OnCalledBy("a", "h:1", now_);
  EXPECT_EQ(Find("a")->addr, "h:1");
  for (int i = 0; i < 12; ++i) {
    Pass(10);
    members_->OnCalledBy("a", i == 5 ? "h:2" : "", now_);
  }
  EXPECT_EQ(Find("a")->addr, "h:2");
  members_->OnCalledBy("nameless", "", now_);
  EXPECT_EQ(Find("nameless"), nullptr) << "nobody could be asked there";
  members_->OnCalledBy("self", "x:1", now_);
  EXPECT_EQ(Find("self")->addr, "s:1");
}

TEST_F(MembershipTest, ACallKeepsTheWeight) {
  Hear("a", "h:1", 4);
  members_->OnCalledBy("a", "h:2", now_);
  EXPECT_EQ(Find("a")->weight, 4);
}

TEST_F(MembershipTest, BadEntriesAreRefusedAndTheirSiblingsLearned) {
  std::vector<Member> reported;
  for (const char* id : {"", "a b",
                         "a\x1f"
                         "b",
                         "\x7f"})
    reported.push_back({.id = id, .addr = "h:1"});
  reported.push_back({.id = "nan", .addr = "h:1", .weight = NAN});
  reported.push_back({.id = "inf", .addr = "h:1", .weight = INFINITY});
  reported.push_back({.id = "nowhere", .addr = ""});
  reported.push_back({.id = "good", .addr = "h:1"});
  const auto rejected = members_->Learn(reported, now_);
  EXPECT_EQ(rejected.size(), reported.size() - 1) << "one word about each";
  EXPECT_EQ(members_->size(), 2U);
  EXPECT_NE(Find("good"), nullptr);
}

TEST_F(MembershipTest, WeightsAreClamped) {
  Hear("zero", "h:1", 0);
  Hear("less", "h:1", -2);
  Hear("much", "h:1", 1e300);
  EXPECT_EQ(Find("zero")->weight, 1);
  EXPECT_EQ(Find("less")->weight, 1);
  Hear("little", "h:1", 5e-324);
  EXPECT_EQ(Find("little")->weight, 1e-3);
  EXPECT_EQ(Find("much")->weight, 1000);
}

TEST_F(MembershipTest, OnlyAllowedAddressesAreBelieved) {
  MembershipOptions options;
  options.allows_address = [](std::string_view addr) { return addr.starts_with("10."); };
  Make(std::move(options));
  EXPECT_EQ(Hear("a", "10.0.0.1:1").size(), 0U);
  EXPECT_EQ(Hear("b", "203.0.113.9:1").size(), 1U);
  members_->OnCalledBy("c", "203.0.113.9:1", now_);
  EXPECT_EQ(members_->size(), 2U);
  Hear("a", "203.0.113.9:1");
  EXPECT_EQ(Find("a")->addr, "10.0.0.1:1") << "nor is a known one moved there";
}

TEST_F(MembershipTest, ThereAreOnlySoMany) {
  MembershipOptions options;
  options.max_members = 3;
  Make(std::move(options));
  for (int i = 0; i < 10; ++i) Hear("m" + std::to_string(i));
  EXPECT_EQ(members_->size(), 3U);
  EXPECT_EQ(Hear("m0", "new:1").size(), 0U) << "who is known may move";
  EXPECT_EQ(Hear("m9").size(), 1U);
}

TEST_F(MembershipTest, TheGenerationTellsChangesAlone) {
  const uint64_t first = members_->generation();
  Hear("a");
  const uint64_t second = members_->generation();
  EXPECT_GT(second, first);
  Hear("a");
  members_->OnAnswerOf("a", now_);
  members_->OnCalledBy("a", "h:1", now_);
  members_->Expire(now_);
  EXPECT_EQ(members_->generation(), second);
  members_->OnCalledBy("a", "h:2", now_);
  const uint64_t third = members_->generation();
  EXPECT_GT(third, second);
  Pass(60);
  EXPECT_GT(members_->generation(), third);
}

TEST_F(MembershipTest, ASmallClusterIsAskedWhole) {
  for (int i = 0; i < 20; ++i) Hear("m" + std::to_string(i), "h:" + std::to_string(i));
  EXPECT_EQ(members_->interval(), seconds(5));
  EXPECT_EQ(members_->Due(now_, random_).size(), 20U);
  EXPECT_TRUE(members_->Due(now_, random_).empty()) << "once an interval";
  Pass(5);
  EXPECT_EQ(members_->Due(now_, random_).size(), 20U);
}

// They forget it at different times, and tell each other of it until then.
TEST_F(MembershipTest, SurvivorsDoNotKeepADeadOneAliveForEachOther) {
  for (const int members : {2, 3, 8}) {
    std::vector<Membership> survivors;
    const Member dead{.id = "dead", .addr = "h:1"};
    for (int i = 0; i < members; ++i) {
      MembershipOptions options;
      options.self = {.id = "s" + std::to_string(i), .addr = "s:1"};
      survivors.emplace_back(std::move(options));
      survivors.back().OnCalledBy("dead", "h:1", now_ + seconds(7 * i % 20));
    }
    now_ += seconds(20);
    for (int second = 0; second < 200; ++second, now_ += seconds(1)) {
      for (Membership& asker : survivors) {
        asker.Expire(now_);
        for (const Membership& asked : survivors) asker.Learn(asked.Members(), now_);
      }
    }
    for (const Membership& survivor : survivors) {
      for (const Member& member : survivor.Members()) EXPECT_NE(member.id, "dead") << members;
    }
  }
}

TEST_F(MembershipTest, OneThatWasForgottenIsCalledWhenOthersReportIt) {
  members_->OnCalledBy("a", "h:1", now_);
  Pass(60);
  EXPECT_EQ(Find("a"), nullptr);
  EXPECT_TRUE(members_->Due(now_, random_).empty()) << "nobody speaks of it";
  Hear("a", "h:2");
  EXPECT_EQ(Find("a"), nullptr) << "hearsay";
  const auto due = members_->Due(now_, random_);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].addr, "h:2");
  members_->OnAnswerOf("a", now_);
  ASSERT_NE(Find("a"), nullptr);
  EXPECT_EQ(Find("a")->addr, "h:2");
}

TEST_F(MembershipTest, OneThatWasForgottenAndCallsIsBack) {
  members_->OnCalledBy("a", "h:1", now_);
  Pass(60);
  members_->OnCalledBy("a", "h:3", now_);
  ASSERT_NE(Find("a"), nullptr);
  EXPECT_EQ(Find("a")->addr, "h:3");
}

TEST_F(MembershipTest, WhatWasOnlyHeardIsNotPassedOn) {
  Hear("heard");
  members_->OnCalledBy("met", "h:2", now_);
  const auto told = [this] {
    std::set<std::string> ids;
    for (const Member& member : members_->Roster()) ids.insert(member.id);
    return ids;
  };
  EXPECT_EQ(told(), (std::set<std::string>{"self", "met"}));
  members_->OnAnswerOf("heard", now_);
  EXPECT_EQ(told(), (std::set<std::string>{"self", "met", "heard"}));
}

// Some of them were stopped, and remember it from then on.
TEST_F(MembershipTest, AMemoryDoesNotGoRound) {
  std::vector<Membership> survivors;
  for (int i = 0; i < 12; ++i) {
    MembershipOptions options;
    options.self = {.id = "s" + std::to_string(i), .addr = "s:1"};
    survivors.emplace_back(std::move(options));
    survivors.back().OnCalledBy("dead", "h:1", now_ + seconds(10 * i));
  }
  for (int second = 0; second < 600; ++second, now_ += seconds(1)) {
    for (Membership& asker : survivors) {
      asker.Expire(now_);
      for (const Membership& asked : survivors) {
        asker.Learn(asked.Roster(), now_, asked.self().id);
      }
    }
  }
  for (const Membership& survivor : survivors) {
    for (const Member& member : survivor.Members()) EXPECT_NE(member.id, "dead");
  }
}

TEST_F(MembershipTest, AndLaterHearsayIsEnoughAgain) {
  Hear("a");
  Pass(60);
  Hear("a");
  EXPECT_EQ(Find("a"), nullptr);
  Pass(60);
  Hear("a");
  EXPECT_NE(Find("a"), nullptr);
}

// A liar could draw all that is asked of a member to itself.
TEST_F(MembershipTest, HearsayDoesNotMoveWhoIsInContact) {
  members_->OnCalledBy("a", "h:1", now_);
  Hear("a", "liar:1");
  EXPECT_EQ(Find("a")->addr, "h:1");
  Pass(20);
  Hear("a", "h:2");
  EXPECT_EQ(Find("a")->addr, "h:2") << "no contact for a third of the time it has left";
}

// Else whoever reports many that do not exist gives all chunks to nobody.
TEST_F(MembershipTest, HearsayThatDoesNotAnswerOwnsNothing) {
  Hear("fake", "h:1");
  EXPECT_EQ(Find("fake")->state, MemberState::kReady) << "at once, so that all agree";
  const uint64_t epoch = view_->epoch();
  members_->Due(now_, random_);
  EXPECT_EQ(Find("fake")->state, MemberState::kReady) << "it is being called";
  Pass(5);
  const uint64_t before = members_->generation();
  members_->Due(now_, random_);
  EXPECT_EQ(Find("fake")->state, MemberState::kJoining);
  EXPECT_GT(members_->generation(), before);
  EXPECT_EQ(view_->epoch(), epoch);
  members_->OnAnswerOf("fake", now_);
  EXPECT_EQ(Find("fake")->state, MemberState::kReady);
  for (int i = 0; i < 11; ++i) {
    Pass(5);
    members_->Due(now_, random_);
  }
  EXPECT_EQ(Find("fake")->state, MemberState::kReady) << "who was there is slow to go";
}

// Each roster with new ones, so that none of them has been called in vain yet.
TEST_F(MembershipTest, MoreOfHearsayThanWereMetOwnNothing) {
  for (int i = 0; i < 30; ++i) members_->OnCalledBy("m" + std::to_string(i), "h:1", now_);
  for (int second = 0; second < 70; ++second) {
    Pass(1);
    for (int i = 0; i < 30; ++i) members_->OnAnswerOf("m" + std::to_string(i), now_);
  }
  for (int i = 0; i < 32; ++i) Hear("fake" + std::to_string(i), "f" + std::to_string(i));
  EXPECT_EQ(Find("fake0")->state, MemberState::kReady) << "as many may have joined";
  const uint64_t before = members_->generation();
  Hear("fake32", "f32");
  EXPECT_GT(members_->generation(), before);
  EXPECT_EQ(Find("fake0")->state, MemberState::kJoining);
  EXPECT_EQ(Find("m0")->state, MemberState::kReady);
}

TEST_F(MembershipTest, NoHearsayOutweighsWhoWasMet) {
  Hear("heavy", "h:1", 1000);
  EXPECT_EQ(Find("heavy")->state, MemberState::kJoining);
  Hear("light", "h:2", 0.5);
  EXPECT_EQ(Find("light")->state, MemberState::kReady);
  const uint64_t before = members_->generation();
  members_->OnAnswerOf("heavy", now_);
  EXPECT_GT(members_->generation(), before);
  EXPECT_EQ(Find("heavy")->state, MemberState::kReady);
  Hear("another", "h:3", 900);
  EXPECT_EQ(Find("another")->state, MemberState::kReady) << "there are such";
}

TEST_F(MembershipTest, AFullTableHasRoomForWhoCalls) {
  MembershipOptions options;
  options.max_members = 4;
  Make(std::move(options));
  for (int i = 0; i < 10; ++i) Hear("fake" + std::to_string(i));
  EXPECT_EQ(members_->size(), 4U);
  for (int i = 0; i < 3; ++i) members_->OnCalledBy("real" + std::to_string(i), "h:1", now_);
  for (int i = 0; i < 3; ++i) EXPECT_NE(Find("real" + std::to_string(i)), nullptr) << i;
  members_->OnCalledBy("one-more", "h:1", now_);
  EXPECT_EQ(Find("one-more"), nullptr) << "who was met stays";
  EXPECT_EQ(members_->size(), 4U);
}

TEST_F(MembershipTest, RostersStayWithinTheirBytes) {
  EXPECT_EQ(Hear(std::string(254, 'a')).size(), 1U);
  EXPECT_EQ(Hear("a", std::string(262, '1')).size(), 1U);
  for (int i = 0; i < 16000; ++i) Hear(std::string(240, 'a') + std::to_string(10000 + i));
  size_t bytes = 0;
  for (const Member& member : members_->Members()) {
    bytes += member.id.size() + member.addr.size() + 48;
  }
  EXPECT_GT(bytes, size_t{2} << 20);
  EXPECT_LE(bytes, (size_t{3} << 20) + 100) << "and this node itself";
}

// At addresses that others choose.
TEST_F(MembershipTest, StrangersAreCalledFewAtATimeAndAnAddressOnce) {
  for (int i = 0; i < 1000; ++i) Hear("same" + std::to_string(i), "victim:1");
  for (int second = 0; second < 20; ++second) {
    EXPECT_LE(members_->Due(now_, random_).size(), 1U);
    Pass(1);
  }
  for (int i = 0; i < 1000; ++i) Hear("fake" + std::to_string(i), "f:" + std::to_string(i));
  for (int second = 0; second < 20; ++second) {
    EXPECT_LE(members_->Due(now_, random_).size(), 64U);
    Pass(1);
  }
}

TEST_F(MembershipTest, AMembersWeightIsItsOwnToSay) {
  const auto answer = [this] {
    for (int i = 0; i < 50; ++i) members_->OnAnswerOf("m" + std::to_string(i), now_);
  };
  for (int i = 0; i < 50; ++i) members_->OnCalledBy("m" + std::to_string(i), "h:1", now_);
  Hear("m7", "h:1", 9);
  EXPECT_EQ(Find("m7")->weight, 1) << "hearsay";
  bool asked = false;
  for (int second = 0; second < 200 && !asked; ++second) {
    for (const RosterCall& call : members_->Due(now_, random_)) {
      asked |= call.id == "m7" && call.wants_roster;
    }
    Pass(1);
    answer();
  }
  EXPECT_TRUE(asked) << "a reason to ask it";
  const Member own{.id = "m7", .addr = "h:1", .weight = 9};
  members_->Learn(std::span(&own, 1), now_, "m7");
  EXPECT_EQ(Find("m7")->weight, 9);
}

TEST_F(MembershipTest, TimeInWhichThisNodeWasStoppedIsNobodysAbsence) {
  for (const int stopped : {61, 600, 100000}) {
    members_->OnCalledBy("a", "h:1", now_);
    Pass(0);
    Jump(stopped);
    EXPECT_NE(Find("a"), nullptr) << stopped;
    for (int i = 0; i < 12; ++i) Pass(5);
    EXPECT_EQ(Find("a"), nullptr) << "but what comes after counts";
  }
}

TEST_F(MembershipTest, AnotherEpochIsAskedAboutOnceASecond) {
  EXPECT_TRUE(members_->OnOtherEpoch(now_));
  EXPECT_FALSE(members_->OnOtherEpoch(now_));
  now_ += seconds(1);
  EXPECT_TRUE(members_->OnOtherEpoch(now_));
}

TEST_F(MembershipTest, OneThatDoesNotAnswerIsNotCalledEachTime) {
  for (int i = 0; i < 100; ++i) Hear("m" + std::to_string(i), "h:" + std::to_string(i));
  size_t calls = 0;
  for (int second = 0; second < 59; ++second) {
    calls += members_->Due(now_, random_).size();
    Pass(1);
  }
  EXPECT_GE(calls, 1000U);
  EXPECT_LE(calls, 1300U) << "about every five seconds";
}

TEST_F(MembershipTest, EachOfALargeOneIsInContactThreeTimesBeforeItWouldBeForgotten) {
  constexpr int kMembers = 2000;
  std::vector<Member> reported;
  for (int i = 0; i < kMembers; ++i) {
    reported.push_back({.id = "m" + std::to_string(i), .addr = "h:" + std::to_string(i)});
  }
  members_->Learn(reported, now_);
  std::vector<int> contacts(kMembers);
  size_t most = 0;
  size_t asked = 0;
  for (int round = 0; round < 600; ++round) {
    const auto due = members_->Due(now_, random_);
    for (const RosterCall& call : due) {
      members_->OnAnswerOf(call.id, now_);
      ++contacts[static_cast<size_t>(std::stoi(call.id.substr(1)))];
    }
    asked += due.size();
    if (round > 100) most = std::max(most, due.size());
    Pass(1);
    ASSERT_EQ(members_->size(), kMembers + 1U);
  }
  // Ten minutes: at least three times in each of ten.
  EXPECT_GE(*std::min_element(contacts.begin(), contacts.end()), 30);
  EXPECT_LE(asked, static_cast<size_t>(kMembers) * 36) << "and hardly oftener";
  EXPECT_LE(most, static_cast<size_t>(kMembers) / 4) << "not all at the same time";
}

// Both of a pair call, whoever of them finds the other due first.
TEST_F(MembershipTest, FiveThousandIdleMembersCostLittle) {
  constexpr int kMembers = 5000;
  std::vector<Member> reported;
  for (int i = 0; i < kMembers; ++i) {
    reported.push_back({.id = "m" + std::to_string(i), .addr = "h:" + std::to_string(i)});
  }
  MembershipOptions options;
  options.self = {.id = "self", .addr = "s:1"};
  Membership theirs(options);  // of us, each
  members_->Learn(reported, now_);
  theirs.Learn(reported, now_);
  size_t exchanges = 0;
  constexpr size_t kSeconds = 300;
  for (size_t second = 0; second < kSeconds; ++second) {
    for (Membership* side : {members_.get(), &theirs}) {
      for (const RosterCall& call : side->Due(now_, random_)) {
        members_->OnAnswerOf(call.id, now_);
        theirs.OnAnswerOf(call.id, now_);
        ++exchanges;
      }
    }
    Pass(1);
  }
  // A request with two IDs, an address and an ETag, and a 304 with an ID, an epoch and an ETag.
  constexpr size_t kBytes = 300;
  EXPECT_GE(exchanges, size_t{kMembers} * 15) << "each three times a minute";
  EXPECT_LT(exchanges * kBytes / kSeconds, 100'000U) << "bytes a second, in and out";
}

}  // namespace
}  // namespace dartfs::p2p
