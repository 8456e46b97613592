// The engine's behaviour on a good origin: sizes, ranges, single-flight, versions, restarts.
#include "core/engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "engine_fixture.h"

namespace dartfs::core {
namespace {

TEST_F(EngineTest, SizeComesFromExactlyOneRangedGet) {
  origin().AddFile("/a", Pattern(3 * kBlock + 17, 1));
  auto object = Open("/a");
  ASSERT_TRUE(object) << object.error().ToString();
  EXPECT_EQ((*object)->size(), 3 * kBlock + 17);
  const auto log = origin().Log();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0].method, "GET");
  EXPECT_EQ(log[0].Header("Range"), "bytes=0-0");
  EXPECT_EQ(log[0].Header("Accept-Encoding"), "identity");
  ASSERT_TRUE(Open("/a"));
  EXPECT_EQ(origin().StatsOf("/a").requests, 1u);
}

TEST_F(EngineTest, WholeAndSubRangesAreExact) {
  const std::string bytes = Pattern(5 * kBlock + 1234, 2);
  origin().AddFile("/a", bytes);
  EXPECT_EQ(*Read("/a"), bytes);
  EXPECT_EQ(*Read("/a", 10, 20), bytes.substr(10, 20));
  EXPECT_EQ(*Read("/a", kBlock - 3, 7), bytes.substr(kBlock - 3, 7));  // across blocks
  EXPECT_EQ(*Read("/a", 3 * kBlock, 2 * kBlock), bytes.substr(3 * kBlock, 2 * kBlock));  // chunks
  EXPECT_EQ(*Read("/a", bytes.size() - 5, 100), bytes.substr(bytes.size() - 5));         // end cut
  EXPECT_EQ(*Read("/a", bytes.size(), 1), "");
  EXPECT_EQ(*Read("/a", bytes.size() + 100, 1), "");
}

TEST_F(EngineTest, RepeatedReadsAskTheOriginNothing) {
  origin().AddFile("/a", Pattern(2 * kBlock, 3));
  ASSERT_TRUE(Read("/a"));
  const auto before = origin().StatsOf("/a").requests;
  EXPECT_EQ(before, 3u);  // one probe, two blocks
  ASSERT_TRUE(WaitStored(*Open("/a")));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Read("/a"));
  EXPECT_EQ(origin().StatsOf("/a").requests, before);
  EXPECT_GT(engine_->Stats().cache_reads, 0u);
}

TEST_F(EngineTest, EachBlockThatWasFetchedIsTimedOnce) {
  origin().AddFile("/a", Pattern(3 * kBlock, 3));
  origin().AddFault(
      {.fault = origin::Fault::kStatus, .path = "/a", .min_offset = 1, .times = 1, .status = 500});
  ASSERT_TRUE(Read("/a"));
  ASSERT_TRUE(Read("/a"));
  EXPECT_EQ(engine_->Stats().origin_fetches.count(), 3u);
  EXPECT_GT(engine_->Stats().origin_fetches.sum, Duration(0));
  EXPECT_EQ(engine_->Stats().peer_fetches.count(), 0u);
}

TEST_F(EngineTest, TheLastBlockIsAskedForWithItsExactEnd) {
  origin().AddFile("/a", Pattern(kBlock + 3, 4));
  origin().AddFault({.fault = origin::Fault::kPastEnd416, .path = "/a"});
  EXPECT_EQ(Read("/a")->size(), kBlock + 3);
}

TEST_F(EngineTest, NeverSendsHead) {
  origin().AddFile("/a", Pattern(kBlock, 5));
  origin().AddFault({.fault = origin::Fault::kGetOnly, .path = "/a"});
  EXPECT_TRUE(Read("/a"));
  EXPECT_EQ(origin().StatsOf("/a").by_method.count("HEAD"), 0u);
}

