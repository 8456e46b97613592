// Limits: bytes, eviction, pins, full and failing disks, bypass and its end.
#include <spdlog/sinks/ostream_sink.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <atomic>
#include <csignal>
#include <sstream>

#include "core/base/log.h"
#include "core/store/store_fixture.h"

namespace dartfs::core {
namespace {

constexpr uint64_t kBlock = kTinyGrid.block_size;

class StoreSpaceTest : public StoreFixture {
 protected:
  void FailWrites(int sys_errno) {
    faulty_->SetChoose([sys_errno](const DiskCall& call) {
      DiskFault fault;
      if (call.kind != DiskCall::Kind::kRead) {
        fault = {.kind = DiskFault::Kind::kFail, .sys_errno = sys_errno};
      }
      return fault;
    });
  }
  static Code CodeOf(const Status& status) {
    return status ? Code::kInternal : status.error().code;
  }
};

TEST_F(StoreSpaceTest, NeverAboveTheLimit) {
  options_.limit_bytes = 32 * kBlock;
  Start();
  for (int i = 0; i < 10; ++i) {
    const auto held = Object("o" + std::to_string(i), 16 * kBlock);
    for (uint64_t block = 0; block < 16; ++block) {
      EXPECT_TRUE(Put(held, block));
      EXPECT_LE(store_->Stats().used_bytes, options_.limit_bytes);
      EXPECT_LE(DiskBytes(), options_.limit_bytes + 16 * 4096);
    }
  }
  EXPECT_GT(store_->Stats().evicted_blocks, 100U);
  EXPECT_FALSE(store_->Stats().bypass);
  Restart();
  EXPECT_LE(store_->Stats().used_bytes, options_.limit_bytes);
}

TEST_F(StoreSpaceTest, ConcurrentWritersStayWithinTheLimit) {
  options_.limit_bytes = 64 * kBlock;
  Start();
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      EXPECT_LE(store_->Stats().used_bytes, options_.limit_bytes);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        const auto held = Object("o" + std::to_string(t) + "-" + std::to_string(i), 8 * kBlock);
        for (uint64_t block = 0; block < 8; ++block) {
          const Status status = Put(held, block);
          EXPECT_TRUE(status || status.error().code == Code::kNoSpace);
          EXPECT_NE(Get(held, block), Got::kWrong);
        }
      }
    });
  }
  for (auto& writer : writers) writer.join();
  done = true;
  watcher.join();
  EXPECT_FALSE(store_->Stats().bypass);
}

TEST_F(StoreSpaceTest, TheLeastRecentlyUsedChunkGoes) {
  options_.limit_bytes = 12 * kBlock;
  Start();
  const auto a = Object("a", 4 * kBlock);
  const auto b = Object("b", 4 * kBlock);
  const auto c = Object("c", 4 * kBlock);
  for (const auto* held : {&a, &b, &c}) {
    PutAll(*held);
    scheduler_.clock().Now();
    scheduler_.Advance(std::chrono::seconds(1));
  }
  EXPECT_TRUE(store_->Flush());
  EXPECT_EQ(Get(a, 0), Got::kHit);  // b is the oldest now
  scheduler_.Advance(std::chrono::seconds(1));
  const auto d = Object("d", 3 * kBlock);
  PutAll(d);
  EXPECT_EQ(store_->PresentBlocks(*a.object), 4U);
  EXPECT_LE(store_->PresentBlocks(*b.object), 1U);
  EXPECT_EQ(store_->PresentBlocks(*c.object), 4U);
}

TEST_F(StoreSpaceTest, TimesOfUseOutliveTheRun) {
  options_.limit_bytes = 8 * kBlock;
  Start();
  PutAll(Object("a", 4 * kBlock));
  scheduler_.Advance(std::chrono::hours(1));
  PutAll(Object("b", 4 * kBlock));
  scheduler_.Advance(std::chrono::hours(1));
  EXPECT_EQ(Get(Object("a", 4 * kBlock), 1), Got::kHit);
  Restart();
  scheduler_.Advance(std::chrono::hours(1));
  PutAll(Object("c", 2 * kBlock));
  EXPECT_EQ(CountHits(Object("a", 4 * kBlock)), 4U);
  EXPECT_LE(CountHits(Object("b", 4 * kBlock)), 2U);
}

TEST_F(StoreSpaceTest, PinnedBlocksStay) {
  options_.limit_bytes = 8 * kBlock;
  Start();
  const auto a = Object("a", 4 * kBlock);
  PutAll(a);
  std::vector<BlockPin> pins;
  for (uint64_t i = 0; i < 4; ++i) pins.push_back(store_->Pin(a.object, i));
  const auto b = Object("b", 40 * kBlock);
  PutAll(b);
  EXPECT_EQ(store_->PresentBlocks(*a.object), 4U);
  EXPECT_EQ(CountHits(a), 4U);
}

