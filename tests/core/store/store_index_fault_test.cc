// The index's file fails under an open store: cut short, which faults as a page that the disk can't
// give does, or overwritten, which LMDB's assertions find. Misses and bypass, no crash.
#include <sys/mman.h>

#include <thread>

#include "core/store/index_guard.h"
#include "core/store/store_fixture.h"

#if defined(__SANITIZE_ADDRESS__)
// An index that was lost is never called again, not even to free its memory.
extern "C" const char* __lsan_default_suppressions() { return "leak:liblmdb\nleak:mdb_\n"; }
#endif

namespace dartfs::core {
namespace {

constexpr uint64_t kBlock = kTinyGrid.block_size;
constexpr size_t kPage = 4096;
constexpr int kObjects = 200;
constexpr uint64_t kBlocksEach = 3;

class StoreIndexFaultTest : public StoreFixture {
 protected:
  static std::string Name(int i) { return "object-" + std::to_string(i); }
  std::string DataFile() const { return options_.dir + "/index/data.mdb"; }

  // Records of which the next run has seen none but the chunks.
  void StartFilled() {
    Start();
    for (int i = 0; i < kObjects; ++i) {
      PutAll(Object(Name(i), kBlocksEach * kBlock));
      store_->PutName(NameTable::kUrls, Name(i), std::string(500, 'v'));
    }
    ASSERT_TRUE(store_->Flush());
    Restart();
  }
  void Truncate(uint64_t bytes) {
    ASSERT_EQ(::truncate(DataFile().c_str(), static_cast<off_t>(bytes)), 0);
  }
  void Zero(uint64_t pages) {
    const int fd = ::open(DataFile().c_str(), O_WRONLY | O_CLOEXEC);
    const std::string zeros(pages * kPage, '\0');
    ASSERT_EQ(::pwrite(fd, zeros.data(), zeros.size(), 0), static_cast<ssize_t>(zeros.size()));
    ::close(fd);
  }
  uint64_t FileBytes() const { return std::filesystem::file_size(DataFile()); }

  void LookUp(int from, int to) {
    for (int i = from; i < to; ++i) {
      const auto value = store_->GetName(NameTable::kUrls, Name(i));
      if (value) {
        EXPECT_EQ(*value, std::string(500, 'v'));
      }
      (void)store_->FindObject(KeyNamed(Name(i)));
      const auto held = Object(Name(i), kBlocksEach * kBlock);
      ASSERT_NE(held.object, nullptr);
      CountHits(held);  // none wrong
    }
  }
  // Every way to use the store, from several threads, then a start that finds it in order.
  void UseUntilBypass() {
    std::thread other([this] { LookUp(0, kObjects / 2); });
    LookUp(kObjects / 2, kObjects);
    other.join();
    for (int i = 0; i < 10; ++i) (void)Put(Object("new " + Name(i), kBlock), 0);
    store_->PutName(NameTable::kUrls, "new", "value");
    (void)store_->DropObject(Object(Name(1), kBlocksEach * kBlock).object);
    EXPECT_FALSE(store_->Flush());
    EXPECT_TRUE(store_->Stats().bypass);
    EXPECT_EQ(store_->GetName(NameTable::kUrls, Name(2)), std::nullopt);
    const Status put = Put(Object("late", kBlock), 0);
    EXPECT_TRUE(!put && put.error().code == Code::kNoSpace);
    LookUp(0, kObjects);
  }
  void StartsAgain() {
    Restart();
    EXPECT_FALSE(store_->Stats().bypass);
    LookUp(0, kObjects);
    for (int i = 0; i < 10; ++i) PutAll(Object(Name(i), kBlocksEach * kBlock));
    ASSERT_TRUE(store_->Flush());
    Restart();
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(CountHits(Object(Name(i), kBlocksEach * kBlock)), kBlocksEach);
    }
  }
};

TEST_F(StoreIndexFaultTest, CutShortWhileOpen) {
  StartFilled();
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{kPage}, 2 * kPage, FileBytes() / 2}) {
    SCOPED_TRACE(bytes);
    Truncate(bytes);
    UseUntilBypass();
    EXPECT_NE(store_->Stats().bypass_reason.find("restart"), std::string::npos);
    StartsAgain();
    Stop();
    std::filesystem::remove_all(options_.dir);
    StartFilled();
  }
}

