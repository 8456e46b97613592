#include "fs/open_modes.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fake/manual_scheduler.h"
#include "fs/memory_engine.h"

namespace dartfs::fs {
namespace {

class FakeBacking final : public BackingFiles {
 public:
  core::Result<int32_t> Register(int fd) override {
    if (refuse_with != 0) return core::ErrnoError(refuse_with, "scripted");
    EXPECT_GE(fd, 0);
    live.insert(++last);
    return last;
  }
  void Unregister(int32_t id) override { EXPECT_EQ(live.erase(id), 1u); }

  int refuse_with = 0;
  int32_t last = 0;
  std::set<int32_t> live;
};

class OpenModesTest : public ::testing::Test {
 protected:
  // The backing number, 0: through the daemon, kOpen: not decided so far.
  using Answer = int32_t;
  static constexpr Answer kOpen = -1;
  static constexpr Answer kRefused = -2;

  OpenModesTest() { modes_.SetBacking(backing_); }
  std::shared_ptr<core::Object> File(const std::string& name) {
    return engine_.Put(MemoryNamespace::Of("/" + name), {.size = 10, .seed = 1});
  }
  Answer Enter(NodeId node, const std::shared_ptr<core::Object>& object) {
    const size_t before = answers_.size();
    modes_.Enter(node, object, [this](core::Result<std::optional<int32_t>> id) {
      answers_.push_back(id ? id->value_or(0) : kRefused);
    });
    return answers_.size() == before ? kOpen : answers_.back();
  }

  core::ManualScheduler scheduler_;
  MemoryEngine engine_{scheduler_};
  std::shared_ptr<FakeBacking> backing_ = std::make_shared<FakeBacking>();
  OpenModes modes_{engine_};
  std::vector<Answer> answers_;
};

TEST_F(OpenModesTest, AnIncompleteFileGoesThroughTheDaemon) {
  EXPECT_EQ(Enter(2, File("a")), 0);
  EXPECT_TRUE(backing_->live.empty());
}

TEST_F(OpenModesTest, ACompleteFileIsRegisteredOnceAndGivenBackWithItsLastOpen) {
  engine_.lends = true;
  const auto file = File("a");
  EXPECT_EQ(Enter(2, file), 1);
  EXPECT_EQ(Enter(2, file), 1);
  EXPECT_EQ(engine_.loans, 1);
  EXPECT_EQ(modes_.nodes_in_passthrough(), 1u);
  EXPECT_EQ(modes_.passthrough_opens(), 2u);
  modes_.Leave(2);
  EXPECT_EQ(backing_->live.size(), 1u);
  modes_.Leave(2);
  EXPECT_TRUE(backing_->live.empty());
  EXPECT_EQ(engine_.loans, 0);
  EXPECT_EQ(Enter(2, file), 2);
}

TEST_F(OpenModesTest, TheFirstOpenDecidesUntilTheLastLeaves) {
  const auto file = File("a");
  EXPECT_EQ(Enter(2, file), 0);
  engine_.lends = true;
  EXPECT_EQ(Enter(2, file), 0);
  modes_.Leave(2);
  EXPECT_EQ(Enter(2, file), 0);
  modes_.Leave(2);
  modes_.Leave(2);
  EXPECT_EQ(Enter(2, file), 1);
  engine_.lends = false;
  EXPECT_EQ(Enter(2, file), 1);  // whatever became of the object
}

TEST_F(OpenModesTest, OpensThatComeWhileItIsDecidedWait) {
  engine_.lends = true;
  engine_.lendings.Close();
  const auto file = File("a");
  EXPECT_EQ(Enter(2, file), kOpen);
  EXPECT_EQ(Enter(2, file), kOpen);
  EXPECT_EQ(engine_.lendings.waiting(), 1u);
  engine_.lendings.Open();
  EXPECT_EQ(answers_, (std::vector<Answer>{1, 1}));
}

TEST_F(OpenModesTest, WhatTheStoreDoesNotLendGoesThroughTheDaemon) {
  engine_.lends = true;
  engine_.lendings.Close();
  const auto file = File("a");
  EXPECT_EQ(Enter(2, file), kOpen);
  engine_.lends = false;
  engine_.lendings.Open();
  EXPECT_EQ(answers_, std::vector<Answer>{0});
  EXPECT_EQ(Enter(2, file), 0);
}

TEST_F(OpenModesTest, ADamagedFileTakesNoFurtherOpenUntilItsLastLeaves) {
  engine_.lends = true;
  const auto file = File("a");
  EXPECT_EQ(Enter(2, file), 1);
  *engine_.broken = true;
  EXPECT_EQ(Enter(2, file), kRefused);
  EXPECT_EQ(Enter(2, file), kRefused);
  *engine_.broken = false;
  modes_.Leave(2);  // only the first was counted
  EXPECT_EQ(engine_.loans, 0);
  EXPECT_EQ(Enter(2, file), 2);
}

TEST_F(OpenModesTest, ALendingThatTheEngineDropsIsDecidedToo) {
  engine_.lends = true;
  engine_.lendings.Close();
  EXPECT_EQ(Enter(2, File("a")), kOpen);
  EXPECT_EQ(Enter(2, File("a")), kOpen);
  engine_.Stop();
  EXPECT_EQ(answers_, (std::vector<Answer>{0, 0}));
}

TEST_F(OpenModesTest, AfterARefusalOfTheKernelTheNextAreNotTriedForAWhile) {
  engine_.lends = true;
  backing_->refuse_with = ELOOP;
  EXPECT_EQ(Enter(2, File("a")), 0);
  EXPECT_EQ(engine_.loans, 0);
  backing_->refuse_with = 0;
  EXPECT_EQ(Enter(3, File("b")), 0);
  scheduler_.Advance(OpenModes::kAfterRefusal);
  EXPECT_EQ(Enter(4, File("c")), 1);
}

TEST_F(OpenModesTest, WithoutPassthroughNothingIsChecked) {
  modes_.SetBacking(nullptr);
  engine_.lends = true;
  const auto file = File("a");
  EXPECT_EQ(Enter(2, file), 0);
  modes_.Prepare(file);
  EXPECT_EQ(engine_.lend_questions, 0);
  modes_.SetBacking(backing_);
  modes_.Prepare(file);
  EXPECT_EQ(engine_.lend_questions, 1);
}

TEST_F(OpenModesTest, NothingIsUnregisteredOnceTheSessionEnds) {
  engine_.lends = true;
  const auto a = File("a"), b = File("b");
  EXPECT_EQ(Enter(2, a), 1);
  engine_.lendings.Close();
  EXPECT_EQ(Enter(3, b), kOpen);
  modes_.SetBacking(nullptr);
  engine_.lendings.Open();
  modes_.Leave(2);
  modes_.Leave(3);
  EXPECT_EQ(backing_->live.size(), 2u);
  EXPECT_EQ(engine_.loans, 0);
  EXPECT_EQ(Enter(4, a), 0);
}

}  // namespace
}  // namespace dartfs::fs
