#include "core/engine/filler.h"

#include <gtest/gtest.h>

#include <future>
#include <set>
#include <thread>

#include "engine_fixture.h"

namespace dartfs::core {
namespace {

using origin::Fault;
using origin::FaultRule;

class FillerTest : public EngineTest {
 protected:
  void SetUp() override {
    options_.max_attempts = 2;
    EngineTest::SetUp();
    bytes_ = Pattern(20 * kBlock + 100, 77);
    origin().AddFile("/a", bytes_);
  }

  struct Job {
    std::unique_ptr<Fill> fill;
    std::future<Status> outcome;
  };
  Job Start(const std::string& path) {
    auto object = Open(path);
    EXPECT_TRUE(object) << object.error().ToString();
    auto promise = std::make_shared<std::promise<Status>>();
    Job job;
    job.outcome = promise->get_future();
    job.fill = engine_->StartFill(*object, Requester{UrlOf(path), ""},
                                  [promise](Status status) { promise->set_value(status); });
    return job;
  }
  static Status Outcome(Job& job) {
    if (job.outcome.wait_for(std::chrono::seconds(30)) != std::future_status::ready) {
      return MakeError(Code::kDeadlineExceeded, "the job does not end");
    }
    return job.outcome.get();
  }
  uint64_t Held(const std::string& path) { return store_->PresentBlocks(*(*Open(path))->stored()); }

  std::string bytes_;
};

TEST_F(FillerTest, CompletesAnObjectAndAsksForEachByteOnce) {
  ASSERT_TRUE(Read("/a", 3 * kBlock, 2 * kBlock));
  Job job = Start("/a");
  const Status status = Outcome(job);
  ASSERT_TRUE(status) << status.error().ToString();
  const FillProgress progress = job.fill->Progress();
  EXPECT_TRUE(progress.done);
  EXPECT_FALSE(progress.error);
  EXPECT_EQ(progress.present_bytes, bytes_.size());
  EXPECT_EQ(progress.total_bytes, bytes_.size());
  constexpr uint64_t kProbe = 1;
  EXPECT_EQ(engine_->Stats().origin_bytes, bytes_.size() + kProbe);
  origin_->Stop();
  EXPECT_EQ(Read("/a").value(), bytes_);
}

TEST_F(FillerTest, ACompleteObjectIsDoneAtOnce) {
  ASSERT_TRUE(Read("/a"));
  ASSERT_TRUE(WaitStored(*Open("/a")));
  Job job = Start("/a");
  EXPECT_TRUE(Outcome(job));
}

TEST_F(FillerTest, ADroppedJobStops) {
  origin().SetFaults({{.fault = Fault::kDelay, .path = "/a", .min_offset = 1, .delay_ms = 200}});
  Job job = Start("/a");
  job.fill.reset();
  const Status status = Outcome(job);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_LT(Held("/a"), 21u);
}

TEST_F(FillerTest, AnOriginThatFailsForAWhileIsAskedAgain) {
  origin().SetFaults(
      {{.fault = Fault::kStatus, .path = "/a", .min_offset = 1, .times = 12, .status = 500}});
  Job job = Start("/a");
  const Status status = Outcome(job);
  ASSERT_TRUE(status) << status.error().ToString();
  EXPECT_EQ(Held("/a"), 21u);
}

TEST_F(FillerTest, WhatCanNotBeMendedEndsTheJob) {
  Job ready = Start("/a");  // opens it
  ASSERT_TRUE(Outcome(ready));
  origin().AddFile("/b", bytes_);
  auto object = Open("/b");
  origin().SetFaults({{.fault = Fault::kStatus, .path = "/b", .status = 403}});
  Job job = Start("/b");
  const Status status = Outcome(job);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kForbidden);
  EXPECT_TRUE(job.fill->Progress().error);
}

TEST_F(FillerTest, ANewVersionEndsTheJob) {
  auto object = Open("/a");
  origin().AddFile("/a", Pattern(20 * kBlock + 100, 78));
  Job job = Start("/a");
  const Status status = Outcome(job);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kStale);
}

TEST_F(FillerTest, AnObjectLargerThanTheCacheIsRefused) {
  StopNode();
  store_options_.limit_bytes = 10 * kBlock;
  StartNode();
  Job job = Start("/a");
  const Status status = Outcome(job);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kTooLarge);
  EXPECT_EQ(engine_->Stats().flights_started, 0u);
}

