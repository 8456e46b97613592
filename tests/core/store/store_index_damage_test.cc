// Single flipped bits in the index: every read right or a miss, no start fails, no crash.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>

#include "core/store/index_vet.h"
#include "core/store/store_fixture.h"

namespace dartfs::core {
namespace {

constexpr uint64_t kBlock = kTinyGrid.block_size;
constexpr int kObjects = 40;

class StoreIndexDamageTest : public StoreFixture {
 protected:
  static std::string Name(int i) { return "object-" + std::to_string(i); }
  static uint64_t SizeOf(int i) { return (1 + static_cast<uint64_t>(i) % 5) * kBlock; }

  void Fill() {
    Start();
    for (int i = 0; i < kObjects; ++i) PutAll(Object(Name(i), SizeOf(i)));
    for (int i = 0; i < kObjects; ++i) {
      store_->PutName(NameTable::kUrls, Name(i), "value " + Name(i));
    }
    ASSERT_TRUE(store_->Flush());
    // Freed pages too, as an index in use has.
    for (int i = 0; i < kObjects; i += 4) {
      ASSERT_TRUE(store_->DropObject(Object(Name(i), SizeOf(i)).object));
      PutAll(Object(Name(i), SizeOf(i)));
      ASSERT_TRUE(store_->Flush());
    }
  }
  std::string DataFile() const { return options_.dir + "/index/data.mdb"; }

  // Reads everything, puts what is missing, reads again; the store is used in all its ways.
  void Exercise() {
    for (int i = 0; i < kObjects; ++i) {
      const auto held = Object(Name(i), SizeOf(i));
      ASSERT_NE(held.object, nullptr);
      CountHits(held);
      const auto value = store_->GetName(NameTable::kUrls, Name(i));
      if (value) {
        EXPECT_EQ(*value, "value " + Name(i));
      }
      PutAll(held);
      EXPECT_EQ(CountHits(held), options_.grid.BlockCount(held.size));
    }
    ASSERT_TRUE(store_->Flush());
  }