TEST_F(EngineTest, EmptyObjects) {
  for (const auto mode : {origin::EmptyRange::k416, origin::EmptyRange::k200}) {
    auto behaviour = origin().behaviour();
    behaviour.empty_range = mode;
    origin().SetBehaviour(behaviour);
    const std::string path = mode == origin::EmptyRange::k416 ? "/e416" : "/e200";
    origin().AddFile(path, "");
    auto object = Open(path);
    ASSERT_TRUE(object) << object.error().ToString();
    EXPECT_EQ((*object)->size(), 0u);
    EXPECT_EQ(*Read(path), "");
  }
}

TEST_F(EngineTest, ManyConcurrentReadersCostTheOriginOneFetchOfEachBlock) {
  const std::string bytes = Pattern(12 * kBlock + 99, 6);
  origin().AddFile("/a", bytes);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      const auto got = ReadThrough("/a");
      if (!got || *got != bytes) ++wrong;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(origin().StatsOf("/a").requests, 1u + 13u);
  EXPECT_EQ(origin().StatsOf("/a").body_bytes, bytes.size() + 1);
}

TEST_F(EngineTest, OverlappingRandomReadsAgreeWithTheModel) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const std::string bytes = Pattern(20 * kBlock + 777, 7);
  origin().AddFile("/a", bytes);
  auto object = Open("/a");
  ASSERT_TRUE(object);
  auto reader = ReaderOf(*object);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      for (int i = 0; i < 150; ++i) {
        const uint64_t at = random() % (bytes.size() + 10);
        const size_t size = 1 + random() % (3 * kBlock);
        const std::string want = at >= bytes.size() ? "" : bytes.substr(at, size);
        std::string got(want.size(), '\0');
        if (const auto now = reader->TryRead(at, std::as_writable_bytes(std::span(got)))) {
          std::memmove(got.data(), now->bytes.data(), got.size());
        } else {
          auto read = ReadOn(*reader, at, size);
          if (!read) {
            ++wrong;
            continue;
          }
          got = *read;
        }
        if (got != want) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(EngineTest, WarmAfterARestartWithTheOriginGone) {
  const std::string bytes = Pattern(6 * kBlock + 5, 8);
  origin().AddFile("/a", bytes);
  ASSERT_EQ(*Read("/a"), bytes);
  ASSERT_TRUE(WaitStored(*Open("/a")));
  ASSERT_TRUE(store_->Flush());
  Restart();
  origin().GoAway();
  auto got = Read("/a");
  ASSERT_TRUE(got) << got.error().ToString();
  EXPECT_EQ(*got, bytes);
  EXPECT_EQ(engine_->Stats().origin_bytes, 0u);
}

TEST_F(EngineTest, AfterARestartOneConditionalRequest) {
  origin().AddFile("/a", Pattern(2 * kBlock, 9));
  ASSERT_TRUE(Read("/a"));
  ASSERT_TRUE(WaitStored(*Open("/a")));
  ASSERT_TRUE(store_->Flush());
  Restart();
  origin().ResetStats();
  ASSERT_TRUE(Read("/a"));
  const auto stats = origin().StatsOf("/a");
  EXPECT_EQ(stats.requests, 1u);
  EXPECT_EQ(stats.by_status.at(304), 1u);
}

TEST_F(EngineTest, OriginGoneWhileWarmIsServedOnAndLeftAlone) {
  const std::string bytes = Pattern(2 * kBlock, 10);
  origin().AddFile("/a", bytes);
  ASSERT_TRUE(Read("/a"));
  origin().GoAway();
  OpenOptions again;
  again.revalidate = true;
  auto object = Open("/a", again);
  ASSERT_TRUE(object) << object.error().ToString();
  EXPECT_EQ(*ReadOn(*ReaderOf(*object), 0, bytes.size()), bytes);
  // Back again, and not asked for a while.
  origin().ComeBack();
  const auto requests = origin().StatsOf("/a").requests;
  EXPECT_TRUE(Open("/a"));
  EXPECT_TRUE(Open("/a", again));
  EXPECT_EQ(origin().StatsOf("/a").requests, requests);
}

TEST_F(EngineTest, UnreachableIsNotAbsent) {
  origin().GoAway();
  auto object = Open("/nothing-known");
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, Code::kUnavailable) << object.error().ToString();
  origin().ComeBack();
  origin().AddFile("/nothing-known", "x");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // errors are kept for a second
  EXPECT_TRUE(Open("/nothing-known"));
}

