#include "p2p/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace dartfs::p2p {
namespace {

Member Of(const std::string& id, double weight = 1, MemberState state = MemberState::kReady) {
  return {.id = id, .addr = id + ":1", .weight = weight, .state = state};
}
uint64_t Epoch(std::vector<Member> members) { return View(std::move(members)).epoch(); }

TEST(View, EpochsAreTheWires) {
  EXPECT_EQ(Epoch({Of("node-a"), Of("node-b", 2), Of("node-c")}), 448884658194799021U);
  EXPECT_EQ(Epoch({}), 17280346270528514342U);
  EXPECT_EQ(Epoch({Of("a")}), 3317810402381269797U);
  EXPECT_EQ(Epoch({Of("a", 2.5), Of("b", 0)}), 975356666063309130U) << "weights as they came";
}

TEST(View, TheEpochDoesNotDependOnTheInputsOrder) {
  std::mt19937_64 random(3);
  std::vector<Member> members;
  for (int i = 0; i < 40; ++i) members.push_back(Of("m" + std::to_string(i % 30), i % 4));
  members.push_back(Of("m1", std::numeric_limits<double>::quiet_NaN()));
  const View first(members);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(members.begin(), members.end(), random);
    const View again(members);
    EXPECT_EQ(again.epoch(), first.epoch());
    EXPECT_EQ(again.members().size(), 30U);
    EXPECT_TRUE(std::equal(again.members().begin(), again.members().end(), first.members().begin(),
                           first.members().end()));
  }
}

TEST(View, TheEpochIsThatOfIdsAndWeightsAlone) {
  const uint64_t epoch = Epoch({Of("a"), Of("b")});
  for (const auto state : {MemberState::kSuspect, MemberState::kJoining, MemberState::kLeaving}) {
    EXPECT_EQ(Epoch({Of("a", 1, state), Of("b")}), epoch) << StateName(state);
  }
  Member moved = Of("a");
  moved.addr = "elsewhere:2";
  EXPECT_EQ(Epoch({moved, Of("b")}), epoch);
  EXPECT_NE(Epoch({Of("a", 2), Of("b")}), epoch);
  EXPECT_NE(Epoch({Of("c"), Of("b")}), epoch);
  EXPECT_NE(Epoch({Of("a")}), epoch);
}

TEST(View, ReadyOwnLiveAreRead) {
  const View view({Of("d", 1, MemberState::kLeaving), Of("c", 2, MemberState::kSuspect), Of("b", 3),
                   Of("a", 1, MemberState::kJoining), Of("e", 4)});
  ASSERT_EQ(view.ready().size(), 2U);
  EXPECT_EQ(view.ready()[0].id, "b");
  EXPECT_EQ(view.ready()[1].id, "e");
  EXPECT_EQ(view.ready()[1].weight, 4);
  ASSERT_EQ(view.live().size(), 3U);
  EXPECT_EQ(view.live()[1].id, "c");
  EXPECT_EQ(Rank(1, view.ready()).size(), 2U) << "ranks as it is";
}

TEST(View, OfTwoReportsTheServingOneStays) {
  const MemberState order[] = {MemberState::kReady, MemberState::kSuspect, MemberState::kJoining,
                               MemberState::kLeaving};
  for (int better = 0; better < 4; ++better) {
    for (int worse = better; worse < 4; ++worse) {
      for (const bool turned : {false, true}) {
        std::vector<Member> two = {Of("a", 1, order[better]), Of("a", 1, order[worse])};
        if (turned) std::swap(two[0], two[1]);
        const View view(two);
        ASSERT_EQ(view.members().size(), 1U);
        EXPECT_EQ(view.members()[0].state, order[better]);
      }
    }
  }
}

TEST(View, FindsByIdAlone) {
  const View view({Of("b"), Of("a"), Of("c", 1, MemberState::kLeaving)});
  ASSERT_NE(view.Find("c"), nullptr);
  EXPECT_EQ(view.Find("c")->addr, "c:1");
  EXPECT_EQ(view.Find("a")->id, "a");
  for (const char* absent : {"", "A", "aa", "d"}) EXPECT_EQ(view.Find(absent), nullptr) << absent;
}

TEST(View, MemberIdsAreVisibleAscii) {
  for (const char* good : {"a", "node-1.rack_2", "!~", "[::1]:80,x"}) {
    EXPECT_TRUE(IsMemberId(good)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("a b"), std::string("a\x1f"),
        std::string("a\x1e"
                    "b"),
        std::string("\x7f"), std::string("a\n"), std::string("\xc3\xa9"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(IsMemberId(bad)) << bad;
  }
}

// Why separators are no part of an ID: these memberships differ and their epochs are equal.
TEST(View, IdsWithSeparatorsWouldCollide) {
  const std::string one_bits("\x3f\xf0\0\0\0\0\0\0", 8);
  const std::string joined = "a\x1f" + one_bits + "\x1e" + "b";
  EXPECT_EQ(Epoch({Of(joined)}), Epoch({Of("a"), Of("b")}));
  EXPECT_FALSE(IsMemberId(joined));
}

TEST(View, StatesHaveNames) {
  EXPECT_STREQ(StateName(MemberState::kJoining), "Joining");
  EXPECT_STREQ(StateName(MemberState::kReady), "Ready");
  EXPECT_STREQ(StateName(MemberState::kSuspect), "Suspect");
  EXPECT_STREQ(StateName(MemberState::kLeaving), "Leaving");
  EXPECT_STREQ(StateName(static_cast<MemberState>(9)), "Unknown");
}

}  // namespace
}  // namespace dartfs::p2p
