// Lent files: complete, checked, marked durably, and from then on never changed, only unlinked.
#include <fcntl.h>

#include <filesystem>

#include "core/store/store_lend_fixture.h"

namespace dartfs::core {
namespace {

using StoreLendTest = StoreLendFixture;

TEST_F(StoreLendTest, OnlyWhatIsCompleteAndCheckedIsLent) {
  Start();
  const auto a = Object("a", 4 * kBlock + kTail);
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kIncomplete);
  EXPECT_EQ(LendError(a), Code::kBusy);
  PutAll(a);
  // What was just written has not been read back.
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kUnverified);
  EXPECT_EQ(LendError(a), Code::kBusy);
  const VerifyReport report = Verify(a);
  EXPECT_TRUE(report.verified);
  EXPECT_EQ(report.checked_bytes, a.size);
  EXPECT_EQ(report.bad_granules, 0U);
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kReady);
  FileLoan loan = Lend(a);
  EXPECT_TRUE(HasAll(loan.fd(), a));
  EXPECT_EQ(CountHits(a), 5U);
}

TEST_F(StoreLendTest, ReadsOfAllOfItCountAsCheck) {
  Start();
  const auto a = Full("a", 2 * kBlock);
  EXPECT_EQ(CountHits(a), 2U);
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kReady);
  EXPECT_EQ(Verify(a).checked_bytes, 0U);
  EXPECT_EQ(GetPart(a, 0, 0, 1), Got::kHit);
  Restart();
  const auto again = Object("a", a.size);
  EXPECT_EQ(store_->Lendable(*again.object), LendState::kUnverified);
  EXPECT_EQ(Get(again, 0), Got::kHit);
  EXPECT_EQ(Verify(again).checked_bytes, kBlock);
}

TEST_F(StoreLendTest, WithoutAVersionNeverLent) {
  Start();
  ObjectMeta meta = MetaNamed("v", kBlock);
  meta.volatile_version = true;
  const Held held = {"v", kBlock, store_->OpenObject(KeyNamed("v"), meta).value()};
  PutAll(held);
  EXPECT_TRUE(Verify(held).verified);
  EXPECT_EQ(store_->Lendable(*held.object), LendState::kNotPossible);
  EXPECT_EQ(LendError(held), Code::kUnsupported);
}

TEST_F(StoreLendTest, VerifyEndsWhenToldAndGoesOnLater) {
  Start();
  const auto a = Full("a", 4 * kBlock);
  int asked = 0;
  auto report = store_->Verify(a.object, [&] { return ++asked < 3; });
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->verified);
  EXPECT_EQ(report->checked_bytes, 2 * kBlock);
  EXPECT_EQ(Verify(a).checked_bytes, 2 * kBlock);
}

TEST_F(StoreLendTest, VerifyDropsWhatIsDamaged) {
  Start();
  const auto a = Full("a", 3 * kBlock);
  ASSERT_TRUE(store_->Flush());
  FlipBit(PathOf("a"), kBlock + 7, 3);
  const VerifyReport report = Verify(a);
  EXPECT_FALSE(report.verified);
  EXPECT_EQ(report.bad_granules, 1U);
  EXPECT_EQ(store_->Stats().corrupt_granules, 1U);
  EXPECT_EQ(store_->PresentBlocks(*a.object), 2U);
  ASSERT_TRUE(Put(a, 1));
  EXPECT_TRUE(Verify(a).verified);
}

TEST_F(StoreLendTest, VerifyPassesThePageCacheBy) {
  Start();
  const auto a = Full("a", 4 * kBlock);
  ASSERT_TRUE(store_->Flush());
  std::vector<int> flags;
  faulty_->SetChoose([&](const DiskCall& call) {
    if (call.kind == DiskCall::Kind::kRead) flags.push_back(::fcntl(call.fd, F_GETFL));
    return DiskFault();
  });
  EXPECT_TRUE(Verify(a).verified);
  faulty_->Heal();
  ASSERT_EQ(flags.size(), 4U);
  for (const int each : flags) EXPECT_NE(each & O_DIRECT, 0);
}

