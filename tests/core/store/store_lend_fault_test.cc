// Lent files where the disk refuses, the index can't be written, or blocks turn out damaged.
#include <atomic>
#include <future>
#include <thread>

#include "core/store/store_lend_fixture.h"
#include "core/store/stored_object.h"

namespace dartfs::core {
namespace {

using StoreLendFaultTest = StoreLendFixture;

// An object of two chunks, loaded, each block checked, and what it is counted in.
class LentObjectTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kChunk = kTinyGrid.chunk_size;
  void LoadAll() {
    const uint64_t chunks = geometry_.ChunkCount(object_.size());
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      ChunkRecord record;
      record.blocks = geometry_.LegalMask(object_.size(), chunk);
      record.object_size = object_.size();
      object_.Load(chunk, record);
    }
  }
  void CheckAll() {
    for (uint64_t block = 0; block < kTinyGrid.BlockCount(object_.size()); ++block) {
      ASSERT_TRUE(object_.PinUnused(block, 1));
      const uint64_t length = kTinyGrid.BlockLength(object_.size(), block);
      object_.MarkVerified(block, object_.View(block, {0, 1}).generation,
                           {0, kTinyGrid.GranuleCount(length)});
      object_.Unpin(block);
    }
  }
  std::shared_ptr<LentFile> MakeLentFile() {
    return std::make_shared<LentFile>(object_.size(), budget_, space_);
  }
  bool MayBorrow() {
    bool too_much = false;
    const auto lent = object_.BeginLoan(object_.file_number(), &too_much);
    if (lent != nullptr) lent->EndLoan();
    return lent != nullptr;
  }

  const Geometry geometry_{kTinyGrid};
  PlacementUsage usage_;
  ByteBudget budget_{uint64_t{1} << 30};
  Space space_{uint64_t{1} << 30};
  StoredObject object_{geometry_, KeyNamed("a"), kChunk + kBlock + kTail, usage_};
};

TEST_F(LentObjectTest, NoLoanBeforeTheMarkIsDurable) {
  LoadAll();
  CheckAll();
  ASSERT_TRUE(object_.MarkLent(MakeLentFile()));
  EXPECT_FALSE(MayBorrow());
  object_.SettleLent(false);
  EXPECT_EQ(object_.lent_file(), nullptr);
  EXPECT_FALSE(MayBorrow());
  ASSERT_TRUE(object_.MarkLent(MakeLentFile()));
  object_.SettleLent(true);
  EXPECT_TRUE(MayBorrow());
  object_.SettleLent(false);  // of another mark: what is durable stays
  EXPECT_TRUE(MayBorrow());
  object_.DropAll();
  object_.ReplaceFile();
  EXPECT_FALSE(object_.is_lent_durably());
}

TEST_F(LentObjectTest, PlacesOfAFileThatWasReplacedAreNotClaimed) {
  object_.LoadLent(MakeLentFile());
  const uint64_t old_number = object_.file_number();
  EXPECT_EQ(object_.ClaimAbsent(0, old_number), 0U);
  object_.ReplaceFile();
  EXPECT_EQ(object_.ClaimAbsent(0, old_number), 0U);
  EXPECT_EQ(object_.ClaimAbsent(0, object_.file_number()), geometry_.LegalMask(object_.size(), 0));
}