TEST_F(EngineTest, AnOriginJustFoundGoneIsNotTriedForEveryName) {
  origin().GoAway();
  EXPECT_FALSE(Open("/first"));
  const TimePoint begin = RealClock().Now();
  for (int i = 0; i < 100; ++i) {
    const auto object = Open("/name" + std::to_string(i));
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().code, Code::kUnavailable);
  }
  // A name alone takes three tries, 0.3 s; the memory of the outage lasts a second.
  EXPECT_LT(RealClock().Now() - begin, std::chrono::seconds(5));
}

TEST_F(EngineTest, StatusesOfTheOriginAreTold) {
  const std::pair<int, Code> rows[] = {{401, Code::kUnauthorized},
                                       {403, Code::kForbidden},
                                       {404, Code::kNotFound},
                                       {410, Code::kGone}};
  for (const auto& [status, code] : rows) {
    const std::string path = "/s" + std::to_string(status);
    origin().AddFile(path, "x");
    origin().AddFault({.fault = origin::Fault::kStatus, .path = path, .status = status});
    auto object = Open(path);
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().code, code) << status;
    EXPECT_EQ(object.error().http_status, status);
  }
}

TEST_F(EngineTest, ANewVersionIsANewObjectAndTheOldHandleNeverMixes) {
  const std::string v1 = Pattern(4 * kBlock, 11);
  const std::string v2 = Pattern(4 * kBlock, 12);
  origin().AddFile("/a", v1);
  auto old = Open("/a");
  ASSERT_TRUE(old);
  auto old_reader = ReaderOf(*old);
  EXPECT_EQ(*ReadOn(*old_reader, 0, kBlock), v1.substr(0, kBlock));
  origin().AddFile("/a", v2);
  // Not cached: the origin answers 412 to the old version.
  auto missing = ReadOn(*old_reader, 2 * kBlock, 10);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kStale);
  EXPECT_TRUE((*old)->superseded());
  // Cached: still served.
  EXPECT_EQ(*ReadOn(*old_reader, 0, kBlock), v1.substr(0, kBlock));
  // That expired the entry: a new open sees the new version at once.
  auto fresh = Open("/a");
  ASSERT_TRUE(fresh);
  EXPECT_NE((*fresh)->key(), (*old)->key());
  EXPECT_EQ(*ReadOn(*ReaderOf(*fresh), 0, v2.size()), v2);
}

TEST_F(EngineTest, TheTtlDecidesWhenANewVersionIsSeen) {
  origin().AddFile("/a", Pattern(kBlock, 13));
  OpenOptions options;
  options.ttl = std::chrono::milliseconds(200);
  auto first = Open("/a", options);
  ASSERT_TRUE(first);
  origin().AddFile("/a", Pattern(kBlock, 14));
  EXPECT_EQ((*Open("/a", options))->key(), (*first)->key());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  auto second = Open("/a", options);
  ASSERT_TRUE(second);
  EXPECT_NE((*second)->key(), (*first)->key());
  EXPECT_TRUE((*first)->superseded());
}

TEST_F(EngineTest, UnversionedObjectsEndWithTheirTtl) {
  auto behaviour = origin().behaviour();
  behaviour.etag = origin::EtagMode::kNone;
  behaviour.last_modified = false;
  origin().SetBehaviour(behaviour);
  origin().AddFile("/a", Pattern(kBlock, 15));
  OpenOptions options;
  options.ttl = std::chrono::milliseconds(200);
  auto first = Open("/a", options);
  ASSERT_TRUE(first);
  EXPECT_EQ(*ReadOn(*ReaderOf(*first), 0, kBlock), Pattern(kBlock, 15));
  origin().AddFile("/a", Pattern(kBlock, 16));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  auto second = Open("/a", options);
  ASSERT_TRUE(second);
  EXPECT_EQ(*ReadOn(*ReaderOf(*second), 0, kBlock), Pattern(kBlock, 16));
  Restart();
  origin().GoAway();
  EXPECT_FALSE(Open("/a"));  // not kept over a restart
}

