#include "core/store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "core/store/store_fixture.h"

namespace dartfs::core {
namespace {

class StoreTest : public StoreFixture {};

constexpr uint64_t kBlock = kTinyGrid.block_size;

TEST_F(StoreTest, AnEmptyStoreHasNothing) {
  Start();
  const auto a = Object("a", 10 * kBlock);
  EXPECT_EQ(Get(a, 0), Got::kMiss);
  EXPECT_EQ(store_->PresentBlocks(*a.object), 0U);
  EXPECT_EQ(store_->Stats().used_bytes, 0U);
}

TEST_F(StoreTest, AnEmptyPinReadsAsADroppedBlock) {
  Start();
  const auto a = Object("a", kBlock);
  std::vector<std::byte> into(10);
  const Status read =
      Await([&](IoDone done) { store_->Read(store_->Pin(a.object, 0), 0, into, std::move(done)); });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kCorrupt);
}

TEST_F(StoreTest, WhatIsPutComesBack) {
  Start();
  const auto a = Object("a", 10 * kBlock + 12'345);
  PutAll(a);
  EXPECT_EQ(CountHits(a), 11U);
  EXPECT_EQ(store_->PresentBlocks(*a.object), 11U);
  EXPECT_EQ(store_->Stats().used_bytes, 11 * kBlock);
  EXPECT_EQ(std::filesystem::file_size(PathOf("a")), a.size);
}

TEST_F(StoreTest, SizesOfAllKinds) {
  Start();
  for (const uint64_t size : {uint64_t{1}, uint64_t{4095}, uint64_t{4096}, uint64_t{4097},
                              kBlock - 1, kBlock, kBlock + 1, 7 * kBlock + 5000}) {
    const auto held = Object("o" + std::to_string(size), size);
    PutAll(held);
    EXPECT_EQ(std::filesystem::file_size(PathOf(held.name)), size);
  }
  Restart();
  for (const uint64_t size : {uint64_t{1}, uint64_t{4095}, uint64_t{4096}, uint64_t{4097},
                              kBlock - 1, kBlock, kBlock + 1, 7 * kBlock + 5000}) {
    const auto held = Object("o" + std::to_string(size), size);
    EXPECT_EQ(CountHits(held), options_.grid.BlockCount(size)) << size;
  }
}

TEST_F(StoreTest, PartsOfBlocks) {
  Start();
  const auto a = Object("a", 3 * kBlock);
  PutAll(a);
  Restart();
  const auto again = Object("a", 3 * kBlock);
  EXPECT_EQ(GetPart(again, 0, 5000, 1), Got::kHit);
  EXPECT_EQ(GetPart(again, 0, 4096, 4096), Got::kHit);
  EXPECT_EQ(GetPart(again, 1, 4095, 2), Got::kHit);
  EXPECT_EQ(GetPart(again, 2, 0, 0), Got::kHit);
  EXPECT_EQ(GetPart(again, 2, kBlock, 0), Got::kHit);
  EXPECT_EQ(GetPart(again, 2, kBlock - 1, 1), Got::kHit);
}

TEST_F(StoreTest, ARestartFindsEverything) {
  Start();
  PutAll(Object("a", 20 * kBlock));
  PutAll(Object("b", 100));
  const uint64_t seq = [&] {
    EXPECT_TRUE(store_->Flush());
    return store_->Stats().commit_seq;
  }();
  EXPECT_GT(seq, 0U);
  Restart();
  EXPECT_EQ(store_->Stats().blocks, 21U);
  EXPECT_EQ(store_->Stats().objects, 2U);
  EXPECT_EQ(store_->Stats().used_bytes, 20 * kBlock + 4096);
  EXPECT_GE(store_->Stats().commit_seq, seq);
  EXPECT_EQ(CountHits(Object("a", 20 * kBlock)), 20U);
  EXPECT_EQ(CountHits(Object("b", 100)), 1U);
  EXPECT_EQ(store_->Stats().corrupt_granules, 0U);
}

TEST_F(StoreTest, BlocksBecomeDurableByThemselves) {
  Start();
  const auto a = Object("a", 4 * kBlock);
  PutAll(a);
  EXPECT_TRUE(Eventually([&] { return store_->Stats().pending_blocks == 0; }));
  EXPECT_TRUE(store_->Flush());
  Crash();
  EXPECT_EQ(CountHits(Object("a", 4 * kBlock)), 4U);
}

TEST_F(StoreTest, ABlockIsPendingUntilItIsDurable) {
  Start();
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kSync ? DiskFault::Kind::kHold
                                                                : DiskFault::Kind::kNone};
  });
  ASSERT_TRUE(Put(Object("a", 100), 0));
  ASSERT_TRUE(Eventually([&] { return faulty_->held() > 0; }));
  EXPECT_EQ(store_->Stats().pending_blocks, 1U) << "its sync is still under way";
  faulty_->Heal();
  faulty_->Release();
  ASSERT_TRUE(store_->Flush());
  EXPECT_EQ(store_->Stats().pending_blocks, 0U);
}

