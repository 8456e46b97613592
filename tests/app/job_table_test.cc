#include "app/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/mutex.h"

namespace dartfs::app {
namespace {

using ::testing::SizeIs;

// A door that jobs wait at.
class Door {
 public:
  void Open() {
    core::MutexLock lock(mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Pass() {
    core::MutexLock lock(mu_);
    while (!open_) changed_.Wait(mu_);
  }

 private:
  core::Mutex mu_;
  core::CondVar changed_;
  bool open_ GUARDED_BY(mu_) = false;
};

// Waits for the job's end.
JobFacts AtItsEnd(JobTable& table, uint64_t id) {
  std::optional<JobFacts> facts = table.Find(id);
  while (facts && facts->state == JobState::kRunning) {
    std::this_thread::yield();
    facts = table.Find(id);
  }
  return facts.value_or(JobFacts());
}

TEST(JobTable, AJobFromItsStartToItsEnd) {
  JobTable table;
  Door door;
  const auto id = table.Start("warm", "this", [&door](Job& job) {
    job.Update([](JobProgress& progress) { progress.bytes_total = 7; });
    door.Pass();
    job.Update([](JobProgress& progress) { progress.bytes_done = 7; });
  });
  ASSERT_TRUE(id);
  EXPECT_EQ(table.Find(*id)->state, JobState::kRunning);
  EXPECT_EQ(table.Find(*id)->what, "this");
  door.Open();
  const JobFacts facts = AtItsEnd(table, *id);
  EXPECT_EQ(facts.state, JobState::kDone);
  EXPECT_EQ(facts.progress.bytes_done, 7u);
  EXPECT_FALSE(facts.progress.walking);
  EXPECT_FALSE(table.Cancel(*id)) << "it is over";
}

TEST(JobTable, WhatFailsIsCountedAndSaidOfTheFirst) {
  JobTable table;
  const auto id = table.Start("warm", "this", [](Job& job) {
    for (int i = 0; i < 40; ++i) {
      job.Fail("object " + std::to_string(i), core::MakeError(core::Code::kNotFound, "absent"));
    }
  });
  const JobFacts facts = AtItsEnd(table, *id);
  EXPECT_EQ(facts.state, JobState::kFailed);
  EXPECT_EQ(facts.progress.objects_failed, 40u);
  EXPECT_THAT(facts.progress.errors, SizeIs(Job::kMostErrors));
  EXPECT_EQ(facts.progress.errors[1], "object 1: absent");
}

TEST(JobTable, DamageIsNoSuccess) {
  JobTable table;
  const auto id = table.Start("verify", "this", [](Job& job) {
    job.Update([](JobProgress& progress) { progress.bad_granules = 1; });
  });
  EXPECT_EQ(AtItsEnd(table, *id).state, JobState::kFailed);
}

void UntilCancelled(Job& job) {
  while (!job.cancelled()) std::this_thread::yield();
}

TEST(JobTable, OnlySoManyRun) {
  JobTable table;
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < JobTable::kMostRunning; ++i) {
    ids.push_back(*table.Start("warm", "this", UntilCancelled));
  }
  const auto refused = table.Start("warm", "this", UntilCancelled);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Code::kBusy);
  EXPECT_TRUE(table.Cancel(ids[3]));
  EXPECT_EQ(AtItsEnd(table, ids[3]).state, JobState::kCancelled);
  EXPECT_TRUE(table.Start("warm", "this", UntilCancelled));
}

TEST(JobTable, ThoseThatAreOverAreForgottenInTheEnd) {
  JobTable table;
  uint64_t last = 0;
  for (size_t i = 0; i < 3 * JobTable::kMostKept; ++i) {
    last = *table.Start("warm", "this", [](Job&) {});
    AtItsEnd(table, last);
  }
  EXPECT_THAT(table.All(), SizeIs(JobTable::kMostKept));
  EXPECT_TRUE(table.Find(last));
  EXPECT_FALSE(table.Find(1));
  EXPECT_FALSE(table.Cancel(1));
}

TEST(JobTable, StopEndsAll) {
  JobTable table;
  const uint64_t id = *table.Start("warm", "this", UntilCancelled);
  table.Stop();
  table.Stop();
  EXPECT_EQ(table.Find(id)->state, JobState::kCancelled);
  EXPECT_FALSE(table.Start("warm", "this", [](Job&) {}));
}

}  // namespace
}  // namespace dartfs::app