TEST_F(StoreIndexFaultTest, TheReasonSaysThatTheDiskCouldNotBeRead) {
  StartFilled();
  Truncate(2 * kPage);
  EXPECT_EQ(store_->GetName(NameTable::kUrls, Name(1)), std::nullopt);
  EXPECT_FALSE(store_->Flush());
  EXPECT_NE(store_->Stats().bypass_reason.find("could not be read from the disk: I/O error"),
            std::string::npos)
      << store_->Stats().bypass_reason;
}

TEST_F(StoreIndexFaultTest, CutShortAndOnlyWrittenTo) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{kPage}, 2 * kPage}) {
    SCOPED_TRACE(bytes);
    StartFilled();
    Truncate(bytes);
    for (int i = 0; i < 5; ++i) {
      (void)Put(Object("new " + Name(i), kBlock), 0);
      EXPECT_FALSE(store_->Flush());
    }
    EXPECT_TRUE(store_->Stats().bypass);
    StartsAgain();
    Stop();
    std::filesystem::remove_all(options_.dir);
  }
}

TEST_F(StoreIndexFaultTest, CutShortAndOnlyStopped) {
  StartFilled();
  Truncate(0);
  StartsAgain();
}

TEST_F(StoreIndexFaultTest, ItsFirstPagesAreOverwritten) {
  for (const uint64_t pages : {2, 6}) {
    SCOPED_TRACE(pages);
    StartFilled();
    Zero(pages);
    UseUntilBypass();
    StartsAgain();
    Stop();
    std::filesystem::remove_all(options_.dir);
  }
}

TEST_F(StoreIndexFaultTest, WhatIsKnownInMemoryStaysReadable) {
  StartFilled();
  const auto known = Object(Name(3), kBlocksEach * kBlock);
  ASSERT_EQ(CountHits(known), kBlocksEach);
  Truncate(0);
  LookUp(4, 10);
  EXPECT_FALSE(store_->Flush());
  EXPECT_EQ(CountHits(known), kBlocksEach);
}

// A page of a file, mapped, and gone from the file.
class LostPage {
 public:
  explicit LostPage(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(::ftruncate(fd, kPage), 0);
    page_ = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd, 0);
    EXPECT_EQ(::ftruncate(fd, 0), 0);
    ::close(fd);
  }
  ~LostPage() { ::munmap(page_, kPage); }
  LostPage(const LostPage&) = delete;
  LostPage& operator=(const LostPage&) = delete;
  const void* get() const { return page_; }
  // Not the compiler's nor a sanitizer's to see.
  char Read() const { return *static_cast<const volatile char*>(page_); }

 private:
  void* page_ = nullptr;
};

TEST(IndexGuardTest, AFaultInTheMapsEndsTheRegion) {
  const std::string dir = ::testing::TempDir() + "dartfs-index-guard";
  std::filesystem::create_directories(dir);
  const LostPage page(dir + "/page");
  const GuardedMaps maps = GuardedMaps::OfFilesIn(dir);
  EXPECT_TRUE(maps.Contains(page.get()));
  EXPECT_FALSE(maps.Contains(&maps));
  EXPECT_FALSE(maps.EndsWhereItBegins(page.get(), kPage + 1));
  for (int i = 0; i < 3; ++i) {  // the signal does not stay blocked
    int reached = 0;
    auto faults = [&] {
      reached = 1;
      (void)page.Read();
      reached = 2;
    };
    EXPECT_EQ(RunGuarded(maps, faults), GuardEnd::kFault);
    EXPECT_EQ(reached, 1);
    auto asserts = [] { LeaveGuardByAssertion(); };
    EXPECT_EQ(RunGuarded(maps, asserts), GuardEnd::kAssertion);
    auto works = [&] { reached = 3; };
    EXPECT_EQ(RunGuarded(maps, works), GuardEnd::kDone);
    EXPECT_EQ(reached, 3);
  }
  LeaveGuardByAssertion();  // outside: nothing
}

TEST(IndexGuardDeathTest, OtherFaultsAreNotTaken) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const std::string dir = ::testing::TempDir() + "dartfs-index-guard";
  for (const char* const name : {"", "-2"}) std::filesystem::create_directories(dir + name);
  const LostPage guarded(dir + "/page");
  const LostPage elsewhere(dir + "-2/page");
  const GuardedMaps maps = GuardedMaps::OfFilesIn(dir);
  auto other = [&] { (void)elsewhere.Read(); };
  EXPECT_DEATH((void)RunGuarded(maps, other), "");
  auto nothing = [] {};
  (void)RunGuarded(maps, nothing);
  EXPECT_DEATH((void)guarded.Read(), "");  // in the maps, outside a region
}

}  // namespace
}  // namespace dartfs::core