TEST_F(StoreTest, PuttingAPresentBlockWritesNothing) {
  Start();
  const auto a = Object("a", 2 * kBlock);
  ASSERT_TRUE(Put(a, 0));
  const uint64_t before = faulty_->calls(DiskCall::Kind::kWrite);
  EXPECT_TRUE(Put(a, 0));
  EXPECT_EQ(faulty_->calls(DiskCall::Kind::kWrite), before);
}

TEST_F(StoreTest, ABlockOfTheWrongLengthIsRefused) {
  Start();
  const auto a = Object("a", 2 * kBlock + 10);
  for (const uint64_t block : {uint64_t{2}, uint64_t{3}, uint64_t{1} << 60}) {
    const Status status = Await([&](IoDone done) {
      store_->Write(a.object, block, ToBuffer(std::vector<std::byte>(kBlock)), std::move(done));
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
  }
}

TEST_F(StoreTest, MetaSurvivesAndVerifiedStays) {
  Start();
  ObjectMeta meta = MetaNamed("a", kBlock);
  meta.verified = true;
  meta.last_modified = 12345;
  const auto object = store_->OpenObject(KeyNamed("a"), meta);
  ASSERT_TRUE(object);
  ASSERT_TRUE(Put({"a", kBlock, *object}, 0));
  EXPECT_EQ(MetaOf(**object).last_modified, 12345);
  Restart();
  const auto found = store_->FindObject(KeyNamed("a"));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->verified);
  EXPECT_EQ(found->last_modified, 12345);
  EXPECT_EQ(found->id, meta.id);
  const auto again = Object("a", kBlock);  // as unverified
  EXPECT_TRUE(MetaOf(*again.object).verified);
  EXPECT_EQ(KeyOf(*again.object), KeyNamed("a"));
  EXPECT_FALSE(store_->FindObject(KeyNamed("b")));
}

TEST_F(StoreTest, ARecordOfSomethingElseIsDropped) {
  struct Case {
    const char* name;
    void (*change)(ObjectMeta&);
  };
  const Case cases[] = {
      {"kind", [](ObjectMeta& meta) { meta.kind = 'd'; }},
      {"id", [](ObjectMeta& meta) { meta.id += "x"; }},
      {"version", [](ObjectMeta& meta) { meta.version = "e:\"2\""; }},
      {"size", [](ObjectMeta& meta) { meta.size += 1; }},
  };
  for (const bool restart : {false, true}) {
    for (const auto& c : cases) {
      if (store_ == nullptr) Start();
      const std::string name = std::string(c.name) + (restart ? "r" : "");
      PutAll(Object(name, 2 * kBlock));
      if (restart) Restart();
      ObjectMeta meta = MetaNamed(name, 2 * kBlock);
      c.change(meta);
      const auto object = store_->OpenObject(KeyNamed(name), meta);
      ASSERT_TRUE(object) << name << object.error().ToString();
      EXPECT_EQ(store_->PresentBlocks(**object), 0U) << name;
      EXPECT_FALSE(store_->Pin(*object, 0)) << name;
    }
  }
}

TEST_F(StoreTest, VolatileObjectsEndWithTheRun) {
  Start();
  ObjectMeta meta = MetaNamed("v", 3 * kBlock);
  meta.volatile_version = true;
  const auto object = store_->OpenObject(KeyNamed("v"), meta);
  ASSERT_TRUE(object);
  const Held v = {"v", 3 * kBlock, *object};
  PutAll(v);
  EXPECT_TRUE(store_->Flush());
  EXPECT_EQ(CountHits(v), 3U);
  Restart();
  EXPECT_EQ(store_->Stats().objects, 0U);
  EXPECT_FALSE(store_->FindObject(KeyNamed("v")));
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("v")); }));
}

