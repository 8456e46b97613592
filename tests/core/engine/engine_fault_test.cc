// What the engine does with a bad origin. Each row: nothing wrong is served or stored, and it
// recovers without a restart.
#include <gtest/gtest.h>

#include <thread>

#include "engine_fixture.h"

namespace dartfs::core {
namespace {

using origin::Fault;
using origin::FaultRule;

class EngineFaultTest : public EngineTest {
 protected:
  void SetUp() override {
    options_.max_attempts = 3;
    EngineTest::SetUp();
    bytes_ = Pattern(4 * kBlock + 100, 31);
    origin().AddFile("/a", bytes_);
  }
  std::string bytes_;
};

// A fault that never ends: the read fails, nothing is kept; the fault gone, the next read is right.
TEST_F(EngineFaultTest, PersistentFaultsAreErrorsAndLeaveNothing) {
  const std::pair<const char*, FaultRule> rows[] = {
      {"wrong range", {.fault = Fault::kWrongRange, .path = "/a", .min_offset = 1}},
      {"short range", {.fault = Fault::kShortRange, .path = "/a", .min_offset = 1}},
      {"truncated range", {.fault = Fault::kTruncatedRange, .path = "/a", .min_offset = 1}},
      {"unknown total", {.fault = Fault::kUnknownTotal, .path = "/a", .min_offset = 1}},
      {"zero range", {.fault = Fault::kZeroRange, .path = "/a", .min_offset = 1}},
      {"no Content-Range", {.fault = Fault::kNoContentRange, .path = "/a", .min_offset = 1}},
      {"multipart", {.fault = Fault::kMultipart, .path = "/a", .min_offset = 1}},
      {"gzip", {.fault = Fault::kGzip, .path = "/a", .min_offset = 1}},
      {"gzip label", {.fault = Fault::kGzipLabel, .path = "/a", .min_offset = 1}},
      {"duplicate length", {.fault = Fault::kDuplicateLength, .path = "/a", .min_offset = 1}},
      {"garbage", {.fault = Fault::kGarbage, .path = "/a", .min_offset = 1}},
      {"hang-up", {.fault = Fault::kHangUp, .path = "/a", .min_offset = 1}},
      {"huge head", {.fault = Fault::kHugeHead, .path = "/a", .min_offset = 1, .count = 1 << 20}},
      {"500", {.fault = Fault::kStatus, .path = "/a", .min_offset = 1, .status = 500}},
      {"404", {.fault = Fault::kStatus, .path = "/a", .min_offset = 1, .status = 404}},
      {"redirect loop", {.fault = Fault::kRedirectLoop, .path = "/a", .min_offset = 1}},
  };
  for (const auto& [name, rule] : rows) {
    SCOPED_TRACE(name);
    origin().SetFaults({rule});
    auto object = Open("/a");
    ASSERT_TRUE(object) << object.error().ToString();
    auto got = ReadOn(*ReaderOf(*object), 2 * kBlock, kBlock);
    EXPECT_FALSE(got);
    EXPECT_EQ(store_->PresentBlocks(*(*object)->stored()), 0u);
    origin().ClearFaults();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  auto got = Read("/a");
  ASSERT_TRUE(got) << got.error().ToString();
  EXPECT_EQ(*got, bytes_);
}

// A fault that hits once: the next try mends it.
TEST_F(EngineFaultTest, PassingFaultsAreRetried) {
  const std::pair<const char*, FaultRule> rows[] = {
      {"reset",
       {.fault = Fault::kReset, .path = "/a", .min_offset = 1, .times = 1, .after_bytes = 1000}},
      {"short body",
       {.fault = Fault::kShortBody,
        .path = "/a",
        .min_offset = 1,
        .times = 1,
        .after_bytes = 33333}},
      {"wrong range", {.fault = Fault::kWrongRange, .path = "/a", .min_offset = 1, .times = 1}},
      {"500", {.fault = Fault::kStatus, .path = "/a", .min_offset = 1, .times = 2, .status = 500}},
      {"503", {.fault = Fault::kStatus, .path = "/a", .min_offset = 1, .times = 4, .status = 503}},
      {"429 with Retry-After",
       {.fault = Fault::kStatus,
        .path = "/a",
        .min_offset = 1,
        .times = 1,
        .status = 429,
        .retry_after = 1}},
      {"hang-up", {.fault = Fault::kHangUp, .path = "/a", .min_offset = 1, .times = 1}},
      {"silence in the body",
       {.fault = Fault::kStallBody,
        .path = "/a",
        .min_offset = 1,
        .times = 1,
        .after_bytes = 5000}},
      {"silence before the head",
       {.fault = Fault::kStallHead, .path = "/a", .min_offset = 1, .times = 1}},
      {"interim 100", {.fault = Fault::kInterim100, .path = "/a", .count = 3}},
      {"interim 103", {.fault = Fault::kInterim103, .path = "/a", .count = 3}},
      {"chunked", {.fault = Fault::kChunked, .path = "/a"}},
      {"close-delimited", {.fault = Fault::kNoLength, .path = "/a"}},
      {"slow head", {.fault = Fault::kSlowHead, .path = "/a", .times = 2}},
      {"redirect", {.fault = Fault::kRedirectChain, .path = "/a", .count = 3}},
      {"close on reuse", {.fault = Fault::kCloseOnReuse, .path = "/a"}},
  };
  int n = 0;
  for (const auto& [name, rule] : rows) {
    SCOPED_TRACE(name);
    const std::string path = "/p" + std::to_string(n++);
    origin().AddFile(path, bytes_);
    FaultRule here = rule;
    here.path = path;
    origin().SetFaults({here});
    auto got = Read(path);
    ASSERT_TRUE(got) << got.error().ToString();
    EXPECT_EQ(*got, bytes_);
    EXPECT_GE(origin().Fired(0), 1u);
  }
}

TEST_F(EngineFaultTest, AResetIsResumedAtTheByte) {
  origin().AddFault(
      {.fault = Fault::kReset, .path = "/a", .min_offset = 1, .times = 1, .after_bytes = 20000});
  auto got = Read("/a", 2 * kBlock, kBlock);
  ASSERT_TRUE(got) << got.error().ToString();
  EXPECT_EQ(*got, bytes_.substr(2 * kBlock, kBlock));
  std::string resumed;
  for (const auto& request : origin().Log()) resumed = request.Header("Range");
  EXPECT_NE(resumed, "bytes=131072-196607");
  EXPECT_NE(resumed.find("-196607"), std::string::npos) << resumed;
}

TEST_F(EngineFaultTest, HiddenTotalIsAProbeFailureAndRecovers) {
  origin().SetFaults({{.fault = Fault::kZeroRange, .path = "/a"}});
  auto object = Open("/a");
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, Code::kBadResponse);
  origin().ClearFaults();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(*Read("/a"), bytes_);
}

TEST_F(EngineFaultTest, ARangeBlindOriginIsSpooledOnce) {
  for (const bool chunked : {false, true}) {
    SCOPED_TRACE(chunked);
    const std::string path = chunked ? "/chunked" : "/plain";
    origin().AddFile(path, bytes_);
    origin().SetFaults({{.fault = Fault::kIgnoreRange, .path = path}});
    if (chunked) origin().AddFault({.fault = Fault::kChunked, .path = path});
    auto got = Read(path);
    ASSERT_TRUE(got) << got.error().ToString();
    EXPECT_EQ(*got, bytes_);
    auto object = Open(path);
    ASSERT_TRUE(WaitStored(*object));
    const auto requests = origin().StatsOf(path).requests;
    EXPECT_EQ(*Read(path, 3 * kBlock, 100), bytes_.substr(3 * kBlock, 100));
    EXPECT_EQ(origin().StatsOf(path).requests, requests);
  }
}

TEST_F(EngineFaultTest, RangesIgnoredNowAndThenMakeItBlindOnce) {
  const std::pair<const char*, FaultRule> rows[] = {
      {"at offsets > 0", {.fault = Fault::kIgnoreRange, .min_offset = 1}},
      {"every third", {.fault = Fault::kIgnoreRange, .skip = 1, .every_k = 3}},
  };
  int n = 0;
  for (const auto& [name, rule] : rows) {
    SCOPED_TRACE(name);
    const std::string path = "/b" + std::to_string(n++);
    origin().AddFile(path, bytes_);
    FaultRule here = rule;
    here.path = path;
    origin().SetFaults({here});
    auto got = ReadThrough(path);
    ASSERT_TRUE(got) << got.error().ToString();
    EXPECT_EQ(*got, bytes_);
    auto object = Open(path);
    ASSERT_TRUE(object);
    EXPECT_TRUE((*object)->range_blind());
    ASSERT_TRUE(WaitStored(*object));
    const auto requests = origin().StatsOf(path).requests;
    EXPECT_EQ(*Read(path), bytes_);
    EXPECT_EQ(origin().StatsOf(path).requests, requests);
  }
}

TEST_F(EngineFaultTest, ABlindObjectAboveTheSpoolLimitIsRefused) {
  StopNode();
  options_.spool_limit_bytes = kBlock;
  StartNode();
  for (const bool chunked : {false, true}) {
    origin().SetFaults({{.fault = Fault::kIgnoreRange, .path = "/a"}});
    if (chunked) origin().AddFault({.fault = Fault::kChunked, .path = "/a"});
    auto object = Open("/a");
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().code, Code::kTooLarge);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  }
}

TEST_F(EngineFaultTest, ReadsOnAStalledOriginEndByTheirDeadlineAndOthersGoOn) {
  const std::string good = Pattern(2 * kBlock, 32);
  auto other = origin::TestOrigin::Start();
  other->AddFile("/good", good);
  auto object = Open("/a");
  ASSERT_TRUE(object);
  origin().SetFaults({{.fault = Fault::kStallBody, .path = "/a", .after_bytes = 10}});
  auto reader = ReaderOf(*object);
  constexpr int kReads = 64;
  std::vector<std::promise<Code>> answers(kReads);
  for (int i = 0; i < kReads; ++i) {
    reader->Read(static_cast<uint64_t>(i % 4) * kBlock + 1000, 10,
                 RealClock().Now() + std::chrono::seconds(3), [&answers, i](Result<ReadBytes> r) {
                   answers[static_cast<size_t>(i)].set_value(r ? Code::kInternal : r.error().code);
                 });
  }
  std::promise<Result<std::shared_ptr<Object>>> opened;
  engine_->Open(std::move(ParseUrl(other->Url("/good"))).value(), {},
                [&](Result<std::shared_ptr<Object>> r) { opened.set_value(std::move(r)); });
  auto healthy = opened.get_future().get();
  ASSERT_TRUE(healthy) << healthy.error().ToString();
  EXPECT_EQ(*ReadOn(*ReaderOf(*healthy), 0, good.size()), good);
  for (auto& answer : answers) {
    auto future = answer.get_future();
    ASSERT_EQ(future.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    const Code code = future.get();
    EXPECT_EQ(code, Code::kDeadlineExceeded) << CodeName(code);
  }
}

TEST_F(EngineFaultTest, TheVersionChangesInTheMiddleOfABlock) {
  origin().AddFile("/b", Pattern(4 * kBlock + 100, 33));
  auto object = Open("/a");
  ASSERT_TRUE(object);
  // The first block's transfer breaks; meanwhile the object has changed: the rest may not be
  // resumed.
  origin().SetFaults({{.fault = Fault::kReset, .path = "/a", .times = 1, .after_bytes = 10000},
                      {.fault = Fault::kSwap, .path = "/a", .skip = 1, .target = "/b"}});
  auto got = ReadOn(*ReaderOf(*object), 0, kBlock);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::kStale) << got.error().ToString();
}

// A disk's reader: no deadline, and no error however long the origin is away.
TEST_F(EngineFaultTest, AReadWithoutADeadlineWaitsForAnOriginThatIsAway) {
  auto object = Open("/a");
  ASSERT_TRUE(object);
  const auto reader = ReaderOf(*object);
  origin().GoAway();
  std::promise<Result<std::string>> answer;
  auto future = answer.get_future();
  reader->Read(kBlock, 100, kNoDeadline, [&](Result<ReadBytes> r) {
    if (!r) return answer.set_value(r.error());
    answer.set_value(std::string(reinterpret_cast<const char*>(r->bytes.data()), r->bytes.size()));
  });
  // With a deadline the tries are counted.
  const auto hasty = ReadOn(*reader, 3 * kBlock, 100);
  ASSERT_FALSE(hasty);
  EXPECT_EQ(hasty.error().code, Code::kUnavailable);
  const auto failures = engine_->Stats().retries;
  while (engine_->Stats().retries < failures + 3) {
    ASSERT_EQ(future.wait_for(std::chrono::milliseconds(10)), std::future_status::timeout);
  }
  origin().ComeBack();
  const auto got = future.get();
  ASSERT_TRUE(got) << got.error().ToString();
  EXPECT_EQ(*got, bytes_.substr(kBlock, 100));
}

TEST_F(EngineFaultTest, FlippedBitsInTheCacheAreFoundDroppedAndFetchedAgain) {
  ASSERT_TRUE(Read("/a"));
  ASSERT_TRUE(WaitStored(*Open("/a")));
  ASSERT_TRUE(store_->Flush());
  StopNode();
  uint64_t flipped = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ + "/cache/objects")) {
    if (!entry.is_regular_file()) continue;
    FILE* file = fopen(entry.path().c_str(), "r+b");
    ASSERT_NE(file, nullptr);
    for (uint64_t at = 100; at < bytes_.size(); at += kBlock / 4) {
      fseek(file, static_cast<long>(at), SEEK_SET);
      const int byte = fgetc(file);
      fseek(file, static_cast<long>(at), SEEK_SET);
      fputc(byte ^ 1, file);
      ++flipped;
    }
    fclose(file);
  }
  ASSERT_GT(flipped, 4u);
  StartNode();
  EXPECT_EQ(*Read("/a"), bytes_);
  EXPECT_GE(store_->Stats().corrupt_granules, 5u);  // one at least in each block
}