TEST_F(StoreSpaceTest, AllPinnedIsNoRoomAndNoBypass) {
  options_.limit_bytes = 4 * kBlock;
  Start();
  const auto a = Object("a", 4 * kBlock);
  PutAll(a);
  std::vector<BlockPin> pins;
  for (uint64_t i = 0; i < 4; ++i) pins.push_back(store_->Pin(a.object, i));
  const auto b = Object("b", kBlock);
  EXPECT_EQ(CodeOf(Put(b, 0)), Code::kNoSpace);
  EXPECT_FALSE(store_->Stats().bypass);
  pins.clear();
  EXPECT_TRUE(Put(b, 0));
}

TEST_F(StoreSpaceTest, LargerThanTheLimit) {
  options_.limit_bytes = kBlock / 2;
  Start();
  EXPECT_EQ(CodeOf(Put(Object("a", kBlock), 0)), Code::kNoSpace);
  EXPECT_TRUE(Put(Object("b", 100), 0));
}

TEST_F(StoreSpaceTest, EvictedObjectsLeaveNoFile) {
  options_.limit_bytes = 16 * kBlock;
  Start();
  for (int i = 0; i < 60; ++i) PutAll(Object("s" + std::to_string(i), 4000));
  scheduler_.Advance(std::chrono::seconds(1));
  PutAll(Object("big", 16 * kBlock - 4096));
  EXPECT_TRUE(store_->Flush());
  uint64_t files = 0;
  EXPECT_TRUE(Eventually([&] {
    files = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(options_.dir + "/objects")) {
      files += entry.is_regular_file() ? 1 : 0;
    }
    return files <= 2;
  })) << files;
}

TEST_F(StoreSpaceTest, VolatileBlocksAreEvictedToo) {
  options_.limit_bytes = 8 * kBlock;
  Start();
  ObjectMeta meta = MetaNamed("v", 8 * kBlock);
  meta.volatile_version = true;
  const Held v = {"v", meta.size, store_->OpenObject(KeyNamed("v"), meta).value()};
  PutAll(v);
  PutAll(Object("a", 4 * kBlock));
  EXPECT_LE(store_->PresentBlocks(*v.object), 4U);
  EXPECT_LE(store_->Stats().used_bytes, options_.limit_bytes);
}

TEST_F(StoreSpaceTest, DiskErrorsMeanBypassUntilItWorksAgain) {
  for (const int sys_errno : {ENOSPC, EIO, EDQUOT}) {
    SCOPED_TRACE(sys_errno);
    Start();
    const auto a = Object("a" + std::to_string(sys_errno), 8 * kBlock);
    ASSERT_TRUE(Put(a, 0));
    ASSERT_TRUE(store_->Flush());
    FailWrites(sys_errno);
    EXPECT_EQ(CodeOf(Put(a, 1)), Code::kNoSpace);
    EXPECT_TRUE(store_->Stats().bypass);
    EXPECT_FALSE(store_->Stats().bypass_reason.empty());
    EXPECT_GE(store_->Stats().write_errors, 1U);
    // Reads go on; writes are not even tried.
    EXPECT_EQ(Get(a, 0), Got::kHit);
    const uint64_t calls = faulty_->calls(DiskCall::Kind::kWrite);
    EXPECT_EQ(CodeOf(Put(a, 2)), Code::kNoSpace);
    EXPECT_EQ(faulty_->calls(DiskCall::Kind::kWrite), calls);
    // One try now and then.
    scheduler_.Advance(options_.bypass_retry + std::chrono::milliseconds(1));
    EXPECT_EQ(CodeOf(Put(a, 3)), Code::kNoSpace);
    EXPECT_EQ(faulty_->calls(DiskCall::Kind::kWrite), calls + 1);
    faulty_->Heal();
    scheduler_.Advance(options_.bypass_retry + std::chrono::milliseconds(1));
    EXPECT_TRUE(Put(a, 4));
    EXPECT_TRUE(Eventually([&] { return !store_->Stats().bypass; }));
    EXPECT_TRUE(Put(a, 5));
    EXPECT_EQ(CountHits(a), 3U);
    EXPECT_TRUE(
        Eventually([&] { return store_->Stats().used_bytes == store_->Stats().blocks * kBlock; }));
    Restart();
    EXPECT_EQ(CountHits(Object(a.name, a.size)), 3U);
    Stop();
  }
}