TEST_F(StoreTest, DropForgetsBlocksAndFile) {
  Start();
  const auto a = Object("a", 5 * kBlock);
  PutAll(a);
  EXPECT_TRUE(store_->Flush());
  const BlockPin pin = store_->Pin(a.object, 0);
  ASSERT_TRUE(pin);
  ASSERT_TRUE(store_->DropObject(a.object));
  EXPECT_FALSE(std::filesystem::exists(PathOf("a")));
  EXPECT_EQ(store_->Stats().used_bytes, 0U);
  EXPECT_EQ(store_->Stats().blocks, 0U);
  EXPECT_EQ(Get(a, 0), Got::kMiss);
  const Status status = Put(a, 0);  // into an object that is gone
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kNoSpace);
  const auto fresh = Object("a", 5 * kBlock);
  PutAll(fresh);
  EXPECT_EQ(CountHits(fresh), 5U);
  Restart();
  EXPECT_EQ(CountHits(Object("a", 5 * kBlock)), 5U);
}

TEST_F(StoreTest, RekeyKeepsBlocks) {
  Start();
  const auto a = Object("a", 5 * kBlock);
  PutAll(a);
  ObjectMeta meta = MetaNamed("b", a.size);
  meta.verified = true;
  ASSERT_TRUE(store_->Rekey(a.object, KeyNamed("b"), meta));
  EXPECT_EQ(KeyOf(*a.object), KeyNamed("b"));
  EXPECT_EQ(CountHits(a), 5U);
  EXPECT_FALSE(std::filesystem::exists(PathOf("a")));
  EXPECT_EQ(store_->PresentBlocks(*Object("a", a.size).object), 0U);
  EXPECT_EQ(store_->OpenObject(KeyNamed("b"), meta).value(), a.object);
  Restart();
  const auto b = store_->OpenObject(KeyNamed("b"), meta);
  ASSERT_TRUE(b);
  EXPECT_EQ(CountHits({"a", a.size, *b}), 5U);
  EXPECT_TRUE(MetaOf(**b).verified);
  EXPECT_EQ(store_->Stats().objects, 1U);
}

TEST_F(StoreTest, RekeyReplacesWhatStoodThere) {
  Start();
  const auto a = Object("a", 2 * kBlock);
  const auto b = Object("b", 3 * kBlock);
  PutAll(a);
  PutAll(b);
  ASSERT_TRUE(store_->Rekey(a.object, KeyNamed("b"), MetaNamed("b", a.size)));
  EXPECT_EQ(Get(b, 0), Got::kMiss);
  EXPECT_EQ(CountHits(a), 2U);
  EXPECT_EQ(store_->Stats().used_bytes, 2 * kBlock);
  Restart();
  EXPECT_EQ(CountHits({"a", a.size, Object("b", a.size).object}), 2U);
}

TEST_F(StoreTest, RekeyBeforeAnythingWasCommitted) {
  options_.commit_interval = std::chrono::hours(1);
  Start();
  const auto a = Object("a", 2 * kBlock);
  ASSERT_TRUE(store_->Rekey(a.object, KeyNamed("b"), MetaNamed("b", a.size)));
  PutAll(a);
  ASSERT_TRUE(store_->Rekey(a.object, KeyNamed("c"), MetaNamed("c", a.size)));
  EXPECT_EQ(CountHits(a), 2U);
  Restart();
  EXPECT_EQ(CountHits({"a", a.size, Object("c", a.size).object}), 2U);
  EXPECT_EQ(store_->Stats().objects, 1U);
}