  void RunFlips(bool clean, int flips) {
    SeededRandom random(TestSeed());
    Fill();
    const std::string pristine = root_ + "/pristine";
    if (clean) Stop();
    CopyDirectory(pristine);
    Stop();
    for (int i = 0; i < flips; ++i) {
      std::filesystem::remove_all(options_.dir);
      std::filesystem::copy(pristine, options_.dir, std::filesystem::copy_options::recursive);
      const uint64_t offset = random.Below(std::filesystem::file_size(DataFile()));
      const auto bit = static_cast<unsigned>(random.Below(8));
      SCOPED_TRACE("offset " + std::to_string(offset) + " bit " + std::to_string(bit));
      FlipBit(DataFile(), offset, bit);
      const Status started = TryStart();
      ASSERT_TRUE(started) << started.error().ToString();
      Exercise();
      Stop();
      ASSERT_TRUE(TryStart());
      EXPECT_EQ(store_->Stats().objects, uint64_t{kObjects});
      Stop();
      if (HasFailure()) return;
    }
  }
};

TEST_F(StoreIndexDamageTest, OneFlippedBitAfterACleanStop) { RunFlips(true, 25); }

TEST_F(StoreIndexDamageTest, OneFlippedBitAfterAKill) { RunFlips(false, 25); }

TEST_F(StoreIndexDamageTest, AFlipCostsLittle) {
  Fill();
  Stop();
  // Somewhere in the middle: records are lost, not the cache.
  FlipBit(DataFile(), std::filesystem::file_size(DataFile()) / 2, 1);
  Start();
  EXPECT_GT(store_->Stats().objects, uint64_t{kObjects} / 2);
  EXPECT_FALSE(std::filesystem::exists(options_.dir + "/index.bad-1"));
}

TEST_F(StoreIndexDamageTest, TheOtherFilesOfTheIndexMayBeDamagedToo) {
  Fill();
  Stop();
  for (const char* file : {"/index/lock.mdb", "/index/seal", "/index.phase"}) {
    for (const uint64_t part : {0, 1, 2, 3}) {
      const std::string path = options_.dir + file;
      FlipBit(path, std::filesystem::file_size(path) * part / 4, static_cast<unsigned>(part));
      Start();
      EXPECT_EQ(store_->Stats().objects, uint64_t{kObjects});
      Stop();
    }
  }
  std::ofstream(options_.dir + "/index/lock.mdb", std::ios::trunc) << "no lock";
  Start();
  Exercise();
}

TEST_F(StoreIndexDamageTest, AHopelessIndexIsSetAside) {
  struct Case {
    const char* name;
    void (*damage)(const std::string& path);
  };
  const Case cases[] = {
      {"empty", [](const std::string& path) { std::ofstream(path, std::ios::trunc); }},
      {"text", [](const std::string& path) { std::ofstream(path, std::ios::trunc) << "no index"; }},
      {"zeros",
       [](const std::string& path) {
         std::ofstream(path, std::ios::trunc) << std::string(1 << 20, '\0');
       }},
      {"cut", [](const std::string& path) { (void)!::truncate(path.c_str(), 8192); }},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Fill();
    Stop();
    c.damage(DataFile());
    ASSERT_TRUE(TryStart());
    EXPECT_EQ(store_->Stats().objects, 0U);
    // The files of forgotten objects go, and new ones are not taken for them.
    Exercise();
    Restart();
    EXPECT_EQ(store_->Stats().objects, uint64_t{kObjects});
    Stop();
    std::filesystem::remove_all(options_.dir);
  }
}

TEST_F(StoreIndexDamageTest, FoundInARunItIsNotTriedAgain) {
  Fill();
  // No page says any more of what kind it is.
  const uint64_t pages = std::filesystem::file_size(DataFile()) / 4096;
  const int fd = ::open(DataFile().c_str(), O_RDWR | O_CLOEXEC);
  for (uint64_t page = 2; page < pages; ++page) {
    constexpr uint64_t kFlagsAt = 10;
    ASSERT_EQ(::pwrite(fd, "\0\0", 2, static_cast<off_t>(page * 4096 + kFlagsAt)), 2);
  }
  ::close(fd);
  store_->PutName(NameTable::kUrls, Name(1), "new");
  EXPECT_EQ(store_->Flush().error().code, Code::kCorrupt);
  const auto before = store_->Stats();
  EXPECT_TRUE(before.bypass);
  for (int i = 0; i < kObjects; ++i) {
    store_->PutName(NameTable::kUrls, Name(i), "newer");
    EXPECT_EQ(store_->GetName(NameTable::kUrls, Name(i)), std::nullopt);
    EXPECT_NE(Get(Object(Name(i), SizeOf(i)), 0), Got::kWrong);
    const Status put = Put(Object("other " + Name(i), kBlock), 0);
    EXPECT_TRUE(!put && put.error().code == Code::kNoSpace);
    (void)store_->DropObject(Object(Name(i), SizeOf(i)).object);
    EXPECT_FALSE(store_->Flush());
  }
  EXPECT_EQ(store_->Stats().write_errors, before.write_errors);
  EXPECT_TRUE(
      Eventually([&] { return store_->Stats().used_bytes == 0 || store_->Stats().blocks > 0; }));
  Restart();
  Exercise();
}

TEST_F(StoreIndexDamageTest, AStartThatFailsIsNoDeath) {
  Fill();
  Stop();
  const uint64_t map_bytes = options_.index_map_bytes;
  for (const char* note : {"i0", "o0", "c1"}) {
    std::ofstream(options_.dir + "/index.phase", std::ios::trunc) << note;
    options_.index_map_bytes = uint64_t{1} << 50;  // more than there is
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(TryStart());
    options_.index_map_bytes = map_bytes;
    Start();
    EXPECT_EQ(store_->Stats().objects, uint64_t{kObjects}) << note;
    Stop();
  }
  EXPECT_FALSE(std::filesystem::exists(options_.dir + "/index.bad-1"));
}

TEST_F(StoreIndexDamageTest, ASlowDiskIsNoDamage) {
  Fill();
  Stop();
  const std::string dir = options_.dir + "/index";
  IndexVetOptions late = {.dir = dir, .copy_dir = dir + ".new"};
  late.map_bytes = options_.index_map_bytes;
  late.deadline = Duration::zero();
  ASSERT_TRUE(RemoveIndexSeal(dir));
  for (int i = 0; i < 5; ++i) {  // killed sooner or later
    const auto verdict = VetIndex(late);
    ASSERT_TRUE(verdict) << verdict.error().ToString();
    EXPECT_EQ(verdict->action, IndexVerdict::Action::kUse);
    late.deadline += std::chrono::milliseconds(1);
  }
}

TEST_F(StoreIndexDamageTest, ACopyThatCannotBeWrittenLeavesTheIndex) {
  Fill();
  Stop();
  FlipBit(DataFile(), std::filesystem::file_size(DataFile()) / 2, 1);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  for (int i = 0; i < 3; ++i) {
    const ScopedLimit limit(RLIMIT_FSIZE, 16 << 10);
    const Status started = TryStart();
    ASSERT_FALSE(started);
    EXPECT_NE(started.error().context.find("index.new"), std::string::npos)
        << started.error().ToString();
  }
  ::signal(SIGXFSZ, handler);
  Start();
  EXPECT_GT(store_->Stats().objects, uint64_t{kObjects} / 2);
  EXPECT_FALSE(std::filesystem::exists(options_.dir + "/index.bad-1"));
}

TEST_F(StoreIndexDamageTest, AnIndexIsReplacedInStepsThatCanBeInterrupted) {
  Fill();
  Stop();
  const std::string index = options_.dir + "/index";
  // Away, and nothing in its place so far.
  std::filesystem::rename(index, index + ".old");
  std::filesystem::create_directory(index + ".new");
  Start();
  EXPECT_EQ(store_->Stats().objects, uint64_t{kObjects});
  EXPECT_FALSE(std::filesystem::exists(index + ".old"));
  Stop();
  // In place, and the old one not removed.
  std::filesystem::create_directory(index + ".old");
  std::ofstream(index + ".old/data.mdb") << "replaced";
  FlipBit(DataFile(), std::filesystem::file_size(DataFile()) / 2, 1);
  Start();
  EXPECT_GT(store_->Stats().objects, uint64_t{kObjects} / 2);
  EXPECT_FALSE(std::filesystem::exists(index + ".old"));
  EXPECT_FALSE(std::filesystem::exists(index + ".new"));
}

TEST_F(StoreIndexDamageTest, TwoStartsThatDiedOpeningItSetItAside) {
  Fill();
  Stop();
  const std::string phase = options_.dir + "/index.phase";
  std::ofstream(phase, std::ios::trunc) << "o0";  // one start died
  Start();
  EXPECT_EQ(store_->Stats().objects, uint64_t{kObjects});
  Stop();
  std::ofstream(phase, std::ios::trunc) << "o1";  // two in a row
  Start();
  EXPECT_EQ(store_->Stats().objects, 0U);
  EXPECT_TRUE(std::filesystem::exists(options_.dir + "/index.bad-1"));
  Exercise();
  Restart();
  EXPECT_EQ(store_->Stats().objects, uint64_t{kObjects});
}

TEST_F(StoreIndexDamageTest, RunsThatDiedInCommitsHaveItRebuiltWithoutLoss) {
  Fill();
  Stop();
  for (const char* note : {"c0", "c1", "c5", "x9", ""}) {
    std::ofstream(options_.dir + "/index.phase", std::ios::trunc) << note;
    Start();
    EXPECT_EQ(store_->Stats().objects, uint64_t{kObjects}) << note;
    Stop();
  }
  Start();
  Exercise();
  EXPECT_FALSE(std::filesystem::exists(options_.dir + "/index.bad-1"));
}

}  // namespace
}  // namespace dartfs::core
