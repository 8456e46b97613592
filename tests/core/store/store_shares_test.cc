// Whole-object eviction, the operator's wishes (evict, pin, bypass), shares of owned and borrowed
// blocks, admission of relayed ones: the pure rules against models, then the store as a whole.
#include <csignal>
#include <list>
#include <numeric>

#include "core/store/frequency_sketch.h"
#include "core/store/placement_shares.h"
#include "core/store/store_fixture.h"
#include "core/store/write_watch.h"

namespace dartfs::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kBlock = kTinyGrid.block_size;
constexpr uint64_t kBlocksPerChunk = kTinyGrid.chunk_size / kTinyGrid.block_size;

// ---- PlacementShares ----

// A cache of unit-sized blocks, evicted by the rule, least recently used within a kind.
class SharesModel {
 public:
  explicit SharesModel(uint64_t limit) : limit_(limit), shares_(limit, 0.8) {}

  // False where no room could be made.
  bool Add(Placement placement) {
    while (used(Placement::kOwned) + used(Placement::kBorrowed) + 1 > limit_) {
      Pressure pressure = {
          .to_free = used(Placement::kOwned) + used(Placement::kBorrowed) + 1 - limit_,
          .incoming = placement,
          .incoming_bytes = 1};
      if (!EvictOne(pressure)) return false;
    }
    times_[IndexOf(placement)].push_back(++now_);
    return true;
  }
  bool EvictOne(const Pressure& pressure) {
    using Turn = PlacementShares::Turn;
    for (const Turn turn : {Turn::kFirst, Turn::kAfter}) {
      std::list<uint64_t>* oldest = nullptr;
      for (const Placement each : {Placement::kOwned, Placement::kBorrowed}) {
        auto& times = times_[IndexOf(each)];
        if (times.empty() ||
            shares_.TurnOf(each, {times_[0].size(), times_[1].size()}, pressure) != turn) {
          continue;
        }
        if (oldest == nullptr || times.front() < oldest->front()) oldest = &times;
      }
      if (oldest == nullptr) continue;
      oldest->pop_front();
      return true;
    }
    return false;
  }
  uint64_t used(Placement placement) const { return times_[IndexOf(placement)].size(); }

 private:
  const uint64_t limit_;
  const PlacementShares shares_;
  std::array<std::list<uint64_t>, kPlacements> times_;
  uint64_t now_ = 0;
};

TEST(PlacementSharesTest, EachMayUseWhatTheOtherLeavesFree) {
  for (const Placement alone : {Placement::kOwned, Placement::kBorrowed}) {
    SharesModel model(100);
    for (int i = 0; i < 250; ++i) ASSERT_TRUE(model.Add(alone));
    EXPECT_EQ(model.used(alone), 100U);
  }
}

TEST(PlacementSharesTest, WhatExceedsItsShareGivesWay) {
  SharesModel model(100);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(model.Add(Placement::kBorrowed));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(model.Add(Placement::kOwned));
  EXPECT_EQ(model.used(Placement::kBorrowed), 20U);
  EXPECT_EQ(model.used(Placement::kOwned), 80U);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(model.Add(Placement::kBorrowed));
  EXPECT_EQ(model.used(Placement::kOwned), 80U);
}

TEST(PlacementSharesTest, WhateverComesNeitherPushesTheOtherBelowItsShare) {
  SeededRandom random(TestSeed());
  SharesModel model(100);
  double bias = 0.5;
  for (int i = 0; i < 20'000; ++i) {
    if (i % 500 == 0) bias = static_cast<double>(random.Below(100)) / 100;
    const bool owned = static_cast<double>(random.Below(1000)) / 1000 < bias;
    const uint64_t owned_before = model.used(Placement::kOwned);
    const uint64_t borrowed_before = model.used(Placement::kBorrowed);
    ASSERT_TRUE(model.Add(owned ? Placement::kOwned : Placement::kBorrowed));
    const uint64_t owned_floor = owned ? 0 : std::min<uint64_t>(owned_before, 80);
    const uint64_t borrowed_floor = owned ? std::min<uint64_t>(borrowed_before, 20) : 0;
    ASSERT_GE(model.used(Placement::kOwned), owned_floor);
    ASSERT_GE(model.used(Placement::kBorrowed), borrowed_floor);
    ASSERT_LE(model.used(Placement::kOwned) + model.used(Placement::kBorrowed), 100U);
  }
}