TEST_F(StoreSpaceTest, AFailedSyncDropsItsBlocks) {
  options_.commit_interval = std::chrono::hours(1);
  Start();
  const auto a = Object("a", 4 * kBlock);
  ASSERT_TRUE(Put(a, 0));
  ASSERT_TRUE(store_->Flush());
  ASSERT_TRUE(Put(a, 1));
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kSync ? DiskFault::Kind::kFail
                                                                : DiskFault::Kind::kNone};
  });
  (void)store_->Flush();
  EXPECT_EQ(Get(a, 0), Got::kHit);
  EXPECT_EQ(Get(a, 1), Got::kMiss);
  EXPECT_TRUE(store_->Stats().bypass);
  faulty_->Heal();
  scheduler_.Advance(options_.bypass_retry + std::chrono::milliseconds(1));
  ASSERT_TRUE(Put(a, 1));
  ASSERT_TRUE(store_->Flush());
  EXPECT_FALSE(store_->Stats().bypass);
  Crash();
  EXPECT_EQ(CountHits(Object("a", a.size)), 2U);
}

TEST_F(StoreSpaceTest, AStuckDiskHoldsNoReaderOfOtherBlocks) {
  Start();
  const auto a = Object("a", 4 * kBlock);
  ASSERT_TRUE(Put(a, 0));
  EXPECT_EQ(Get(a, 0), Got::kHit);
  ASSERT_TRUE(store_->Flush());  // its sync is not to be among those held
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kRead ? DiskFault::Kind::kNone
                                                                : DiskFault::Kind::kHold};
  });
  std::atomic<int> finished = 0;
  for (uint64_t i = 1; i < 4; ++i) {
    store_->Write(a.object, i, ToBuffer(BytesOf("a", i, kBlock)), [&](Status) { ++finished; });
  }
  EXPECT_TRUE(Eventually([&] { return faulty_->held() == 3; }));
  EXPECT_EQ(Get(a, 0), Got::kHit);
  EXPECT_EQ(Get(a, 1), Got::kMiss);
  EXPECT_EQ(finished, 0);
  faulty_->Heal();
  faulty_->Release();
  EXPECT_TRUE(Eventually([&] { return finished == 3; }));
  EXPECT_EQ(CountHits(a), 4U);
}

TEST_F(StoreSpaceTest, EvictionWaitsForCommitsThatFail) {
  options_.limit_bytes = 64 * kBlock;
  Start();
  const auto a = Object("a", 65 * kBlock);  // complete, it would go as one
  for (uint64_t block = 0; block < 64; ++block) ASSERT_TRUE(Put(a, block));
  ASSERT_TRUE(store_->Flush());
  const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  {
    // No page of the index can be written behind its first.
    const ScopedLimit limit(RLIMIT_FSIZE, 4096);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(CodeOf(Put(Object("b" + std::to_string(i), kBlock), 0)), Code::kNoSpace);
      scheduler_.Advance(options_.bypass_retry + std::chrono::milliseconds(1));
    }
    EXPECT_GE(store_->Stats().evicted_blocks, 1U);
    EXPECT_LE(store_->Stats().evicted_blocks, 4U);
  }
  ::signal(SIGXFSZ, ignored);
  EXPECT_TRUE(Put(Object("c", kBlock), 0));
  EXPECT_GE(CountHits(a), 60U);
}

TEST_F(StoreSpaceTest, APlaceThatCannotBeFreedCountsUntilItCan) {
  options_.limit_bytes = 8 * kBlock;
  Start();
  PutAll(Object("a", 4 * kBlock));
  Restart();  // its file is not open any more
  const auto a = Object("a", 4 * kBlock);
  const std::string path = std::filesystem::path(PathOf("a")).parent_path();
  std::filesystem::rename(path, path + ".aside");
  std::filesystem::create_symlink(path, path);  // a loop
  const auto b = Object("b", 16 * kBlock);
  for (uint64_t block = 0; block < 16; ++block) {
    (void)Put(b, block);
    EXPECT_GE(store_->Stats().used_bytes, DiskBytes());
    EXPECT_LE(DiskBytes(), options_.limit_bytes);
  }
  std::filesystem::remove(path);
  std::filesystem::rename(path + ".aside", path);
  EXPECT_TRUE(
      Eventually([&] { return store_->Stats().used_bytes == store_->Stats().blocks * kBlock; }));
  EXPECT_TRUE(Put(Object("c", kBlock), 0));
}

TEST_F(StoreSpaceTest, OpenFilesHaveOneDescriptorEach) {
  options_.open_files = 16;
  Start();
  const size_t before = CountDescriptors();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put(Object("o" + std::to_string(i), kBlock), 0));
  ASSERT_TRUE(store_->Flush());
  EXPECT_TRUE(Eventually([&] { return CountDescriptors() <= before + 16; })) << CountDescriptors();
}