// Ranges of an object without a version could be of different generations.
TEST_F(EngineTest, AnUnversionedObjectIsTakenInOnePass) {
  auto behaviour = origin().behaviour();
  behaviour.etag = origin::EtagMode::kNone;
  behaviour.last_modified = false;
  origin().SetBehaviour(behaviour);
  const std::string first = Pattern(5 * kBlock + 9, 41);
  origin().AddFile("/a", first);
  const auto object = *Open("/a");
  const auto reader = ReaderOf(object);
  EXPECT_EQ(*ReadOn(*reader, 3 * kBlock, 100), first.substr(3 * kBlock, 100));
  origin().AddFile("/a", Pattern(5 * kBlock + 9, 42));
  EXPECT_EQ(*ReadOn(*reader, 0, first.size()), first);
  EXPECT_EQ(origin().StatsOf("/a").requests, 2u);  // the probe, and the one pass
}

// A part of it that the cache has lost is not refilled from what may be another generation.
TEST_F(EngineTest, ALostBlockOfAnUnversionedObjectIsNotFetchedAlone) {
  auto behaviour = origin().behaviour();
  behaviour.etag = origin::EtagMode::kNone;
  behaviour.last_modified = false;
  for (const bool ranges : {true, false}) {
    SCOPED_TRACE(ranges);
    origin().SetBehaviour(behaviour);
    const std::string path = ranges ? "/ranged" : "/blind";
    if (!ranges) origin().AddFault({.fault = origin::Fault::kIgnoreRange, .path = path});
    const std::string first = Pattern(5 * kBlock + 9, 43);
    origin().AddFile(path, first);
    const auto object = *Open(path);
    const auto reader = ReaderOf(object);
    const auto all = ReadOn(*reader, 0, first.size());
    ASSERT_TRUE(all) << all.error().ToString();
    ASSERT_EQ(*all, first);
    ASSERT_TRUE(WaitStored(object));
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(dir_ + "/cache/objects")) {
      if (entry.is_regular_file()) std::filesystem::resize_file(entry.path(), kBlock);
    }
    const std::string second = Pattern(5 * kBlock + 9, 44);
    origin().AddFile(path, second);
    for (int i = 0; i < 3; ++i) {
      const auto got = ReadOn(*reader, 2 * kBlock, kBlock);
      ASSERT_FALSE(got);
      EXPECT_EQ(got.error().code, Code::kStale) << got.error().ToString();
    }
    const auto again = Read(path);
    ASSERT_TRUE(again) << again.error().ToString();
    EXPECT_EQ(*again, second);
  }
}

// A reader that comes to a block in the moment in which the one pass does: neither goes without it.
TEST_F(EngineTest, ReadersKeepStepWithTheOnlyPass) {
  auto behaviour = origin().behaviour();
  behaviour.etag = origin::EtagMode::kNone;
  behaviour.last_modified = false;
  origin().SetBehaviour(behaviour);
  constexpr size_t kBlocks = 48;
  for (int round = 0; round < 40; ++round) {
    const std::string path = "/o" + std::to_string(round);
    const std::string bytes = Pattern(kBlocks * kBlock, 100 + static_cast<uint64_t>(round));
    origin().AddFile(path, bytes);
    const auto object = Open(path);
    ASSERT_TRUE(object) << object.error().ToString();
    const auto read = [&] {
      const auto reader = ReaderOf(*object);
      for (size_t block = 0; block < kBlocks; ++block) {
        const auto got = ReadOn(*reader, block * kBlock, 512);
        ASSERT_TRUE(got) << round << ", " << block << ": " << got.error().ToString();
        ASSERT_EQ(*got, bytes.substr(block * kBlock, 512));
      }
    };
    std::thread other(read);
    read();
    other.join();
    if (HasFailure()) return;
  }
}