TEST_F(StoreLendTest, ADiskThatCannotReadItIsNoLoan) {
  Start();
  const auto a = Full("a", 3 * kBlock);
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kRead && call.offset == kBlock
                                 ? DiskFault::Kind::kFail
                                 : DiskFault::Kind::kNone};
  });
  EXPECT_FALSE(Verify(a).verified);
  faulty_->Heal();
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kIncomplete);
}

TEST_F(StoreLendTest, WritesThatTheDiskDroppedAreNotLent) {
  Start();
  faulty_->SetChoose([](const DiskCall& call) {
    const bool hit = call.kind == DiskCall::Kind::kWrite && call.offset == 2 * kBlock;
    return DiskFault{.kind = hit ? DiskFault::Kind::kDrop : DiskFault::Kind::kNone};
  });
  const auto a = Full("a", 4 * kBlock);
  faulty_->Heal();
  EXPECT_EQ(Verify(a).bad_granules, kBlock / kTinyGrid.granule_size);
  EXPECT_EQ(store_->Lendable(*a.object), LendState::kIncomplete);
}

TEST_F(StoreLendTest, AFailedSyncIsNoLoan) {
  Start();
  const auto a = Full("a", 2 * kBlock);
  ASSERT_TRUE(store_->Flush());
  Verify(a);
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kSync ? DiskFault::Kind::kFail
                                                                : DiskFault::Kind::kNone};
  });
  EXPECT_EQ(LendError(a), Code::kIo);
  faulty_->Heal();
  EXPECT_TRUE(store_->Lend(a.object));
}

TEST_F(StoreLendTest, LoansPinAndTheirSumIsBounded) {
  options_.limit_bytes = 16 * kBlock;
  Start();
  const auto a = Full("a", 5 * kBlock);
  const auto b = Full("b", 4 * kBlock);
  FileLoan first = Lend(a);
  Verify(b);
  EXPECT_EQ(store_->Lendable(*b.object), LendState::kTooMuchLent);
  EXPECT_EQ(LendError(b), Code::kBusy);
  // Of the same file once more costs nothing.
  FileLoan second = Lend(a);
  first = FileLoan();
  EXPECT_EQ(store_->Lendable(*b.object), LendState::kTooMuchLent);
  for (int i = 0; i < 6; ++i) {
    scheduler_.Advance(std::chrono::milliseconds(5));
    Full("filler" + std::to_string(i), 4 * kBlock);
  }
  EXPECT_EQ(CountHits(a), 5U);
  EXPECT_TRUE(HasAll(second.fd(), a));
  second = FileLoan();
  const auto c = Full("c", 4 * kBlock);
  Verify(c);
  EXPECT_EQ(store_->Lendable(*c.object), LendState::kReady);
}

TEST_F(StoreLendTest, EvictedAsOneAndOnlyUnlinked) {
  options_.limit_bytes = 16 * kBlock;
  Start();
  const auto a = Full("a", 6 * kBlock + kTail);
  FileLoan loan = Lend(a);
  const UniqueFd kernels = KernelsOwn(loan);
  loan = FileLoan();
  for (int i = 0; i < 4; ++i) {
    scheduler_.Advance(std::chrono::milliseconds(5));
    Full("filler" + std::to_string(i), 4 * kBlock);
  }
  EXPECT_EQ(store_->PresentBlocks(*a.object), 0U);
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("a")); }));
  EXPECT_TRUE(HasAll(kernels.get(), a));
  // Filled again, by who has had it open all the time, through another file.
  PutAll(a);
  EXPECT_EQ(CountHits(a), 7U);
  EXPECT_TRUE(HasAll(kernels.get(), a));
  EXPECT_NE(InodeOf("a"), 0U);
  struct stat st = {};
  ASSERT_EQ(::fstat(kernels.get(), &st), 0);
  EXPECT_NE(InodeOf("a"), st.st_ino);
}