// Every file in use since it was last looked at: one of them goes all the same.
TEST_F(StoreSpaceTest, OneFileMoreThanAllowedClosesOneThoughAllAreInUse) {
  options_.open_files = 16;
  Start();
  const size_t before = CountDescriptors();
  std::vector<Held> held;
  for (int i = 0; i < 16; ++i) held.push_back(Object("o" + std::to_string(i), kBlock));
  for (const auto& each : held) ASSERT_TRUE(Put(each, 0));
  ASSERT_TRUE(store_->Flush());
  for (int i = 0; i < 4; ++i) {
    for (const auto& each : held) EXPECT_EQ(CountHits(each), 1U);
    ASSERT_TRUE(Put(Object("more" + std::to_string(i), kBlock), 0));
    ASSERT_TRUE(store_->Flush());
    EXPECT_TRUE(Eventually([&] { return CountDescriptors() <= before + 16; }))
        << CountDescriptors() - before;
  }
}

TEST_F(StoreSpaceTest, OpenFilesLeaveMostDescriptorsToOthers) {
  const size_t before = CountDescriptors();
  constexpr size_t kLimit = 300;
  const ScopedLimit limit(RLIMIT_NOFILE, kLimit);
  options_.commit_interval = std::chrono::hours(1);
  Start();
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(Put(Object("o" + std::to_string(i), kBlock), 0));
  EXPECT_LE(CountDescriptors(), before + kLimit / 3 + 10);
  // All of them at one commit.
  EXPECT_TRUE(store_->Flush());
  EXPECT_EQ(store_->Stats().blocks, 400U);
  EXPECT_EQ(store_->Stats().write_errors, 0U);
}

TEST_F(StoreSpaceTest, AStuckDiskHasFewFilesOpen) {
  options_.open_files = 16;
  options_.commit_interval = std::chrono::hours(1);
  Start();
  const size_t before = CountDescriptors();
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kWrite ? DiskFault::Kind::kHold
                                                                 : DiskFault::Kind::kNone};
  });
  std::atomic<int> finished = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string name = "o" + std::to_string(i);
    store_->Write(Object(name, kBlock).object, 0, ToBuffer(BytesOf(name, 0, kBlock)),
                  [&](Status) { ++finished; });
  }
  constexpr size_t kAtOnce = 128;
  int left = 400;
  while (left > 0 && !HasFailure()) {
    const size_t expected = std::min(kAtOnce, static_cast<size_t>(left));
    EXPECT_TRUE(Eventually([&] { return faulty_->held() >= expected; }));
    // Two each for those under way; those of the round before may still be closing.
    EXPECT_LE(CountDescriptors(), before + 3 * kAtOnce + options_.open_files + 10);
    EXPECT_LE(faulty_->held(), kAtOnce);
    faulty_->Release();
    left -= static_cast<int>(kAtOnce);
    EXPECT_TRUE(Eventually([&] { return finished >= 400 - left || finished == 400; }));
  }
  faulty_->Heal();
  faulty_->Release();
  EXPECT_TRUE(Eventually([&] { return finished == 400; }));
  EXPECT_EQ(store_->Stats().blocks, 400U);
}

// A file system of its own, unmounted at the end; root only.
class StoreSmallDiskTest : public StoreSpaceTest {
 protected:
  void SetUp() override {
    mountpoint_ = root_ + "/small";
    std::filesystem::create_directory(mountpoint_);
    if (::mount("tmpfs", mountpoint_.c_str(), "tmpfs", 0, "size=8m,mode=0700") != 0) {
      GTEST_SKIP() << "needs the right to mount";
    }
    mounted_ = true;
    options_.dir = mountpoint_ + "/cache";
  }
  void TearDown() override {
    Stop();
    if (mounted_) ::umount2(mountpoint_.c_str(), MNT_DETACH);
  }
  // Takes all but so many bytes of the file system.
  void TakeAllBut(uint64_t bytes) {
    struct statfs fs = {};
    ASSERT_EQ(::statfs(mountpoint_.c_str(), &fs), 0);
    const uint64_t free = static_cast<uint64_t>(fs.f_bavail) * static_cast<uint64_t>(fs.f_bsize);
    if (free <= bytes) return;
    std::ofstream(mountpoint_ + "/others") << std::string(free - bytes, 'x');
  }
  std::string mountpoint_;
  bool mounted_ = false;
};

