#include "p2p/reader_tracking.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace dartfs::p2p {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The rank of WIRE.md's golden values: node-03 is the first of ten.
constexpr uint64_t kKey = 0xdeadbeefcafebabe;

class ReaderTrackingTest : public ::testing::Test {
 protected:
  ReaderTrackingTest() { SetMembers({}); }
  void SetMembers(const std::string& without) {
    std::vector<Member> members;
    for (int i = 0; i < 10; ++i) {
      const std::string id = "node-0" + std::to_string(i);
      if (id != without) members.push_back({.id = id, .addr = id + ":1"});
    }
    view_ = std::make_shared<const View>(std::move(members));
  }
  // None: the tree spans all.
  std::vector<std::string> Readers() const {
    const ReaderIds readers = tracking_.Readers(now_);
    return readers ? *readers : std::vector<std::string>{};
  }
  // "join 03", "leave 03" or "".
  std::string Next() {
    const auto call = tracking_.Next(view_, now_);
    if (!call) return "";
    EXPECT_EQ(call->addr, call->tracker + ":1");
    return (call->kind == TrackerCall::Kind::kJoin ? "join " : "leave ") + call->tracker.substr(5);
  }
  void Join(core::Duration lease = seconds(6)) { tracking_.OnJoined(set_, lease, now_); }

  core::TimePoint now_ = core::TimePoint(seconds(1000));
  ViewPtr view_;
  ReaderTrackingOptions options_{.self = "node-01"};
  ReaderTracking tracking_{options_, kKey};
  std::vector<std::string> set_ = {"node-01", "node-02"};
};

TEST_F(ReaderTrackingTest, JoinsWithTheFirstReadAndRenewsAtHalfTheLease) {
  EXPECT_EQ(Next(), "");
  EXPECT_TRUE(tracking_.over());
  tracking_.OnRead(now_);
  EXPECT_EQ(Next(), "join 03");
  EXPECT_EQ(Next(), "") << "one at a time";
  EXPECT_EQ(tracking_.Readers(now_), nullptr) << "until then the tree spans all";
  Join();
  EXPECT_EQ(Readers(), set_);
  for (int i = 0; i < 20; ++i) {
    tracking_.OnRead(now_);
    now_ += seconds(3) - milliseconds(1);
    EXPECT_EQ(Next(), "");
    now_ += milliseconds(1);
    EXPECT_EQ(tracking_.wake_at(), now_);
    EXPECT_EQ(Next(), "join 03");
    now_ += milliseconds(500);
    EXPECT_EQ(Readers(), set_) << "the old set while the renewal is under way";
    Join();
  }
}

TEST_F(ReaderTrackingTest, AGrantedLeaseIsFollowed) {
  tracking_.OnRead(now_);
  Next();
  Join(seconds(2));
  now_ += seconds(1) - milliseconds(1);
  EXPECT_EQ(Readers(), set_);
  now_ += milliseconds(1);
  EXPECT_EQ(tracking_.Readers(now_), nullptr) << "half of it, unless it is being renewed";
  EXPECT_EQ(Next(), "join 03");
  EXPECT_EQ(Readers(), set_);
  now_ += seconds(1);
  EXPECT_EQ(tracking_.Readers(now_), nullptr) << "it has run out";
}

TEST_F(ReaderTrackingTest, WhatATrackerSaysIsBounded) {
  tracking_.OnRead(now_);
  Next();
  set_ = {"node-02", "node-01", "node-01"};
  Join(core::Duration{});
  EXPECT_EQ(Readers(), (std::vector<std::string>{"node-01", "node-02"})) << "in order, and once";
  EXPECT_EQ(Next(), "") << "not at once again";
  now_ += milliseconds(500);
  EXPECT_EQ(Next(), "join 03");
  set_.assign(513, "");
  for (size_t i = 0; i < set_.size(); ++i) set_[i] = "n" + std::to_string(i);
  Join(std::chrono::hours(1000000));
  EXPECT_TRUE(Readers().empty()) << "too many";
  for (int i = 0; i < 300; ++i) {
    tracking_.OnRead(now_);
    now_ += seconds(1);
  }
  EXPECT_EQ(Next(), "join 03") << "no lease is for ever";
}

TEST_F(ReaderTrackingTest, TheSameSetIsTheSameObject) {
  tracking_.OnRead(now_);
  Next();
  Join();
  const ReaderIds first = tracking_.Readers(now_);
  now_ += seconds(3);
  Next();
  Join();
  EXPECT_EQ(tracking_.Readers(now_), first);
}

TEST_F(ReaderTrackingTest, ATrackerThatDoesNotAnswerIsAskedAgainLater) {
  tracking_.OnRead(now_);
  Next();
  tracking_.OnFailed(now_);
  EXPECT_EQ(tracking_.Readers(now_), nullptr);
  EXPECT_EQ(Next(), "");
  now_ += seconds(3);
  EXPECT_EQ(Next(), "join 03");
  now_ += seconds(10);
  tracking_.OnRead(now_);
  EXPECT_EQ(Next(), "") << "a call that tells nothing has failed";
  now_ += seconds(3);
  EXPECT_EQ(Next(), "join 03");
}

TEST_F(ReaderTrackingTest, LeavesWhenNobodyReadsAnyMore) {
  tracking_.OnRead(now_);
  Next();
  Join(seconds(600));
  now_ += seconds(30);
  EXPECT_FALSE(tracking_.over());
  EXPECT_EQ(Next(), "leave 03");
  EXPECT_EQ(tracking_.Readers(now_), nullptr);
  EXPECT_TRUE(tracking_.over());
  EXPECT_EQ(Next(), "");
  tracking_.OnRead(now_);
  EXPECT_EQ(Next(), "join 03");
}

TEST_F(ReaderTrackingTest, AnotherTrackerIsJoinedAtOnce) {
  tracking_.OnRead(now_);
  Next();
  Join();
  SetMembers("node-03");
  EXPECT_EQ(Next(), "join 04");
  EXPECT_EQ(Readers(), set_) << "the old one's set until the lease is over";
  Join();
  now_ += seconds(30);
  SetMembers("node-04");
  EXPECT_EQ(Next(), "") << "there is nobody to be told";
  EXPECT_TRUE(tracking_.over());
}

TEST_F(ReaderTrackingTest, WithoutMembersTheTreeSpansAll) {
  view_ = std::make_shared<const View>(std::vector<Member>());
  tracking_.OnRead(now_);
  EXPECT_EQ(Next(), "");
  EXPECT_EQ(tracking_.Readers(now_), nullptr);
  SetMembers({});
  EXPECT_EQ(Next(), "join 03") << "as soon as there are some";
}

TEST_F(ReaderTrackingTest, AnswersThatNobodyWaitsForAreNothing) {
  tracking_.OnRead(now_);
  Join();
  EXPECT_EQ(tracking_.Readers(now_), nullptr);
}

}  // namespace
}  // namespace dartfs::p2p