TEST(PlacementSharesTest, WhenTheDiskNeedsItBothGiveByTheirShares) {
  SharesModel model(100);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(model.Add(Placement::kBorrowed));
  for (int i = 0; i < 80; ++i) ASSERT_TRUE(model.Add(Placement::kOwned));
  for (int left = 50; left > 0; --left) {
    ASSERT_TRUE(model.EvictOne({.to_free = static_cast<uint64_t>(left), .incoming = {}}));
  }
  EXPECT_NEAR(static_cast<double>(model.used(Placement::kOwned)), 40, 1);
  EXPECT_NEAR(static_cast<double>(model.used(Placement::kBorrowed)), 10, 1);
  while (model.EvictOne({.to_free = 1, .incoming = {}})) {
  }
  EXPECT_EQ(model.used(Placement::kOwned) + model.used(Placement::kBorrowed), 0U);
}

// ---- FrequencySketch ----

uint64_t HashNumber(uint64_t number) { return Xxh3(std::to_string(number)); }

TEST(FrequencySketchTest, NeverBelowTheCountAndSeldomFarAbove) {
  FrequencySketch sketch(1000);
  SeededRandom random(TestSeed());
  std::vector<int> counts(1000);
  for (int i = 0; i < 6000; ++i) {
    const uint64_t which = std::min(random.Below(1000), random.Below(1000));
    ++counts[which];
    sketch.Add(HashNumber(which));
  }
  int wrong = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int expected = std::min<int>(counts[i], FrequencySketch::kMaxCount);
    const int got = sketch.Estimate(HashNumber(i));
    EXPECT_GE(got, expected);
    wrong += got > expected + 1 ? 1 : 0;
  }
  EXPECT_LT(wrong, 20);
}