TEST_F(StoreLendTest, AReaderKeepsItUntilItHasRead) {
  options_.limit_bytes = 16 * kBlock;
  Start();
  const auto a = Full("a", 6 * kBlock);
  FileLoan loan = Lend(a);
  loan = FileLoan();
  BlockPin pin = store_->Pin(a.object, 2);
  for (int i = 0; i < 4; ++i) {
    scheduler_.Advance(std::chrono::milliseconds(5));
    Full("filler" + std::to_string(i), 4 * kBlock);
  }
  // One pinned block keeps all of a lent file.
  EXPECT_EQ(store_->PresentBlocks(*a.object), 6U);
}

TEST_F(StoreLendTest, AfterAKillItIsStillOnlyUnlinked) {
  options_.limit_bytes = 16 * kBlock;
  Start();
  auto a = Full("a", 6 * kBlock);
  { const FileLoan loan = Lend(a); }
  const auto b = Full("b", 3 * kBlock);
  ASSERT_TRUE(store_->Flush());
  Crash();
  const UniqueFd kernels(::open(PathOf("a").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(HasAll(kernels.get(), a));
  a = Object("a", a.size);
  EXPECT_EQ(CountHits(a), 6U);
  for (int i = 0; i < 5; ++i) {
    scheduler_.Advance(std::chrono::milliseconds(5));
    Full("filler" + std::to_string(i), 4 * kBlock);
  }
  EXPECT_EQ(store_->PresentBlocks(*a.object), 0U);
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("a")); }));
  EXPECT_TRUE(HasAll(kernels.get(), a));
}

TEST_F(StoreLendTest, KilledBeforeTheLoanItIsLentAllTheSame) {
  Start();
  auto a = Full("a", 3 * kBlock);
  { const FileLoan loan = Lend(a); }  // the mark is durable before the loan is given
  Crash();
  a = Object("a", a.size);
  const UniqueFd kernels(::open(PathOf("a").c_str(), O_RDONLY | O_CLOEXEC));
  FlipBit(PathOf("a"), kBlock + 5, 1);
  EXPECT_EQ(Get(a, 1), Got::kDropped);
  // One damaged block, and all of it goes: what the others read stays as it is.
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("a")); }));
  EXPECT_EQ(store_->PresentBlocks(*a.object), 0U);
  std::vector<std::byte> got(kBlock);
  ASSERT_EQ(::pread(kernels.get(), got.data(), got.size(), 0), static_cast<ssize_t>(got.size()));
  EXPECT_EQ(got, BytesOf("a", 0, kBlock));
  ASSERT_TRUE(Eventually([&] { return Put(a, 0).has_value(); }));
  PutAll(a);
  EXPECT_EQ(CountHits(a), 3U);
  EXPECT_EQ(store_->Stats().used_bytes, 3 * kBlock);
}

TEST_F(StoreLendTest, DamagedWhileItIsLent) {
  Start();
  const auto a = Full("a", 4 * kBlock);
  Restart();
  const auto again = Object("a", a.size);
  FileLoan loan = Lend(again);
  Stop();
  Start();
  const auto third = Object("a", a.size);
  FlipBit(PathOf("a"), 2 * kBlock, 0);
  const VerifyReport report = Verify(third);
  EXPECT_EQ(report.bad_granules, 1U);
  EXPECT_EQ(store_->PresentBlocks(*third.object), 0U);
}

TEST_F(StoreLendTest, BytesOfALoanCountUntilItEnds) {
  Start();
  const auto a = Full("a", 4 * kBlock);
  FileLoan loan = Lend(a);
  ASSERT_TRUE(store_->DropObject(a.object));
  EXPECT_FALSE(std::filesystem::exists(PathOf("a")));
  EXPECT_TRUE(HasAll(loan.fd(), a));
  EXPECT_EQ(store_->Stats().used_bytes, 4 * kBlock);
  loan = FileLoan();
  EXPECT_EQ(store_->Stats().used_bytes, 0U);
  // Under the same key, another object with another file.
  const auto again = Full("a", 4 * kBlock);
  EXPECT_EQ(CountHits(again), 4U);
}