TEST_F(LentObjectTest, CompleteAndCheckedWhateverWasDropped) {
  LoadAll();
  EXPECT_TRUE(object_.IsComplete());
  EXPECT_FALSE(object_.IsVerified());
  CheckAll();
  CheckAll();  // counted once
  EXPECT_TRUE(object_.IsVerified());
  const auto sums = std::make_shared<const std::vector<uint64_t>>(4);
  for (const uint64_t block : {0, 4, 5}) {
    ASSERT_TRUE(object_.PinUnused(block, 1));
    EXPECT_EQ(object_.Drop(block, object_.View(block, {0, 1}).generation).size(), 1U);
    object_.Unpin(block);
    EXPECT_EQ(object_.PresentBlocks(), 5U);
    EXPECT_FALSE(object_.IsComplete());
    EXPECT_FALSE(object_.IsVerified());
    ASSERT_EQ(object_.ClaimForWrite(block, 1), StoredObject::Claim::kClaimed);
    const auto generation = object_.FinishWrite(block, sums, 1);
    EXPECT_TRUE(object_.IsComplete());
    EXPECT_FALSE(object_.MarkLent(MakeLentFile()));
    CheckAll();
    EXPECT_TRUE(object_.IsVerified());
    EXPECT_FALSE(object_.MarkLent(MakeLentFile()));  // not recorded
    EXPECT_NE(object_.MarkRecorded(block, *generation), nullptr);
    object_.ReleaseSums(block, *generation);
  }
  EXPECT_TRUE(object_.MarkLent(MakeLentFile()));
  EXPECT_EQ(object_.DropAll().size(), 6U);
  EXPECT_EQ(object_.PresentBlocks(), 0U);
  EXPECT_FALSE(object_.HasRecorded());
  EXPECT_FALSE(object_.IsVerified());
}

TEST(LentObjectOfNothingTest, IsNeverComplete) {
  const Geometry geometry(kTinyGrid);
  PlacementUsage usage;
  const StoredObject object(geometry, KeyNamed("a"), 0, usage);
  EXPECT_FALSE(object.IsComplete());
  EXPECT_FALSE(object.IsVerified());
}

TEST_F(StoreLendFaultTest, AMarkThatCannotBeCommittedIsNoLoan) {
  Start();
  const auto a = Full("a", 3 * kBlock);
  ASSERT_TRUE(store_->Flush());
  Verify(a);
  {
    const FullIndex full;
    std::vector<std::thread> threads;
    std::atomic<int> loans = 0;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { loans += store_->Lend(a.object) ? 1 : 0; });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(loans, 0);
  }
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kDiskRefuses);
  scheduler_.Advance(options_.bypass_retry);
  ASSERT_TRUE(Put(Object("b", kBlock), 0));
  ASSERT_TRUE(store_->Flush());
  { const FileLoan loan = Lend(a); }
  Crash();
  const auto again = Object("a", a.size);
  FlipBit(PathOf("a"), kBlock, 0);
  EXPECT_EQ(Get(again, 1), Got::kDropped);
  EXPECT_EQ(store_->PresentBlocks(*again.object), 0U);
}

TEST_F(StoreLendFaultTest, AFirstLoanDoesNotWaitForASlowDisk) {
  options_.lend_patience = std::chrono::milliseconds(1);
  Start();
  const auto a = Full("a", 3 * kBlock);
  ASSERT_TRUE(store_->Flush());
  Verify(a);
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kSync ? DiskFault::Kind::kHold
                                                                : DiskFault::Kind::kNone};
  });
  EXPECT_EQ(LendError(a), Code::kBusy);
  EXPECT_TRUE(Eventually([&] { return faulty_->held() > 0; }));
  faulty_->Heal();
  faulty_->Release();
  // It goes on without its asker.
  EXPECT_TRUE(Eventually([&] { return static_cast<bool>(store_->Lend(a.object)); }));
}

TEST_F(StoreLendFaultTest, NoFirstLoanWhileTheDiskRefusesOrIsSlow) {
  Start();
  const auto a = Full("a", 3 * kBlock);
  const auto b = Full("b", 3 * kBlock);
  { const FileLoan loan = Lend(b); }
  Verify(a);
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kReady);
  const auto expect_refused = [&] {
    EXPECT_EQ(store_->Lendable(*a.object), LendState::kDiskRefuses);
    EXPECT_EQ(LendError(a), Code::kBusy);
    // No disk is needed for what was lent before.
    EXPECT_EQ(store_->Lendable(*b.object), LendState::kReady);
    EXPECT_TRUE(store_->Lend(b.object));
  };
  store_->SetBypass(true);
  expect_refused();
  store_->SetBypass(false);
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kReady);
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kWrite ? DiskFault::Kind::kHold
                                                                 : DiskFault::Kind::kNone};
  });
  const auto c = Object("c", kBlock);
  std::promise<Status> written;
  store_->Write(c.object, 0, ToBuffer(BytesOf("c", 0, kBlock)),
                [&](Status status) { written.set_value(std::move(status)); });
  ASSERT_TRUE(Eventually([&] { return faulty_->held() == 1; }));
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kReady);
  scheduler_.Advance(options_.lend_patience + std::chrono::milliseconds(1));
  EXPECT_FALSE(store_->Stats().bypass);
  expect_refused();
  faulty_->Heal();
  faulty_->Release();
  EXPECT_TRUE(written.get_future().get());
  EXPECT_TRUE(store_->Lend(a.object));
}