TEST(FrequencySketchTest, WhatWasPopularOnceIsForgotten) {
  FrequencySketch sketch(100);
  for (int i = 0; i < 20; ++i) sketch.Add(HashNumber(1));
  EXPECT_EQ(sketch.Estimate(HashNumber(1)), FrequencySketch::kMaxCount);
  for (uint64_t i = 0; i < 20'000; ++i) sketch.Add(HashNumber(100 + i % 100));
  EXPECT_LT(sketch.Estimate(HashNumber(1)), 5);
  EXPECT_GE(sketch.Estimate(HashNumber(100)), 5);
}

// Of a skewed load, kept by this rule, more is found than by taking in everything.
TEST(FrequencySketchTest, AdmissionKeepsWhatIsAskedForOften) {
  const auto hits_with = [](bool filtered) {
    SeededRandom random(17);
    FrequencySketch sketch(500);
    std::list<uint64_t> lru;
    int hits = 0;
    for (int i = 0; i < 20'000; ++i) {
      // Half of it a small hot set, half a scan that never comes back.
      const uint64_t which = random.Below(2) == 0 ? random.Below(60) : uint64_t{1000} + i;
      sketch.Add(HashNumber(which));
      const auto at = std::find(lru.begin(), lru.end(), which);
      if (at != lru.end()) {
        ++hits;
        lru.splice(lru.end(), lru, at);
        continue;
      }
      if (lru.size() == 64) {
        const bool worth =
            sketch.Estimate(HashNumber(which)) > sketch.Estimate(HashNumber(lru.front()));
        if (filtered && !worth) continue;
        lru.pop_front();
      }
      lru.push_back(which);
    }
    return hits;
  };
  EXPECT_GT(hits_with(true), 8500);
  EXPECT_GT(hits_with(true), hits_with(false) * 11 / 10);
}

TEST(WriteWatchTest, TheOldestOneCounts) {
  WriteWatch watch;
  const TimePoint start = TimePoint(seconds(10));
  EXPECT_EQ(watch.OldestAge(start), Duration::zero());
  const uint64_t first = watch.Begin(3, start);
  const uint64_t second = watch.Begin(4, start + seconds(2));
  EXPECT_EQ(watch.bytes(), 7U);
  EXPECT_EQ(watch.OldestAge(start + seconds(5)), seconds(5));
  watch.End(first);
  EXPECT_EQ(watch.OldestAge(start + seconds(5)), seconds(3));
  watch.End(second);
  EXPECT_EQ(watch.count(), 0U);
  EXPECT_EQ(watch.bytes(), 0U);
}

// ---- The store ----

class StoreSharesTest : public StoreFixture {
 protected:
  Held Full(const std::string& name, uint64_t blocks) {
    const Held held = Object(name, blocks * kBlock);
    PutAll(held);
    scheduler_.Advance(milliseconds(5));
    return held;
  }
  Held Placed(const std::string& name, uint64_t blocks, Placement placement) {
    const Held held = Object(name, blocks * kBlock);
    for (uint64_t chunk = 0; chunk <= (blocks - 1) / kBlocksPerChunk; ++chunk) {
      store_->SetPlacement(held.object, chunk, placement);
    }
    PutAll(held);
    scheduler_.Advance(milliseconds(5));
    return held;
  }
  Status PutRelayed(const Held& held, uint64_t block) {
    const uint64_t length = options_.grid.BlockLength(held.size, block);
    return Await([&](IoDone done) {
      store_->Write(held.object, block, ToBuffer(BytesOf(held.name, block, length)),
                    std::move(done), {.relayed = true});
    });
  }
};

TEST_F(StoreSharesTest, ACompleteObjectGoesAsOneByItsNewestChunk) {
  options_.limit_bytes = 40 * kBlock;
  Start();
  const auto a = Full("a", 12);
  const auto b = Full("b", 12);
  const auto part = Object("part", 24 * kBlock);
  for (uint64_t i = 0; i < 12; ++i) ASSERT_TRUE(Put(part, i));
  scheduler_.Advance(milliseconds(5));
  ASSERT_TRUE(store_->Flush());
  EXPECT_EQ(Get(a, 11), Got::kHit);  // one chunk of it is the newest of all now
  scheduler_.Advance(milliseconds(5));
  Full("c", 8);
  EXPECT_EQ(CountHits(a), 12U);
  EXPECT_EQ(store_->PresentBlocks(*b.object), 0U);
  EXPECT_EQ(CountHits(part), 12U);
}

TEST_F(StoreSharesTest, EvictTakesWhatCanGo) {
  Start();
  const auto a = Full("a", 6);
  {
    const BlockPin pin = store_->Pin(a.object, 3);
    EXPECT_EQ(*store_->Evict(a.object), 5 * kBlock);
    EXPECT_EQ(store_->PresentBlocks(*a.object), 1U);
  }
  EXPECT_EQ(Get(a, 3), Got::kHit);
  EXPECT_EQ(*store_->Evict(a.object), kBlock);
  EXPECT_EQ(*store_->Evict(a.object), 0U);
  EXPECT_TRUE(Eventually([&] { return store_->Stats().used_bytes == 0; }));
  PutAll(a);
  EXPECT_EQ(CountHits(a), 6U);
  ASSERT_TRUE(store_->Flush());
  Crash();
  EXPECT_EQ(store_->PresentBlocks(*Object("a", a.size).object), 6U);
  EXPECT_EQ(*store_->Evict(Object("a", a.size).object), 6 * kBlock);
  Crash();
  EXPECT_EQ(store_->PresentBlocks(*Object("a", a.size).object), 0U);
}

TEST_F(StoreSharesTest, EvictLeavesWhatIsOnLoanOrPinned) {
  Start();
  const auto a = Full("a", 3);
  ASSERT_TRUE(store_->Verify(a.object, nullptr));
  auto loan = store_->Lend(a.object);
  ASSERT_TRUE(loan);
  EXPECT_EQ(store_->Stats().lent_bytes, a.size);
  EXPECT_EQ(*store_->Evict(a.object), 0U);
  *loan = FileLoan();
  EXPECT_EQ(*store_->Evict(a.object), 3 * kBlock);
  EXPECT_FALSE(std::filesystem::exists(PathOf("a")));
  const auto b = Full("b", 3);
  ASSERT_TRUE(store_->SetPinned(b.object, true));
  EXPECT_EQ(*store_->Evict(b.object), 0U);
}

TEST_F(StoreSharesTest, APinHoldsOverRestartsAndPressure) {
  options_.limit_bytes = 24 * kBlock;
  Start();
  auto a = Full("a", 6);
  ASSERT_TRUE(store_->SetPinned(a.object, true));
  EXPECT_TRUE(store_->IsPinned(*a.object));
  EXPECT_EQ(store_->Stats().pinned_bytes, a.size);
  Crash();
  a = Object("a", a.size);
  EXPECT_TRUE(store_->IsPinned(*a.object));
  EXPECT_EQ(store_->Stats().pinned_bytes, a.size);
  for (int i = 0; i < 6; ++i) Full("f" + std::to_string(i), 8);
  EXPECT_EQ(CountHits(a), 6U);
  ASSERT_TRUE(store_->SetPinned(a.object, false));
  EXPECT_EQ(store_->Stats().pinned_bytes, 0U);
  scheduler_.Advance(milliseconds(5));
  for (int i = 0; i < 6; ++i) Full("g" + std::to_string(i), 8);
  EXPECT_EQ(store_->PresentBlocks(*a.object), 0U);
  Crash();
  EXPECT_FALSE(store_->IsPinned(*Object("a", a.size).object));
}

TEST_F(StoreSharesTest, APinOfWhatIsNotThereYet) {
  Start();
  auto a = Object("a", 5 * kBlock);
  ASSERT_TRUE(store_->SetPinned(a.object, true));
  a.object.reset();
  ASSERT_TRUE(store_->Flush());
  a = Object("a", 5 * kBlock);
  EXPECT_TRUE(store_->IsPinned(*a.object));
  a.object.reset();
  Crash();
  a = Object("a", 5 * kBlock);
  EXPECT_TRUE(store_->IsPinned(*a.object));
  ASSERT_TRUE(store_->DropObject(a.object));  // ends with it
  EXPECT_EQ(store_->Stats().pinned_bytes, 0U);
  EXPECT_FALSE(store_->IsPinned(*Object("a", 5 * kBlock).object));
  Restart();
  EXPECT_EQ(store_->Stats().pinned_bytes, 0U);
}

TEST_F(StoreSharesTest, PinsLeaveAQuarterToTheRest) {
  options_.limit_bytes = 16 * kBlock;
  Start();
  const auto a = Object("a", 8 * kBlock);
  const auto b = Object("b", 5 * kBlock);
  const auto c = Object("c", 4 * kBlock);
  ASSERT_TRUE(store_->SetPinned(a.object, true));
  ASSERT_TRUE(store_->SetPinned(a.object, true));
  const Status refused = store_->SetPinned(b.object, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooLarge);
  EXPECT_FALSE(store_->IsPinned(*b.object));
  EXPECT_TRUE(store_->SetPinned(c.object, true));
  EXPECT_EQ(store_->Stats().pinned_bytes, 12 * kBlock);
}

TEST_F(StoreSharesTest, APinThatCannotBeRecordedIsNone) {
  Start();
  const auto a = Full("a", 2);
  ASSERT_TRUE(store_->Flush());
  const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  {
    const ScopedLimit limit(RLIMIT_FSIZE, 4096);
    EXPECT_FALSE(store_->SetPinned(a.object, true));
  }
  ::signal(SIGXFSZ, ignored);
  EXPECT_FALSE(store_->IsPinned(*a.object));
  EXPECT_EQ(store_->Stats().pinned_bytes, 0U);
}

TEST_F(StoreSharesTest, TheOperatorsBypass) {
  Start();
  const auto a = Full("a", 2);
  store_->SetBypass(true);
  EXPECT_TRUE(store_->Stats().bypass);
  EXPECT_NE(store_->Stats().bypass_reason.find("operator"), std::string::npos);
  EXPECT_FALSE(Put(Object("b", kBlock), 0));
  scheduler_.Advance(options_.bypass_retry * 10);
  EXPECT_FALSE(Put(Object("b", kBlock), 0));
  EXPECT_EQ(CountHits(a), 2U);
  store_->SetBypass(false);
  EXPECT_FALSE(store_->Stats().bypass);
  EXPECT_TRUE(Put(Object("b", kBlock), 0));
}

TEST_F(StoreSharesTest, BorrowedBlocksNeverPushOutOwnedOnesWithinTheirShare) {
  options_.limit_bytes = 80 * kBlock;
  Start();
  std::vector<Held> owned;
  for (int i = 0; i < 15; ++i) {
    owned.push_back(Placed("o" + std::to_string(i), 4, Placement::kOwned));
  }
  for (int i = 0; i < 30; ++i) Placed("b" + std::to_string(i), 4, Placement::kBorrowed);
  for (const auto& held : owned) EXPECT_EQ(CountHits(held), 4U) << held.name;
  StoreStats stats = store_->Stats();
  EXPECT_EQ(stats.owned_bytes, 60 * kBlock);
  EXPECT_LE(stats.borrowed_bytes, 20 * kBlock);
  EXPECT_GE(stats.borrowed_bytes, 12 * kBlock);
  // And what was owned takes back what is its own.
  for (int i = 0; i < 15; ++i) Placed("p" + std::to_string(i), 4, Placement::kOwned);
  stats = store_->Stats();
  EXPECT_LE(stats.borrowed_bytes, 16 * kBlock);
  EXPECT_GE(stats.borrowed_bytes, 12 * kBlock);
}

TEST_F(StoreSharesTest, PlacementsOutliveTheRun) {
  Start();
  const auto a = Object("a", 3 * kTinyGrid.chunk_size);
  PutAll(a);
  store_->SetPlacement(a.object, 1, Placement::kBorrowed);
  const uint64_t blocks = kTinyGrid.chunk_size / kTinyGrid.block_size;
  const auto check = [&] {
    const StoreStats stats = store_->Stats();
    EXPECT_EQ(stats.borrowed_bytes, kTinyGrid.chunk_size);
    EXPECT_EQ(stats.owned_bytes, 2 * kTinyGrid.chunk_size);
    EXPECT_EQ(stats.borrowed_blocks, blocks);
    EXPECT_EQ(stats.owned_blocks, 2 * blocks);
  };
  check();
  Restart();
  check();
  ASSERT_TRUE(store_->DropObject(Object("a", a.size).object));
  EXPECT_EQ(store_->Stats().borrowed_bytes + store_->Stats().owned_bytes, 0U);
  EXPECT_EQ(store_->Stats().borrowed_blocks + store_->Stats().owned_blocks, 0U);
}

TEST_F(StoreSharesTest, RelayedBlocksMustBeWorthItOnceSpaceIsShort) {
  options_.limit_bytes = 64 * kBlock;
  Start();
  // While there is room, all are kept.
  const auto hot = Object("hot", 60 * kBlock);
  for (uint64_t i = 0; i < 56; ++i) ASSERT_TRUE(PutRelayed(hot, i));
  for (int again = 0; again < 4; ++again) {
    scheduler_.Advance(seconds(1));
    for (uint64_t i = 0; i < 56; ++i) EXPECT_EQ(Get(hot, i), Got::kHit);
  }
  // The node's own readers are always served; this makes it evict once, so that it knows a victim.
  scheduler_.Advance(milliseconds(5));
  const auto own = Full("own", 12);
  EXPECT_EQ(CountHits(own), 12U);
  const auto scan = Object("scan", 400 * kBlock);
  int kept = 0;
  for (uint64_t i = 0; i < 400; i += kBlocksPerChunk) kept += PutRelayed(scan, i) ? 1 : 0;
  EXPECT_LE(kept, 8);
  EXPECT_GE(store_->Stats().not_admitted_blocks, 90U);
  EXPECT_FALSE(store_->Stats().bypass);
  // Asked for again and again, it is kept after all.
  bool at_last = false;
  for (int i = 0; i < 10 && !at_last; ++i) {
    EXPECT_FALSE(PutRelayed(scan, 396));  // of the same second
    scheduler_.Advance(seconds(1));
    at_last = PutRelayed(scan, 396).has_value();
  }
  EXPECT_TRUE(at_last);
  EXPECT_TRUE(Put(scan, 200));
}

// ---- A slow disk ----

TEST_F(StoreSharesTest, WritesThatHangMeanBypassAndStallNobody) {
  Start();
  const auto a = Full("a", 2);
  faulty_->SetChoose([](const DiskCall& call) {
    return DiskFault{.kind = call.kind == DiskCall::Kind::kWrite ? DiskFault::Kind::kHold
                                                                 : DiskFault::Kind::kNone};
  });
  const auto b = Object("b", 400 * kBlock);
  std::atomic<int> refused = 0;
  std::atomic<int> kept = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    store_->Write(b.object, i, ToBuffer(BytesOf("b", i, kBlock)),
                  [&](Status status) { ++(status ? kept : refused); });
  }
  EXPECT_TRUE(Eventually([&] { return faulty_->held() == 128; }));
  EXPECT_FALSE(store_->Stats().bypass);
  scheduler_.Advance(options_.slow_write + milliseconds(1));
  // What waits gives its memory back; what the disk has, can't.
  EXPECT_TRUE(Eventually([&] { return refused == 400 - 128; })) << refused;
  EXPECT_TRUE(store_->Stats().bypass);
  EXPECT_EQ(CountHits(a), 2U);
  // No try while those hang.
  scheduler_.Advance(options_.bypass_retry * 3);
  EXPECT_FALSE(Put(Object("c", kBlock), 0));
  EXPECT_EQ(faulty_->held(), 128U);
  // It answers: the late ones are kept, and the next try ends it.
  faulty_->Heal();
  faulty_->Release();
  EXPECT_TRUE(Eventually([&] { return kept == 128; }));
  EXPECT_TRUE(store_->Stats().bypass);
  EXPECT_TRUE(Eventually([&] {
    scheduler_.Advance(options_.bypass_retry);
    return Put(Object("c", kBlock), 0).has_value();
  }));
  EXPECT_TRUE(Eventually([&] { return !store_->Stats().bypass; }));
  EXPECT_EQ(CountHits(b), 128U);
}

}  // namespace
}  // namespace dartfs::core