TEST_F(FillerTest, JobsBeyondTheRunningOnesWaitTheirTurn) {
  std::vector<Job> jobs;
  origin().SetFaults({{.fault = Fault::kDelay, .path = "/f*", .min_offset = 1, .delay_ms = 300}});
  for (int i = 0; i < 6; ++i) {
    const std::string path = "/f" + std::to_string(i);
    origin().AddFile(path, Pattern(3 * kBlock, 100 + static_cast<uint64_t>(i)));
    jobs.push_back(Start(path));
  }
  std::set<std::string> running;
  for (const FlightReport& flight : engine_->Stats().flights) running.insert(flight.url);
  EXPECT_EQ(running, (std::set<std::string>{origin().Url("/f0"), origin().Url("/f1")}));
  for (Job& job : jobs) EXPECT_TRUE(Outcome(job));
}

TEST_F(FillerTest, AnOriginThatFailsHoldsUpNoOthers) {
  for (const char* path : {"/x", "/y"}) origin().AddFile(path, bytes_);
  origin().SetFaults({{.fault = Fault::kStatus, .path = "/x", .min_offset = 1, .status = 500},
                      {.fault = Fault::kStatus, .path = "/y", .min_offset = 1, .status = 500}});
  Job x = Start("/x");
  Job y = Start("/y");
  Job a = Start("/a");
  EXPECT_TRUE(Outcome(a));
  EXPECT_FALSE(x.fill->Progress().done);
  EXPECT_FALSE(y.fill->Progress().done);
  engine_->Stop();
  EXPECT_FALSE(Outcome(x));
  EXPECT_FALSE(Outcome(y));
}

TEST_F(FillerTest, StoppingTheEngineEndsJobs) {
  origin().SetFaults({{.fault = Fault::kDelay, .path = "/a", .min_offset = 1, .delay_ms = 300}});
  Job job = Start("/a");
  engine_->Stop();
  const Status status = Outcome(job);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kCancelled);
}

TEST_F(FillerTest, ACompleteObjectIsCheckedAndThenLent) {
  Job job = Start("/a");
  ASSERT_TRUE(Outcome(job));
  auto object = *Open("/a");
  bool may = engine_->MayLend(object);
  EXPECT_FALSE(may);  // not read back so far
  for (int i = 0; i < 1000 && !may; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    may = engine_->MayLend(object);
  }
  ASSERT_TRUE(may);
  std::promise<Result<FileLoan>> promise;
  engine_->Lend(object, [&promise](Result<FileLoan> loan) { promise.set_value(std::move(loan)); });
  const Result<FileLoan> loan = promise.get_future().get();
  ASSERT_TRUE(loan) << loan.error().ToString();
  std::string bytes(bytes_.size(), '\0');
  ASSERT_EQ(pread(loan->fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(bytes, bytes_);
}

// Read-ahead's blocks are stored past the page cache: their reader takes them out of memory.
TEST_F(FillerTest, WhatWasFetchedAheadIsNotReadBackFromTheDisk) {
  EXPECT_EQ(ReadThrough("/a").value(), bytes_);
  // The first block was not fetched ahead: its second half may have been stored meanwhile.
  EXPECT_LT(engine_->Stats().cache_bytes, kBlock);
  EXPECT_GT(engine_->Stats().memory_bytes, bytes_.size() - kBlock);
}

// Its digest turns out wrong while blocks of it are still held for a reader.
TEST_F(FillerTest, HeldBlocksOfARefusedObjectAreNotServed) {
  OpenOptions options;
  options.digest = "sha256:" + std::string(64, '0');
  auto object = *Open("/a", options);
  auto reader = ReaderOf(object);
  std::string piece(kBlock / 4, '\0');
  const auto into = std::as_writable_bytes(std::span(piece));
  for (uint64_t at = 0; at < 2 * kBlock; at += piece.size()) {
    ASSERT_TRUE(ReadOn(*reader, at, piece.size()));
  }
  Job job;
  job.fill = engine_->StartFill(object, Requester{UrlOf("/a"), ""}, nullptr);
  for (int i = 0; i < 1000 && engine_->Stats().wrong_digests == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(engine_->Stats().wrong_digests, 1u);
  for (int i = 0; i < 1000 && store_->PresentBlocks(*object->stored()) > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (uint64_t at = 2 * kBlock; at + piece.size() < bytes_.size(); at += piece.size()) {
    EXPECT_FALSE(reader->TryRead(at, into)) << at;
    EXPECT_FALSE(ReadOn(*reader, at, piece.size())) << at;
  }
}

}  // namespace
}  // namespace dartfs::core