TEST_F(StoreLendFaultTest, SmallObjectsAreNotLent) {
  options_.least_lent_bytes = 2 * kBlock;
  Start();
  const auto small = Full("small", 2 * kBlock - 1);
  Verify(small);
  EXPECT_EQ(store_->Lendable(*small.object), LendState::kNotPossible);
  EXPECT_EQ(LendError(small), Code::kUnsupported);
  const auto large = Full("large", 2 * kBlock);
  EXPECT_TRUE(Lend(large));
}

TEST_F(StoreLendFaultTest, ALoanTellsThatItsFileIsBroken) {
  Start();
  const auto a = Full("a", 3 * kBlock);
  const auto b = Full("b", 3 * kBlock);
  { const FileLoan marked = Lend(a); }
  Restart();
  const auto again = Object("a", a.size);
  FileLoan first = Lend(again);
  // Under a run of the store that has checked all of it, only an unreadable block is found.
  EXPECT_FALSE(first.broken());
  FileLoan second = std::move(first);
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kRead ? DiskFault::Kind::kFail
                                                                : DiskFault::Kind::kNone};
  });
  BlockPin pin = store_->Pin(again.object, 1);
  std::vector<std::byte> got(kBlock);
  EXPECT_FALSE(Await([&](IoDone done) { store_->Read(std::move(pin), 0, got, std::move(done)); }));
  faulty_->Heal();
  EXPECT_TRUE(second.broken());
  EXPECT_FALSE(first.broken());  // moved from
  EXPECT_TRUE(Eventually([&] { return Put(again, 0).has_value(); }));
  PutAll(again);
  // Of the new file, the loan is whole; the old one's stays as it is.
  const FileLoan third = Lend(again);
  EXPECT_FALSE(third.broken());
  EXPECT_TRUE(second.broken());
  // What is dropped as its bytes are not the object's.
  const FileLoan of_b = Lend(Object("b", b.size));
  ASSERT_TRUE(store_->DropObject(Object("b", b.size).object));
  EXPECT_TRUE(of_b.broken());
  EXPECT_FALSE(third.broken());
  // Eviction, a rekey and the end of the store say nothing against it.
  ASSERT_TRUE(store_->Rekey(again.object, KeyNamed("c"), MetaNamed("c", a.size)));
  Stop();
  EXPECT_FALSE(third.broken());
}

TEST_F(StoreLendFaultTest, APinnedObjectThatWasLentIsKeptAgain) {
  const uint64_t size = 3 * kTinyGrid.chunk_size;  // 4 blocks each
  for (const uint64_t refilled : {0, 1, 5, 12}) {
    SCOPED_TRACE(refilled);
    Start();
    const auto a = Full("a", size);
    ASSERT_TRUE(store_->SetPinned(a.object, true));
    { const FileLoan loan = Lend(a); }
    Restart();
    auto again = Object("a", size);
    FlipBit(PathOf("a"), kBlock, 0);
    EXPECT_EQ(Get(again, 1), Got::kDropped);
    ASSERT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("a")); }));
    // From the end, so that the first chunk comes last.
    for (uint64_t i = 0; i < refilled; ++i) {
      ASSERT_TRUE(Eventually([&] { return Put(again, 11 - i).has_value(); }));
    }
    ASSERT_TRUE(store_->Flush());
    for (int run = 0; run < 2; ++run) {
      again.object.reset();
      Restart();
      again = Object("a", size);
      EXPECT_TRUE(store_->IsPinned(*again.object));
      EXPECT_EQ(CountHits(again), refilled);
    }
    ASSERT_TRUE(Eventually([&] { return Put(again, 0).has_value(); }));
    PutAll(again);
    EXPECT_EQ(CountHits(again), 12U);
    again.object.reset();
    Restart();
    again = Object("a", size);
    EXPECT_EQ(CountHits(again), 12U);
    ASSERT_TRUE(store_->SetPinned(again.object, false));
    ASSERT_TRUE(store_->DropObject(again.object));
    again.object.reset();
    Stop();
  }
}