TEST_F(StoreTest, NamesReadBackAtOnceAndLater) {
  Start();
  const std::string long_name(8000, 'n');
  const std::string large_value(3 << 20, 'v');
  store_->PutName(NameTable::kNames, "dir", "listing");
  store_->PutName(NameTable::kUrls, "dir", "other");
  store_->PutName(NameTable::kUrls, long_name, large_value);
  store_->PutName(NameTable::kUrls, "empty", "");
  store_->PutName(NameTable::kUrls, "gone", "x");
  store_->DeleteName(NameTable::kUrls, "gone");
  const auto check = [&] {
    EXPECT_EQ(store_->GetName(NameTable::kNames, "dir"), "listing");
    EXPECT_EQ(store_->GetName(NameTable::kUrls, "dir"), "other");
    EXPECT_EQ(store_->GetName(NameTable::kUrls, long_name), large_value);
    EXPECT_EQ(store_->GetName(NameTable::kUrls, "empty"), "");
    EXPECT_FALSE(store_->GetName(NameTable::kUrls, "gone"));
    EXPECT_FALSE(store_->GetName(NameTable::kUrls, "never"));
  };
  check();
  EXPECT_TRUE(store_->Flush());
  check();
  store_->DeleteName(NameTable::kNames, "dir");
  EXPECT_FALSE(store_->GetName(NameTable::kNames, "dir"));
  store_->PutName(NameTable::kNames, "dir", "listing");
  Restart();
  check();
}

TEST_F(StoreTest, ASecondNodeIsToldWhoHasTheDirectory) {
  Start();
  const auto second = Store::Open(options_, *faulty_, scheduler_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kBusy);
  EXPECT_NE(second.error().context.find(std::to_string(::getpid())), std::string::npos);
  Restart();
}

TEST_F(StoreTest, StopReleasesTheLock) {
  Start();
  store_->Stop();
  store_->Stop();
  const auto second = Store::Open(options_, *faulty_, scheduler_);
  EXPECT_TRUE(second);
}

TEST_F(StoreTest, FindsBytesToSendOnlyOnceTheyAreCheckedAndInThePageCache) {
  Start();
  const auto held = Object("a", 2 * kBlock + 100);
  PutAll(held);
  store_->Flush().value();
  Restart();
  const auto again = Object("a", 2 * kBlock + 100);
  BlockPin pin = store_->Pin(again.object, 1);
  ASSERT_TRUE(pin);
  EXPECT_FALSE(store_->FindCached(pin, 0, kBlock)) << "not checked yet";
  ASSERT_EQ(Get(again, 1), Got::kHit);
  const auto found = store_->FindCached(pin, 10, kBlock - 20);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offset, kBlock + 10);
  std::vector<std::byte> got(kBlock - 20);
  ASSERT_EQ(::pread(found->fd, got.data(), got.size(), static_cast<off_t>(found->offset)),
            static_cast<ssize_t>(got.size()));
  const auto whole = BytesOf("a", 1, kBlock);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), whole.begin() + 10));
  ASSERT_EQ(::posix_fadvise(found->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  EXPECT_FALSE(store_->FindCached(pin, 10, kBlock - 20)) << "would wait for the disk";
  BlockPin last = store_->Pin(again.object, 2);
  ASSERT_EQ(Get(again, 2), Got::kHit);
  EXPECT_TRUE(store_->FindCached(last, 0, 100)) << "the end of an object";
  store_->Stop();
  EXPECT_FALSE(store_->FindCached(last, 0, 100));
}

TEST_F(StoreTest, AfterStopNothingHappens) {
  Start();
  const auto a = Object("a", 2 * kBlock);
  PutAll(a);
  BlockPin pin = store_->Pin(a.object, 0);
  store_->Stop();
  std::vector<std::byte> into(kBlock);
  EXPECT_FALSE(store_->TryRead(pin, 0, into));
  EXPECT_FALSE(Await([&](IoDone done) { store_->Read(std::move(pin), 0, into, std::move(done)); }));
  EXPECT_FALSE(Put(a, 1));
  EXPECT_FALSE(store_->Flush());
  EXPECT_FALSE(store_->OpenObject(KeyNamed("b"), MetaNamed("b", 1)));
  EXPECT_FALSE(store_->GetName(NameTable::kUrls, "x"));
}

TEST_F(StoreTest, RefusesAnotherFormat) {
  Start();
  Stop();
  const std::string version = options_.dir + "/version";
  options_.grid.block_size *= 2;
  EXPECT_EQ(TryStart().error().code, Code::kUnsupported);
  options_.grid = kTinyGrid;
  std::ofstream(version) << "dartfs-cache 2\n";
  EXPECT_EQ(TryStart().error().code, Code::kUnsupported);
  std::ofstream(version, std::ios::trunc);
  const Status damaged = TryStart();
  EXPECT_EQ(damaged.error().code, Code::kUnsupported);
  EXPECT_NE(damaged.error().context.find("version is empty, hence damaged"), std::string::npos);
  std::filesystem::remove(version);
  EXPECT_EQ(TryStart().error().code, Code::kRefused);
}

TEST_F(StoreTest, AFileInTheIndexsPlaceIsNamed) {
  Start();
  Stop();
  const std::string index = options_.dir + "/index";
  std::filesystem::remove_all(index);
  std::ofstream(index) << "a file";
  const Status started = TryStart();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kRefused);
  EXPECT_NE(started.error().context.find(index + " in the cache directory is a link, or no dir"),
            std::string::npos)
      << started.error().ToString();
}