// Nothing tells the generations of such an object apart: two passes over it must not be mixed.
TEST_F(EngineFaultTest, ABrokenPassOverAnUnversionedBlindObjectIsNotGoneOnWith) {
  auto behaviour = origin().behaviour();
  behaviour.etag = origin::EtagMode::kNone;
  behaviour.last_modified = false;
  origin().SetBehaviour(behaviour);
  const std::string other = Pattern(bytes_.size(), 34);
  origin().AddFile("/b", other);
  origin().SetFaults(
      {{.fault = Fault::kIgnoreRange, .path = "/a"},
       {.fault = Fault::kReset, .path = "/a", .skip = 1, .times = 1, .after_bytes = 2 * kBlock + 9},
       {.fault = Fault::kSwap, .path = "/a", .skip = 2, .target = "/b"}});
  auto object = Open("/a");
  ASSERT_TRUE(object) << object.error().ToString();
  auto got = ReadOn(*ReaderOf(*object), 0, bytes_.size());
  ASSERT_FALSE(got) << (*got == bytes_ ? "the first" : *got == other ? "the second" : "a mix");
  EXPECT_EQ(got.error().code, Code::kStale) << got.error().ToString();
  EXPECT_TRUE((*object)->superseded());
  auto fresh = Read("/a");
  ASSERT_TRUE(fresh) << fresh.error().ToString();
  EXPECT_EQ(*fresh, other);
}