// What a kill leaves between the drop of all blocks and the end of the name.
TEST_F(StoreLendFaultTest, APinnedLentFileWithoutBlocksGoesAtTheStart) {
  Start();
  const auto a = Full("a", 3 * kBlock);
  ASSERT_TRUE(store_->SetPinned(a.object, true));
  { const FileLoan loan = Lend(a); }
  const BlockPin keeps = store_->Pin(a.object, 0);  // the name stays meanwhile
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kRead ? DiskFault::Kind::kFail
                                                                : DiskFault::Kind::kNone};
  });
  BlockPin pin = store_->Pin(a.object, 1);
  std::vector<std::byte> got(kBlock);
  EXPECT_FALSE(Await([&](IoDone done) { store_->Read(std::move(pin), 0, got, std::move(done)); }));
  faulty_->Heal();
  ASSERT_TRUE(store_->Flush());
  ASSERT_TRUE(std::filesystem::exists(PathOf("a")));
  const std::string before = options_.dir;
  CopyDirectory(root_ + "/killed");
  options_.dir = root_ + "/killed";
  auto killed = Store::Open(options_, *faulty_, scheduler_);
  ASSERT_TRUE(killed);
  const UniqueFd kernels(::open(PathOf("a").c_str(), O_RDONLY | O_CLOEXEC));
  killed->swap(store_);
  auto again = Object("a", a.size);
  EXPECT_TRUE(store_->IsPinned(*again.object));
  ASSERT_TRUE(Eventually([&] { return Put(again, 0).has_value(); }));
  PutAll(again);
  EXPECT_EQ(CountHits(again), 3U);
  if (kernels.valid()) {
    struct stat st = {};
    ASSERT_EQ(::fstat(kernels.get(), &st), 0);
    EXPECT_NE(InodeOf("a"), st.st_ino);
  }
  again.object.reset();
  Restart();
  EXPECT_EQ(CountHits(Object("a", a.size)), 3U);
}

TEST_F(StoreLendFaultTest, APinThatFollowsAFailedDropStays) {
  Start();
  PutAll(Object("a", 2 * kBlock));
  ASSERT_TRUE(store_->Flush());
  {
    const FullIndex full;
    EXPECT_FALSE(store_->DropObject(Object("a", 2 * kBlock).object));
  }
  scheduler_.Advance(options_.bypass_retry);
  ASSERT_TRUE(store_->SetPinned(Object("a", 2 * kBlock).object, true));
  PutAll(Object("b", kBlock));
  ASSERT_TRUE(store_->Flush());
  Restart();
  const auto a = Object("a", 2 * kBlock);
  EXPECT_TRUE(store_->IsPinned(*a.object));
  EXPECT_EQ(CountHits(a), 0U);
}

TEST_F(StoreLendFaultTest, AnUnpinnedObjectStaysUnpinned) {
  const uint64_t size = 2 * kTinyGrid.chunk_size;
  Start();
  const auto a = Full("a", size);
  ASSERT_TRUE(store_->SetPinned(a.object, true));
  Restart();
  auto again = Object("a", size);
  // All blocks of the second chunk go, while it is pinned.
  for (uint64_t block = 4; block < 8; ++block) {
    FlipBit(PathOf("a"), block * kBlock, 0);
    EXPECT_EQ(Get(again, block), Got::kDropped);
  }
  ASSERT_TRUE(store_->Flush());
  ASSERT_TRUE(store_->SetPinned(again.object, false));
  again.object.reset();
  Restart();
  EXPECT_FALSE(store_->IsPinned(*Object("a", size).object));
}

}  // namespace
}  // namespace dartfs::core