// The pass has the only connection, and blocks that it comes to are still queued for one.
TEST_F(EngineTest, ThePassDoesNotWaitForFlightsThatWaitForItsConnection) {
  StopNode();
  http_options_.connections_per_origin = 1;
  StartNode();
  const std::string bytes = Pattern(16 * kBlock, 61);
  origin().AddFile("/a", bytes);
  const auto object = *Open("/a");
  origin().AddFault({.fault = origin::Fault::kIgnoreRange, .path = "/a"});
  auto behaviour = origin().behaviour();
  behaviour.delay_ms = 150;
  origin().SetBehaviour(behaviour);
  const auto fill = engine_->StartFill(object, Requester{object->facts().url, ""}, [](Status) {});
  EXPECT_EQ(*ReadOn(*ReaderOf(object), 0, bytes.size()), bytes);
}

// Its revalidation hangs: what is cached is served, and the new version seen once it answers.
TEST_F(EngineTest, ASlowRevalidationHoldsUpNobody) {
  const std::string first = Pattern(2 * kBlock, 47);
  origin().AddFile("/a", first);
  ASSERT_TRUE(Read("/a"));
  ASSERT_TRUE(WaitStored(*Open("/a")));
  origin().AddFile("/a", Pattern(2 * kBlock, 48));
  origin().AddFault({.fault = origin::Fault::kDelay, .path = "/a", .times = 1, .delay_ms = 3500});
  OpenOptions again;
  again.revalidate = true;
  const TimePoint begin = RealClock().Now();
  const auto object = Open("/a", again);
  ASSERT_TRUE(object) << object.error().ToString();
  EXPECT_LT(RealClock().Now() - begin, std::chrono::milliseconds(3400));
  EXPECT_EQ(*ReadOn(*ReaderOf(*object), 0, first.size()), first);
  for (int i = 0; i < 500 && (*Open("/a"))->key() == (*object)->key(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(*Read("/a"), Pattern(2 * kBlock, 48));
}

TEST_F(EngineTest, ContentAddressedObjectsAreNeverAskedForAgain) {
  const std::string bytes = Pattern(kBlock, 17);
  const std::string path = "/v2/a/blobs/sha256:" + HexDigestOf("sha256", bytes);
  origin().AddFile(path, bytes);
  ASSERT_TRUE(Read(path));
  ASSERT_TRUE(WaitStored(*Open(path)));
  ASSERT_TRUE(store_->Flush());
  Restart();
  origin().ResetStats();
  ASSERT_TRUE(Read(path));
  EXPECT_EQ(origin().StatsOf(path).requests, 0u);
}

TEST_F(EngineTest, TwoSignaturesOfOneUrlAreOneObject) {
  origin().AddFile("/a", Pattern(kBlock, 18));
  const std::string signed_by = "/a?X-Amz-Credential=C&X-Amz-Signature=";
  ASSERT_TRUE(Read(signed_by + "1"));
  const auto before = origin().StatsOf("/a").requests;
  ASSERT_TRUE(Read(signed_by + "2"));
  EXPECT_EQ(origin().StatsOf("/a").requests, before);
}

TEST_F(EngineTest, SequentialReadsAreFetchedAhead) {
  auto behaviour = origin().behaviour();
  behaviour.delay_ms = 20;
  origin().SetBehaviour(behaviour);
  origin().AddFile("/a", Pattern(32 * kBlock, 19));
  ASSERT_EQ(ReadThrough("/a")->size(), 32 * kBlock);
  EXPECT_GT(origin().StatsOf("/a").max_active, 2u);
}

TEST_F(EngineTest, AReaderThatStopsEarlyFetchesLittle) {
  origin().AddFile("/a", Pattern(64 * kBlock, 20));
  ASSERT_TRUE(Read("/a", 0, 1));
  EXPECT_LE(origin().StatsOf("/a").body_bytes, kBlock + 1);
}

TEST_F(EngineTest, ASmallReadKeepsItsWholeBlock) {
  auto behaviour = origin().behaviour();
  behaviour.rate =
      4 * kBlock;  // the block takes a quarter of a second; the read is answered before
  origin().SetBehaviour(behaviour);
  origin().AddFile("/a", Pattern(2 * kBlock, 24));
  ASSERT_TRUE(Read("/a", 0, 100));
  auto object = Open("/a");
  ASSERT_TRUE(object);
  for (int i = 0; i < 500 && store_->PresentBlocks(*(*object)->stored()) == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(store_->PresentBlocks(*(*object)->stored()), 1u);
  ASSERT_TRUE(Read("/a", kBlock - 100, 100));
  EXPECT_EQ(origin().StatsOf("/a").requests, 2u);
}

TEST_F(EngineTest, NobodyWantsItSoItIsCancelled) {
  origin().AddFile("/a", Pattern(kBlock, 21));
  auto object = Open("/a");
  ASSERT_TRUE(object);
  origin().AddFault({.fault = origin::Fault::kStallHead, .path = "/a"});
  auto reader = ReaderOf(*object);
  std::promise<Code> answered;
  const ReadId id = reader->Read(0, 10, Deadline(20), [&](Result<ReadBytes> r) {
    answered.set_value(r ? Code::kInternal : r.error().code);
  });
  ASSERT_TRUE(origin().WaitForRequests("/a", 2));
  EXPECT_EQ(engine_->Stats().flights_under_way, 1u);
  reader->Cancel(id);
  EXPECT_EQ(answered.get_future().get(), Code::kCancelled);
  EXPECT_TRUE(origin().WaitForOpenConnections(1));
  EXPECT_TRUE(engine_->Stats().flights.empty());
  EXPECT_EQ(engine_->Stats().flights_under_way, 0u);
  EXPECT_EQ(engine_->Stats().origin_fetches.count(), 0u);
}

TEST_F(EngineTest, AReaderThatSeemsGoneKeepsNoConnectionAndHoldsUpNobody) {
  const std::string bytes = Pattern(kBlock, 24);
  origin().AddFile("/a", bytes);
  auto object = Open("/a");
  ASSERT_TRUE(object);
  origin().AddFault({.fault = origin::Fault::kStallHead, .path = "/a", .times = 1});
  auto dead = ReaderOf(*object);
  std::promise<bool> answered;
  dead->Read(0, 10, kNoDeadline, [&](Result<ReadBytes> r) { answered.set_value(r.has_value()); });
  ASSERT_TRUE(origin().WaitForRequests("/a", 2));
  dead->LowerInterest();  // at once: before the fetch has been without a byte for long
  EXPECT_TRUE(origin().WaitForOpenConnections(1)) << "the fetch is cancelled";
  // The next retry for the dead reader is seconds away; who comes now does not wait for it.
  auto read = ReadOn(*ReaderOf(*object), 100, 50, Deadline(3));
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(*read, bytes.substr(100, 50));
  EXPECT_TRUE(answered.get_future().get()) << "what it asked for is there after all";
}

TEST_F(EngineTest, ClosingAReaderAnswersItsReads) {
  origin().AddFile("/a", Pattern(kBlock, 22));
  auto object = Open("/a");
  ASSERT_TRUE(object);
  origin().AddFault({.fault = origin::Fault::kStallHead, .path = "/a"});
  auto reader = ReaderOf(*object);
  std::promise<Code> answered;
  reader->Read(0, 10, Deadline(20), [&](Result<ReadBytes> r) {
    answered.set_value(r ? Code::kInternal : r.error().code);
  });
  reader.reset();
  EXPECT_EQ(answered.get_future().get(), Code::kCancelled);
}

TEST_F(EngineTest, StopAnswersEveryone) {
  origin().AddFile("/a", Pattern(kBlock, 23));
  auto object = Open("/a");
  ASSERT_TRUE(object);
  origin().AddFault({.fault = origin::Fault::kStallHead, .path = "*"});
  auto reader = ReaderOf(*object);
  std::promise<void> read, opened;
  reader->Read(0, 10, kNoDeadline, [&](Result<ReadBytes> r) {
    EXPECT_FALSE(r);
    read.set_value();
  });
  engine_->Open(UrlOf("/b"), {}, [&](Result<std::shared_ptr<Object>> r) {
    EXPECT_FALSE(r);
    opened.set_value();
  });
  engine_->Stop();
  EXPECT_EQ(read.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
  EXPECT_EQ(opened.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

}  // namespace
}  // namespace dartfs::core
