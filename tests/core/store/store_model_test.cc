// Random operations compared with a reference model, over restarts, kills and a misbehaving disk;
// and many threads at once.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/store/store_fixture.h"

namespace dartfs::core {
namespace {

constexpr uint64_t kBlock = kTinyGrid.block_size;

// What must hold whatever happens: no wrong byte. What must hold without faults and eviction: a
// block that was put and not dropped is there; after a kill, one that was put before the last
// flush.
class StoreModelTest : public StoreFixture {
 protected:
  static constexpr uint64_t kNames = 8;
  static std::string Name(uint64_t i) { return "m" + std::to_string(i); }
  static uint64_t SizeOf(uint64_t i) { return i * 3 * kBlock + 1 + i * 1111; }
  Held Open(uint64_t i) { return Object(Name(i), SizeOf(i)); }

  using Blocks = std::set<std::pair<uint64_t, uint64_t>>;
  void CheckHolds(const Blocks& expected) {
    for (const auto& [name, block] : expected) {
      EXPECT_EQ(Get(Open(name), block), Got::kHit) << Name(name) << " block " << block;
    }
  }
};

TEST_F(StoreModelTest, WithoutFaultsItIsAMap) {
  SeededRandom random(TestSeed());
  options_.commit_interval = std::chrono::milliseconds(3);
  Start();
  Blocks present;
  Blocks durable;
  for (int step = 0; step < 1500 && !HasFailure(); ++step) {
    const uint64_t name = random.Below(kNames);
    const uint64_t block = random.Below(options_.grid.BlockCount(SizeOf(name)));
    const uint64_t dice = random.Below(1000);
    if (dice < 450) {
      const auto held = Open(name);
      ASSERT_TRUE(Put(held, block));
      present.insert({name, block});
    } else if (dice < 900) {
      const uint64_t length = options_.grid.BlockLength(SizeOf(name), block);
      const uint64_t offset = random.Below(length);
      const Got got = GetPart(Open(name), block, offset, 1 + random.Below(length - offset));
      EXPECT_EQ(got, present.count({name, block}) > 0 ? Got::kHit : Got::kMiss);
    } else if (dice < 960) {
      ASSERT_TRUE(store_->Flush());
      durable = present;
    } else if (dice < 975) {
      ASSERT_TRUE(store_->DropObject(Open(name).object));
      const auto gone = [&](const auto& entry) { return entry.first == name; };
      std::erase_if(present, gone);
      std::erase_if(durable, gone);
    } else if (dice < 990) {
      Restart();
      durable = present;
      EXPECT_EQ(store_->Stats().blocks, present.size());
    } else {
      Crash();
      CheckHolds(durable);
      // What was not flushed may have become durable by itself.
      std::erase_if(present, [&](const auto& entry) {
        return durable.count(entry) == 0 && Get(Open(entry.first), entry.second) != Got::kHit;
      });
    }
  }
  EXPECT_EQ(store_->Stats().corrupt_granules, 0U);
  EXPECT_EQ(store_->Stats().corrupt_records, 0U);
}

TEST_F(StoreModelTest, WithFaultsAndEvictionNeverAWrongByte) {
  SeededRandom random(TestSeed());
  options_.limit_bytes = 24 * kBlock;
  options_.commit_interval = std::chrono::milliseconds(3);
  options_.bypass_retry = Duration::zero();
  Start();
  uint64_t hits = 0;
  for (int step = 0; step < 1200 && !HasFailure(); ++step) {
    const uint64_t name = random.Below(kNames);
    const uint64_t block = random.Below(options_.grid.BlockCount(SizeOf(name)));
    const uint64_t dice = random.Below(1000);
    if (dice < 500) {
      (void)Put(Open(name), block);
    } else if (dice < 940) {
      const Got got = Get(Open(name), block);
      ASSERT_NE(got, Got::kWrong);
      hits += got == Got::kHit ? 1 : 0;
    } else if (dice < 960) {
      const auto kind = static_cast<DiskFault::Kind>(random.Below(4));
      const uint64_t torn = random.Below(kBlock);
      const uint64_t every = 1 + random.Below(4);
      const int sys_errno = random.Below(2) == 0 ? ENOSPC : EIO;
      faulty_->SetChoose([=, count = uint64_t{0}](const DiskCall& call) mutable {
        if (call.bytes == 0 && call.kind != DiskCall::Kind::kSync) return DiskFault();
        if (++count % every != 0) return DiskFault();
        return DiskFault{.kind = kind, .torn_bytes = torn, .sys_errno = sys_errno};
      });
    } else if (dice < 975) {
      faulty_->Heal();
    } else if (dice < 985) {
      (void)store_->DropObject(Open(name).object);
    } else if (dice < 993) {
      Restart();
    } else {
      Crash();
    }
    ASSERT_LE(store_->Stats().used_bytes, options_.limit_bytes);
  }
  faulty_->Heal();
  EXPECT_GT(hits, 0U);
  // It recovers: everything can be put and read again.
  for (int tries = 0; tries < 3; ++tries) (void)Put(Open(1), 0);
  for (uint64_t name = 0; name < kNames; ++name) {
    const auto held = Open(name);
    ASSERT_TRUE(Put(held, 0)) << Name(name);
    // A torn block is only found when it is read.
    if (Get(held, 0) != Got::kHit) {
      ASSERT_TRUE(Put(held, 0));
    }
    EXPECT_EQ(Get(held, 0), Got::kHit);
  }
}

TEST_F(StoreModelTest, ManyThreadsAtOnce) {
  options_.limit_bytes = 48 * kBlock;
  options_.commit_interval = std::chrono::milliseconds(2);
  options_.open_files = 6;
  Start();
  const uint64_t seed = TestSeed();
  std::vector<std::thread> threads;
  std::atomic<uint64_t> hits = 0;
  for (uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      SeededRandom random(seed + t);
      for (int step = 0; step < 250; ++step) {
        const uint64_t name = random.Below(12);
        const auto held = Object("t" + std::to_string(name), (1 + name) * kBlock);
        const uint64_t block = random.Below(1 + name);
        switch (random.Below(12)) {
          case 0:
            (void)store_->DropObject(held.object);
            break;
          case 1:
            (void)store_->Flush();
            break;
          case 2:
            store_->PutName(NameTable::kUrls, held.name, held.name);
            break;
          case 3: {
            const auto value = store_->GetName(NameTable::kUrls, held.name);
            EXPECT_TRUE(!value || *value == held.name);
            break;
          }
          case 4:
          case 5:
          case 6:
          case 7:
            (void)Put(held, block);
            break;
          default: {
            const Got got = Get(held, block);
            EXPECT_NE(got, Got::kWrong);
            EXPECT_NE(got, Got::kError);
            hits += got == Got::kHit ? 1 : 0;
          }
        }
        (void)store_->Stats();
        (void)store_->PresentMap(*held.object);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(hits, 0U);
  EXPECT_EQ(store_->Stats().corrupt_granules, 0U);
  EXPECT_LE(store_->Stats().used_bytes, options_.limit_bytes);
  EXPECT_FALSE(store_->Stats().bypass);
}

TEST_F(StoreModelTest, RekeyUnderReadersAndWriters) {
  Start();
  const auto a = Object("a", 16 * kBlock);
  PutAll(a);
  ASSERT_TRUE(store_->Flush());
  Restart();
  const auto held = Object("a", 16 * kBlock);
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      while (!stop) {
        for (uint64_t block = 0; block < 16; ++block) EXPECT_EQ(Get(held, block), Got::kHit);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const std::string name = "r" + std::to_string(i);
    ASSERT_TRUE(store_->Rekey(held.object, KeyNamed(name), MetaNamed(name, held.size)));
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(store_->Stats().corrupt_granules, 0U);
  EXPECT_EQ(store_->Stats().corrupt_records, 0U);
  EXPECT_EQ(store_->Stats().objects, 1U);
}

}  // namespace
}  // namespace dartfs::core