// Of one block: a larger one is taken in one pass.
TEST_F(EngineFaultTest, ABlockOfAnUnversionedObjectIsNeverMadeOfTwoGenerations) {
  const std::string bytes = bytes_.substr(0, kBlock);
  auto behaviour = origin().behaviour();
  behaviour.etag = origin::EtagMode::kNone;
  behaviour.last_modified = false;
  origin().SetBehaviour(behaviour);
  for (const bool changes : {false, true}) {
    SCOPED_TRACE(changes);
    const std::string path = changes ? "/changes" : "/stays";
    origin().AddFile(path, bytes);
    origin().AddFile("/b", Pattern(bytes.size(), 35));
    origin().SetFaults(
        {{.fault = Fault::kReset, .path = path, .skip = 1, .times = 1, .after_bytes = 20000}});
    if (changes) {
      origin().AddFault({.fault = Fault::kSwap, .path = path, .skip = 2, .target = "/b"});
    }
    auto object = Open(path);
    ASSERT_TRUE(object) << object.error().ToString();
    auto got = ReadOn(*ReaderOf(*object), 0, kBlock);
    if (changes) {
      ASSERT_FALSE(got);
      EXPECT_EQ(got.error().code, Code::kStale) << got.error().ToString();
    } else {
      ASSERT_TRUE(got) << got.error().ToString();
      EXPECT_EQ(*got, bytes);
    }
  }
}

TEST_F(EngineFaultTest, CredentialsFailOnlyTheirHolders) {
  origin().SetFaults({{.fault = Fault::kAuth, .path = "/a", .credential = "u:p"}});
  OpenOptions good;
  good.authorization = "Basic dTpw";
  auto object = Open("/a", good);
  ASSERT_TRUE(object) << object.error().ToString();
  auto refused = ReaderOf(*object, "Basic d3Jvbmc6");
  auto allowed = ReaderOf(*object, good.authorization);
  std::promise<Code> first;
  refused->Read(0, 10, Deadline(10), [&](Result<ReadBytes> r) {
    first.set_value(r ? Code::kInternal : r.error().code);
  });
  auto second = ReadOn(*allowed, 0, kBlock);
  ASSERT_TRUE(second) << second.error().ToString();
  EXPECT_EQ(*second, bytes_.substr(0, kBlock));
  const Code code = first.get_future().get();
  EXPECT_TRUE(code == Code::kUnauthorized || code == Code::kInternal) << CodeName(code);
}

}  // namespace
}  // namespace dartfs::core