TEST_F(StoreSmallDiskTest, ALimitAboveTheDisksSizeIsSaidOnce) {
  const auto before = spdlog::default_logger();
  std::ostringstream text;
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  Start();
  Stop();
  const std::string said = text.str();
  text.str("");
  options_.limit_bytes = 8 << 20;
  Start();
  Stop();
  spdlog::set_default_logger(before);
  EXPECT_NE(said.find("has 8388608 bytes, less than the 268435456 of --cache-size"),
            std::string::npos)
      << said;
  EXPECT_EQ(text.str().find("--cache-size"), std::string::npos) << text.str();
}

TEST_F(StoreSmallDiskTest, FarMoreThanFitsIsReadRightAndNeverStuck) {
  Start();
  uint64_t kept = 0;
  for (int i = 0; i < 40; ++i) {
    const auto held = Object("o" + std::to_string(i), 64 * kBlock);  // 40 MiB in all
    for (uint64_t block = 0; block < 64; ++block) {
      const Status status = Put(held, block);
      EXPECT_TRUE(status || status.error().code == Code::kNoSpace);
      EXPECT_NE(Get(held, block), Got::kWrong);
      kept += status ? 1 : 0;
    }
    scheduler_.Advance(options_.bypass_retry + std::chrono::milliseconds(1));
  }
  EXPECT_GT(kept, 100U);
  Restart();
}

TEST_F(StoreSmallDiskTest, TheReserveIsKept) {
  options_.reserve_fraction = 0.25;
  Start();
  for (int i = 0; i < 20; ++i) PutAll(Object("o" + std::to_string(i), 64 * kBlock));
  EXPECT_FALSE(store_->Stats().bypass) << store_->Stats().bypass_reason;
  struct statfs fs = {};
  ASSERT_EQ(::statfs(mountpoint_.c_str(), &fs), 0);
  // But for what the index takes.
  EXPECT_GE(static_cast<double>(fs.f_bavail), 0.2 * static_cast<double>(fs.f_blocks));
}

TEST_F(StoreSmallDiskTest, TheReserveOfInodesIsKept) {
  ASSERT_EQ(::mount("tmpfs", mountpoint_.c_str(), "tmpfs", MS_REMOUNT, "size=64m,nr_inodes=800"),
            0);
  const auto free_inodes = [&] {
    struct statfs fs = {};
    EXPECT_EQ(::statfs(mountpoint_.c_str(), &fs), 0);
    return static_cast<uint64_t>(fs.f_ffree);
  };
  options_.reserve_fraction = 0.25;
  options_.limit_bytes = uint64_t{16} << 20;  // of which a 32nd goes at a time
  Start();
  for (int i = 0; i < 500; ++i) {
    const auto held = Object("o" + std::to_string(i), kBlock);
    const Status status = Put(held, 0);
    EXPECT_TRUE(status) << i << status.error().ToString();
  }
  constexpr uint64_t kUnderWay = 20;  // measured before it was made
  EXPECT_GE(free_inodes() + kUnderWay, 200U);
  EXPECT_FALSE(store_->Stats().bypass) << store_->Stats().bypass_reason;
  EXPECT_GT(store_->Stats().blocks, 100U);
  // And while others take them.
  const uint64_t before = store_->Stats().blocks;
  for (int i = 0; i < 100; ++i) std::ofstream(mountpoint_ + "/other" + std::to_string(i));
  EXPECT_TRUE(Eventually([&] { return free_inodes() + kUnderWay >= 200; })) << free_inodes();
  EXPECT_LT(store_->Stats().blocks, before);
  EXPECT_GT(store_->Stats().blocks, 20U);
}

TEST_F(StoreSmallDiskTest, OthersFillTheDisk) {
  options_.reserve_fraction = 0.25;
  Start();
  PutAll(Object("a", 64 * kBlock));
  ASSERT_TRUE(store_->Flush());
  TakeAllBut(uint64_t{1} << 20);
  EXPECT_TRUE(Eventually([&] { return store_->Stats().evicted_blocks > 0; }));
  EXPECT_TRUE(Eventually([&] { return store_->Stats().blocks == 0 || DiskBytes() == 0; }));
  const auto b = Object("b", 4 * kBlock);
  EXPECT_EQ(CodeOf(Put(b, 0)), Code::kNoSpace);
  EXPECT_TRUE(store_->Stats().bypass);
  std::filesystem::remove(mountpoint_ + "/others");
  scheduler_.Advance(options_.bypass_retry + std::chrono::milliseconds(1));
  EXPECT_TRUE(Put(b, 1));
  EXPECT_TRUE(Eventually([&] { return !store_->Stats().bypass; }));
}

}  // namespace
}  // namespace dartfs::core