TEST_F(StoreLendTest, ALoanMayOutliveTheStore) {
  Start();
  auto a = Full("a", 4 * kBlock);
  FileLoan loan = Lend(a);
  a.object.reset();
  Stop();
  EXPECT_TRUE(HasAll(loan.fd(), a));
  loan.CloseFd();
  EXPECT_EQ(loan.fd(), -1);
  EXPECT_TRUE(static_cast<bool>(loan));
}

TEST_F(StoreLendTest, RekeyKeepsTheMark) {
  Start();
  const auto a = Full("a", 2 * kBlock);
  { const FileLoan loan = Lend(a); }
  ASSERT_TRUE(store_->Rekey(a.object, KeyNamed("b"), MetaNamed("b", a.size)));
  Crash();
  const Held b = {"a", a.size, store_->OpenObject(KeyNamed("b"), MetaNamed("b", a.size)).value()};
  const UniqueFd kernels(::open(PathOf("b").c_str(), O_RDONLY | O_CLOEXEC));
  FlipBit(PathOf("b"), 1, 1);
  EXPECT_EQ(Get(b, 0), Got::kDropped);
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(PathOf("b")); }));
  std::vector<std::byte> got(kBlock);
  ASSERT_EQ(::pread(kernels.get(), got.data(), got.size(), kBlock), ssize_t{kBlock});
  EXPECT_EQ(got, BytesOf("a", 1, kBlock));
}

// The file system's last words on a lent file, whatever happens to it: as long and as full as ever.
TEST_F(StoreLendTest, NothingIsWrittenToAFileThatWasLent) {
  options_.limit_bytes = 24 * kBlock;
  Start();
  SeededRandom random(TestSeed());
  std::vector<std::pair<UniqueFd, Held>> kernels;
  std::vector<FileLoan> loans;
  int lent_files = 0;
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    scheduler_.Advance(std::chrono::milliseconds(1 + random.Below(50)));
    const auto held =
        Object("o" + std::to_string(random.Below(8)), (1 + random.Below(2)) * 2 * kBlock);
    switch (random.Below(7)) {
      case 0:
        if (store_->DropObject(held.object)) continue;
        break;
      case 1:
        if (!loans.empty()) loans.erase(loans.begin());
        break;
      case 2:
        (void)Put(held, random.Below(2));
        break;
      case 3:
        if (random.Below(4) == 0) {
          loans.clear();
          Crash();
          kernels.clear();  // the copy has other files
        }
        break;
      default: {
        for (uint64_t block = 0; block < options_.grid.BlockCount(held.size); ++block) {
          (void)Put(held, block);
        }
        Verify(held);
        auto loan = store_->Lend(held.object);
        if (!loan) break;
        kernels.emplace_back(KernelsOwn(*loan), Held{held.name, held.size, nullptr});
        loans.push_back(*std::move(loan));
        ++lent_files;
        if (kernels.size() > 40) kernels.erase(kernels.begin());
      }
    }
    for (const auto& [fd, lent] : kernels) ASSERT_TRUE(HasAll(fd.get(), lent)) << "step " << i;
  }
  loans.clear();
  EXPECT_GT(lent_files, 10);
}

// As a killed process leaves it whose file was lent and whose records are gone: the kernel may
// still read it.
TEST_F(StoreLendTest, AFileThatTheIndexDoesNotKnowIsNeverWritten) {
  Start();
  const Held held = Object("a", 2 * kBlock);
  std::filesystem::create_directories(std::filesystem::path(PathOf("a")).parent_path());
  const std::string old(2 * kBlock, 'o');
  const UniqueFd kernels(::open(PathOf("a").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
  ASSERT_EQ(::write(kernels.get(), old.data(), old.size()), static_cast<ssize_t>(old.size()));
  PutAll(held);
  std::string now(old.size(), '\0');
  ASSERT_EQ(::pread(kernels.get(), now.data(), now.size(), 0), static_cast<ssize_t>(now.size()));
  EXPECT_TRUE(now == old);
  EXPECT_EQ(CountHits(held), 2U);
}

}  // namespace
}  // namespace dartfs::core
