#include "fs/reply.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "fake/manual_scheduler.h"
#include "fs/pending_replies.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::Result;

struct Answers {
  std::vector<Result<int>> got;
  bool deliver = true;
  Reply<int> NewReply() {
    return Reply<int>([this](Result<int> result) {
      got.push_back(std::move(result));
      return deliver;
    });
  }
};

TEST(ReplyTest, AnswersOnce) {
  Answers answers;
  Reply<int> reply = answers.NewReply();
  const auto pending = reply.pending();
  EXPECT_TRUE(reply.Send(7));
  EXPECT_FALSE(pending->Fail(core::MakeError(Code::kCancelled, "late")));
  ASSERT_EQ(answers.got.size(), 1u);
  EXPECT_EQ(*answers.got[0], 7);
}

TEST(ReplyTest, DroppedUnansweredIsAnError) {
  Answers answers;
  {
    Reply<int> reply = answers.NewReply();
    const Reply<int> moved = std::move(reply);
  }
  ASSERT_EQ(answers.got.size(), 1u);
  EXPECT_EQ(answers.got[0].error().code, Code::kIo);
}

TEST(ReplyTest, SaysWhenTheRequesterHasGone) {
  Answers answers;
  answers.deliver = false;
  EXPECT_FALSE(answers.NewReply().Send(1));
  answers.deliver = true;
  Reply<int> failed = answers.NewReply();
  EXPECT_TRUE(failed.pending()->Fail(core::MakeError(Code::kCancelled, "killed")));
  EXPECT_FALSE(failed.Send(2));
}

TEST(ReplyTest, CancelHookRunsOnlyOnFailure) {
  Answers answers;
  int cancelled = 0;
  const auto hook = [&] { ++cancelled; };

  Reply<int> sent = answers.NewReply();
  auto pending = sent.pending();
  pending->OnCancel(hook);
  sent.Send(1);
  pending->OnCancel(hook);  // too late: dropped
  EXPECT_EQ(cancelled, 0);

  Reply<int> failed = answers.NewReply();
  pending = failed.pending();
  pending->OnCancel(hook);
  pending->Fail(core::MakeError(Code::kCancelled, "x"));
  EXPECT_EQ(cancelled, 1);
  pending->OnCancel(hook);  // failed before: at once
  EXPECT_EQ(cancelled, 2);
}

TEST(ReplyTest, HookIsDroppedBeforeTheAnswer) {
  auto kept = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = kept;
  bool gone_at_answer = false;
  Reply<int> reply([&](const Result<int>&) { return gone_at_answer = watch.expired(); });
  reply.pending()->OnCancel([kept = std::move(kept)] {});
  reply.Send(1);
  EXPECT_TRUE(gone_at_answer);
}

TEST(ReplyTest, RacingAnswersAreOne) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> answers{0};
    Reply<int> reply([&](const Result<int>&) { return ++answers > 0; });
    const auto pending = reply.pending();
    std::thread other([&] { pending->Fail(core::MakeError(Code::kCancelled, "x")); });
    reply.Send(1);
    other.join();
    ASSERT_EQ(answers, 1);
  }
}

// Requests that wait, and callers as the test says they are.
class PendingRepliesTest : public ::testing::Test {
 protected:
  static inline CallerState caller_state = CallerState::kAlive;
  static inline int looks = 0;
  void SetUp() override { looks = 0; }

  uint64_t Wait() {
    const uint64_t id = pending_->Begin(1234);
    Add(id);
    return id;
  }
  void Add(uint64_t id) {
    Reply<int> reply([this, id](Result<int> result) {
      pending_->Remove(id);
      answers_.push_back(std::move(result));
      return true;
    });
    pending_->Add(id, reply.pending());
    waiting_.push_back(std::move(reply));
  }

  core::ManualScheduler scheduler_;
  std::shared_ptr<PendingReplies> pending_ =
      std::make_shared<PendingReplies>(scheduler_, [](pid_t tid) {
        EXPECT_EQ(tid, 1234);
        ++looks;
        return caller_state;
      });
  std::vector<Result<int>> answers_;
  std::vector<Reply<int>> waiting_;
};

TEST_F(PendingRepliesTest, ADyingCallerIsAnsweredAtOnce) {
  caller_state = CallerState::kDying;
  const uint64_t id = Wait();
  pending_->Interrupt(id);
  EXPECT_TRUE(answers_.empty());  // not under libfuse's locks
  scheduler_.RunReady();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].error().code, Code::kCancelled);
  EXPECT_EQ(pending_->size(), 0u);
}

TEST_F(PendingRepliesTest, AnInterruptBeforeTheReplyIsThereIsKept) {
  caller_state = CallerState::kDying;
  const uint64_t id = pending_->Begin(1234);
  pending_->Interrupt(id);
  scheduler_.RunReady();
  EXPECT_EQ(looks, 0);
  Add(id);
  scheduler_.RunReady();
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].error().code, Code::kCancelled);
  EXPECT_EQ(pending_->size(), 0u);
}

TEST_F(PendingRepliesTest, FailAllLeavesAloneWhatHasNoReplyYet) {
  const uint64_t id = pending_->Begin(1234);
  pending_->FailAll(core::MakeError(Code::kUnavailable, "stop"));
  EXPECT_EQ(pending_->size(), 1u);
  Add(id);
  waiting_[0].Send(1);
  EXPECT_EQ(pending_->size(), 0u);
}

TEST_F(PendingRepliesTest, ALivingCallerIsLookedAtUntilItDies) {
  caller_state = CallerState::kAlive;
  pending_->Interrupt(Wait());
  scheduler_.Advance(std::chrono::milliseconds(450));
  EXPECT_EQ(looks, 5);
  EXPECT_TRUE(answers_.empty());
  caller_state = CallerState::kDying;
  scheduler_.Advance(std::chrono::milliseconds(100));
  EXPECT_EQ(answers_.size(), 1u);
}

TEST_F(PendingRepliesTest, LookingEndsWithTheAnswer) {
  caller_state = CallerState::kAlive;
  pending_->Interrupt(Wait());
  scheduler_.RunReady();
  waiting_[0].Send(5);
  scheduler_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(scheduler_.timers(), 0u);
}

TEST_F(PendingRepliesTest, AnUnseenCallerWaits) {
  caller_state = CallerState::kUnseen;
  pending_->Interrupt(Wait());
  scheduler_.Advance(std::chrono::seconds(10));
  EXPECT_EQ(looks, 1);
  EXPECT_TRUE(answers_.empty());
}

TEST_F(PendingRepliesTest, AWatchedRequestNeedsNoInterrupt) {
  caller_state = CallerState::kDying;
  pending_->Watch(Wait());
  scheduler_.Advance(PendingReplies::kWatchDelay);
  EXPECT_EQ(answers_.size(), 1u);
}

TEST_F(PendingRepliesTest, FailAllAnswersEverything) {
  for (int i = 0; i < 50; ++i) Wait();
  EXPECT_EQ(pending_->size(), 50u);
  EXPECT_FALSE(pending_->WaitEmpty(std::chrono::milliseconds(5)));
  pending_->FailAll(core::MakeError(Code::kUnavailable, "stop"));
  EXPECT_EQ(answers_.size(), 50u);
  EXPECT_TRUE(pending_->WaitEmpty(std::chrono::milliseconds(5)));
}

TEST_F(PendingRepliesTest, TimersOutliveTheTable) {
  pending_->Interrupt(Wait());
  scheduler_.RunReady();
  waiting_[0].Send(1);
  pending_.reset();
  scheduler_.Advance(std::chrono::seconds(1));
}

}  // namespace
}  // namespace dartfs::fs
