#include "p2p/owner_history.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "p2p/chunk_tree.h"

namespace dartfs::p2p {
namespace {

using std::chrono::seconds;

// The rank of WIRE.md's golden values: 03 04 05 07 08 00 09 06 01 02.
constexpr uint64_t kKey = 0xdeadbeefcafebabe;

ViewPtr Without(const std::vector<int>& gone) {
  std::vector<Member> members;
  for (int i = 0; i < 10; ++i) {
    if (std::find(gone.begin(), gone.end(), i) != gone.end()) continue;
    members.push_back({.id = "node-0" + std::to_string(i), .addr = "h:1"});
  }
  return std::make_shared<const View>(std::move(members));
}

class OwnerHistoryTest : public ::testing::Test {
 protected:
  bool IsNew() { return history_.IsNew(kKey, now_); }

  core::TimePoint now_ = core::TimePoint(seconds(1000));
  OwnerHistory history_{"node-04", Without({3}), /*settled=*/true, now_};
};

TEST_F(OwnerHistoryTest, ASettledOwnerIsNotNew) {
  EXPECT_FALSE(IsNew());
  history_.OnView(Without({3, 5}), now_);
  EXPECT_FALSE(IsNew()) << "it was the owner before, too";
}

TEST_F(OwnerHistoryTest, WhoBecomesTheOwnerIsNewForAMinute) {
  history_.OnView(Without({}), now_);
  now_ += seconds(100);
  history_.OnView(Without({3}), now_);
  EXPECT_TRUE(IsNew());
  now_ += seconds(59);
  EXPECT_TRUE(IsNew());
  now_ += seconds(1);
  EXPECT_FALSE(IsNew());
}

// Not only the view before the last counts: others come and go meanwhile.
TEST_F(OwnerHistoryTest, FurtherChangesDoNotMakeItOlder) {
  history_.OnView(Without({}), now_);
  now_ += seconds(100);
  history_.OnView(Without({3}), now_);
  for (int i = 0; i < 590; ++i) {
    EXPECT_TRUE(IsNew()) << i;
    now_ += std::chrono::milliseconds(100);
    history_.OnView(i % 2 == 0 ? Without({3, 5}) : Without({3, 7}), now_);
  }
  now_ += seconds(11);
  EXPECT_FALSE(IsNew());
}

TEST_F(OwnerHistoryTest, WhoHasJustStartedOwnsNothingOfOld) {
  OwnerHistory fresh("node-04", Without({3}), /*settled=*/false, now_);
  EXPECT_TRUE(fresh.IsNew(kKey, now_));
  EXPECT_TRUE(fresh.IsNew(kKey, now_ + seconds(59)));
  EXPECT_FALSE(fresh.IsNew(kKey, now_ + seconds(60)));
}

}  // namespace
}  // namespace dartfs::p2p