TEST_F(StoreTest, TheDirectoryIsPrivateAndTagged) {
  std::filesystem::create_directory(options_.dir);
  ::chmod(options_.dir.c_str(), 0755);
  Start();
  struct stat st = {};
  ASSERT_EQ(::stat(options_.dir.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700U);
  std::ifstream tag(options_.dir + "/CACHEDIR.TAG");
  std::string line;
  std::getline(tag, line);
  EXPECT_EQ(line, "Signature: 8a477f597d28d172789f06886806bc55");
}

TEST_F(StoreTest, DescriptorsAreLimited) {
  options_.open_files = 8;
  Start();
  auto count = [] {
    int open_fds = 0;
    for (int fd = 0; fd < 1024; ++fd) open_fds += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return open_fds;
  };
  const int before = count();
  std::vector<Held> objects;
  for (int i = 0; i < 50; ++i) {
    objects.push_back(Object("o" + std::to_string(i), 2 * kBlock));
    PutAll(objects.back());
  }
  EXPECT_TRUE(store_->Flush());
  EXPECT_LE(count(), before + 2 * 8 + 2);
  for (const auto& object : objects) EXPECT_EQ(CountHits(object), 2U);
  EXPECT_LE(count(), before + 2 * 8 + 2);
  objects.clear();
  Stop();
  EXPECT_LE(count(), before);
}

TEST_F(StoreTest, PresentMapShowsHoles) {
  Start();
  const auto a = Object("a", 9 * kBlock);
  for (const uint64_t block : {0, 4, 8}) ASSERT_TRUE(Put(a, block));
  EXPECT_EQ(store_->PresentMap(*a.object),
            (std::vector<bool>{true, false, false, false, true, false, false, false, true}));
}

TEST_F(StoreTest, LargeObjectsAreSparse) {
  Start();
  const auto a = Object("a", uint64_t{1} << 40);
  ASSERT_TRUE(Put(a, (uint64_t{1} << 40) / kBlock - 1));
  EXPECT_EQ(Get(a, (uint64_t{1} << 40) / kBlock - 1), Got::kHit);
  EXPECT_LT(DiskBytes(), uint64_t{1} << 20);
  EXPECT_EQ(store_->OpenObject(KeyNamed("x"), MetaNamed("x", UINT64_MAX)).error().code,
            Code::kTooLarge);
}

TEST_F(StoreTest, TheRealGrid) {
  options_.grid = Grid();
  options_.limit_bytes = uint64_t{64} << 20;
  Start();
  const auto a = Object("a", (uint64_t{9} << 20) + 777);
  PutAll(a);
  EXPECT_EQ(CountHits(a), 3U);
  Restart();
  EXPECT_EQ(CountHits(Object("a", a.size)), 3U);
}

}  // namespace
}  // namespace dartfs::core
