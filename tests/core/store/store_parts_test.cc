// The parts that do no I/O, one by one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/store/bypass.h"
#include "core/store/eviction_policy.h"
#include "core/store/geometry.h"
#include "core/store/granules.h"
#include "core/store/index.h"
#include "core/store/index_phase.h"
#include "core/store/index_record.h"
#include "core/store/layout.h"
#include "core/store/name_cache.h"
#include "core/store/object_table.h"
#include "core/store/op_gate.h"
#include "core/store/space.h"
#include "core/store/use_clock.h"
#include "fake/manual_clock.h"
#include "fake/seeded_random.h"

namespace dartfs::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

StoreKey KeyNumber(uint8_t number) {
  std::array<std::byte, StoreKey::kBytes> bytes{};
  bytes[3] = static_cast<std::byte>(number);
  return StoreKey(bytes);
}

TEST(GeometryTest, ChunksOfAtMost64Blocks) {
  struct Case {
    const char* name;
    uint64_t blocks_per_grid_chunk;
    uint64_t blocks_per_chunk;
  };
  const Case cases[] = {{"default", 64, 64}, {"one", 1, 1},    {"few", 3, 3},     {"128", 128, 64},
                        {"96", 96, 48},      {"prime", 67, 1}, {"1000", 1000, 50}};
  for (const auto& c : cases) {
    Grid grid;
    grid.chunk_size = grid.block_size * c.blocks_per_grid_chunk;
    EXPECT_EQ(Geometry(grid).blocks_per_chunk(), c.blocks_per_chunk) << c.name;
  }
}

TEST(GeometryTest, MasksAndBytes) {
  const Geometry geometry((Grid()));
  const uint64_t block = Grid().block_size;
  EXPECT_EQ(geometry.LegalMask(1, 0), 1U);
  EXPECT_EQ(geometry.LegalMask(64 * block, 0), ~uint64_t{0});
  EXPECT_EQ(geometry.LegalMask(64 * block, 1), 0U);
  EXPECT_EQ(geometry.LegalMask(64 * block + 1, 1), 1U);
  EXPECT_EQ(geometry.ChunkCount(64 * block + 1), 2U);
  EXPECT_EQ(geometry.ChunkCount(0), 0U);
  EXPECT_EQ(geometry.StoredBytes(100, 0), 4096U);
  EXPECT_EQ(geometry.StoredBytes(block + 4097, 1), 8192U);
  EXPECT_EQ(geometry.StoredBytesOf(block + 1, 0, 3), block + 4096);
  EXPECT_FALSE(geometry.IsStorableSize(0));
  EXPECT_FALSE(geometry.IsStorableSize(UINT64_MAX));
  EXPECT_TRUE(geometry.IsStorableSize(uint64_t{1} << 50));
}

TEST(GranulesTest, EveryBadGranuleIsCounted) {
  const Grid grid = {.block_size = 16384, .chunk_size = 65536, .granule_size = 4096};
  std::vector<std::byte> block(3 * 4096 + 10);
  const auto sums = SumGranules(grid, block);
  ASSERT_EQ(sums.size(), 4U);
  EXPECT_EQ(CountBadGranules(grid, block, 0, sums), 0U);
  block[0] ^= std::byte{1};
  block.back() ^= std::byte{128};
  EXPECT_EQ(CountBadGranules(grid, block, 0, sums), 2U);
  EXPECT_EQ(CountBadGranules(grid, std::span(block).subspan(3 * 4096), 3, sums), 1U);
  EXPECT_EQ(CountBadGranules(grid, std::span(block).first(4096), 4, sums), 1U);  // no such sum
}

TEST(IndexRecordTest, RoundTrips) {
  ObjectMeta meta;
  meta.kind = 'd';
  meta.id = std::string("sha256:ab\x1fhttp://h:1", 20);
  meta.version = "m:Mon/1";
  meta.size = uint64_t{1} << 60;
  meta.etag = "\"x\"";
  meta.last_modified = -1;
  meta.content_type = "text/plain";
  meta.verified = true;
  const auto back = DecodeObject(EncodeObject(meta));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->id, meta.id);
  EXPECT_EQ(back->size, meta.size);
  EXPECT_EQ(back->last_modified, -1);
  EXPECT_TRUE(back->verified);
  EXPECT_FALSE(back->volatile_version);
  const ChunkRecord chunk = {0xF0F0, 123, 456, 1, 2};
  EXPECT_EQ(DecodeChunk(EncodeChunk(chunk)), chunk);
  const std::vector<uint64_t> sums = {1, UINT64_MAX, 0};
  EXPECT_EQ(DecodeSums(EncodeSums(sums)), sums);
  EXPECT_EQ(DecodeName(EncodeName("n", ""))->value, "");
  EXPECT_EQ(DecodeNumber(EncodeNumber(77)), 77U);
  const ChunkKey key = {KeyNumber(9), 0x01020304};
  EXPECT_EQ(ParseChunkKey(ChunkKeyBytes(key)), key);
}

TEST(IndexRecordTest, KeysSortAsNumbers) {
  EXPECT_LT(SumsKeyBytes(KeyNumber(1), 255), SumsKeyBytes(KeyNumber(1), 256));
  EXPECT_LT(ChunkKeyBytes({KeyNumber(1), UINT32_MAX}), ChunkKeyBytes({KeyNumber(2), 0}));
}

TEST(IndexRecordTest, NoFlippedBitUnseals) {
  const std::string key = ObjectKeyBytes(KeyNumber(1));
  const std::string value = SealRecord(IndexTable::kSums, key, EncodeSums({1, 2, 3}));
  ASSERT_TRUE(UnsealRecord(IndexTable::kSums, key, value));
  EXPECT_FALSE(UnsealRecord(IndexTable::kChunks, key, value));
  for (size_t bit = 0; bit < value.size() * 8; ++bit) {
    std::string flipped = value;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(UnsealRecord(IndexTable::kSums, key, flipped)) << bit;
  }
  for (size_t bit = 0; bit < key.size() * 8; ++bit) {
    std::string flipped = key;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(UnsealRecord(IndexTable::kSums, flipped, value)) << bit;
  }
  for (size_t size = 0; size < value.size(); ++size) {
    EXPECT_FALSE(UnsealRecord(IndexTable::kSums, key, value.substr(0, size)));
  }
}

TEST(IndexRecordTest, DecodersTrustNothing) {
  SeededRandom random(TestSeed());
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.Below(80), '\0');
    for (char& c : bytes) c = static_cast<char>(random.Next());
    (void)DecodeObject(bytes);
    (void)DecodeChunk(bytes);
    (void)DecodeSums(bytes);
    (void)DecodeName(bytes);
    (void)DecodeNumber(bytes);
    (void)ParseChunkKey(bytes);
  }
  EXPECT_FALSE(DecodeObject(std::string("\0\0", 2)));
  EXPECT_FALSE(DecodeName("\xFF\xFF\xFF\xFFx"));
}

TEST(EvictionPolicyTest, OldestFirst) {
  EvictionPolicy policy;
  EXPECT_EQ(policy.Front(), nullptr);
  std::vector<EvictionCandidate> all;
  for (uint64_t i = 0; i < 100; ++i) all.push_back({{KeyNumber(1), 0}, (i * 37) % 100});
  policy.Refill(all);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_NE(policy.Front(), nullptr);
    EXPECT_EQ(policy.Front()->used_ms, i);
    policy.Pop();
  }
  EXPECT_EQ(policy.Front(), nullptr);
}

TEST(SpaceTest, ReservesWithinTheLimit) {
  Space space(100);
  EXPECT_TRUE(space.Reserve(60));
  EXPECT_FALSE(space.Reserve(41));
  EXPECT_TRUE(space.Reserve(40));
  EXPECT_FALSE(space.Reserve(UINT64_MAX));
  space.Settle(100);
  EXPECT_EQ(space.Shortage(), 0U);
  space.Want(30);
  EXPECT_EQ(space.Shortage(), 30U);
  space.Release(30);
  EXPECT_EQ(space.Shortage(), 0U);
  EXPECT_TRUE(space.WaitForRoom(milliseconds(0)));
  EXPECT_EQ(space.used(), 100U);
}

TEST(SpaceTest, WhatTheDiskCanSpare) {
  Space space(1000);
  space.SetSpare(50, 0);
  EXPECT_FALSE(space.Reserve(51));
  EXPECT_TRUE(space.Reserve(50));
  EXPECT_FALSE(space.Reserve(1));
  EXPECT_TRUE(space.DiskIsFull());
  space.Settle(50);
  space.SetSpare(0, 20);
  EXPECT_EQ(space.Shortage(), 20U);
  space.Release(30);
  EXPECT_EQ(space.Shortage(), 0U);
  EXPECT_TRUE(space.Reserve(10));
}

TEST(SpaceTest, GivesUpOnlyWhatEvictionHasSeen) {
  Space space(10);
  ASSERT_TRUE(space.Reserve(10));
  space.Want(5);
  const uint64_t first = space.WantNumber();
  space.GiveUp(first);
  EXPECT_FALSE(space.gave_up());  // a write is under way: what it wrote may go
  space.Settle(10);
  space.Want(5);
  space.GiveUp(first);
  EXPECT_FALSE(space.gave_up());
  space.GiveUp(space.WantNumber());
  EXPECT_TRUE(space.gave_up());
  EXPECT_FALSE(space.WaitForRoom(seconds(100)));
}

TEST(BypassTest, OneTryNowAndThen) {
  Bypass bypass(seconds(5));
  const TimePoint start = TimePoint(seconds(100));
  EXPECT_TRUE(bypass.MayWrite(start));
  bypass.Enter("full", start);
  bypass.Enter("other", start);
  EXPECT_EQ(bypass.reason(), "full");
  EXPECT_FALSE(bypass.MayWrite(start + seconds(4)));
  EXPECT_TRUE(bypass.MayWrite(start + seconds(5)));
  EXPECT_FALSE(bypass.MayWrite(start + seconds(6)));
  bypass.NoteSuccess(0);  // begun before the disk refused
  bypass.NoteSuccess(1);  // and before it refused again
  EXPECT_TRUE(bypass.active());
  bypass.NoteSuccess(bypass.number());
  EXPECT_FALSE(bypass.active());
  EXPECT_TRUE(bypass.MayWrite(start + seconds(6)));
  bypass.Enter("full", start);
  bypass.EnterForGood("damaged");
  EXPECT_EQ(bypass.reason(), "damaged");
  bypass.NoteSuccess(bypass.number());
  EXPECT_FALSE(bypass.MayWrite(start + seconds(600)));
}

TEST(NameCacheTest, WhatIsPutWhileTheRestIsCommittedStays) {
  NameCache names;
  ASSERT_TRUE(names.Put(NameTable::kUrls, "a", "1"));
  ASSERT_TRUE(names.Put(NameTable::kUrls, "b", std::nullopt));
  EXPECT_EQ(names.Take().size(), 2U);
  ASSERT_TRUE(names.Put(NameTable::kUrls, "a", "2"));
  names.Committed();
  EXPECT_EQ(names.Get(NameTable::kUrls, "a").value, "2");
  EXPECT_FALSE(names.Get(NameTable::kUrls, "b").known);
  EXPECT_EQ(names.Take().size(), 1U);
  names.Failed();
  EXPECT_EQ(names.Take().size(), 1U);
  names.Committed();
  EXPECT_TRUE(names.empty());
}

TEST(NameCacheTest, IsBounded) {
  NameCache names;
  EXPECT_FALSE(names.Put(NameTable::kUrls, "x", std::string(NameCache::kMaxValueBytes + 1, 'x')));
  uint64_t taken = 0;
  for (int i = 0; i < 20; ++i) {
    taken += names.Put(NameTable::kUrls, std::to_string(i),
                       std::string(NameCache::kMaxValueBytes / 2, 'x'))
                 ? 1
                 : 0;
  }
  EXPECT_EQ(taken, NameCache::kMaxBytes / (NameCache::kMaxValueBytes / 2) - 1);
}

TEST(ObjectTableTest, ALeavingKeyIsWaitedFor) {
  const Geometry geometry((Grid()));
  ObjectTable table(geometry);
  auto object = table.FindOrAdd(KeyNumber(1), 100, {}).value();
  const auto second = object;
  EXPECT_FALSE(table.RemoveIfIdle(object, {}));  // `second` has it
  EXPECT_TRUE(table.Remove(object));
  EXPECT_FALSE(table.Remove(object));
  EXPECT_EQ(table.FindOrAdd(KeyNumber(1), 100, milliseconds(1)).error().code, Code::kBusy);
  EXPECT_FALSE(table.ClaimName(KeyNumber(1)));
  table.EndLeaving(KeyNumber(1));
  EXPECT_NE(table.FindOrAdd(KeyNumber(1), 100, {}).value(), object);
}

TEST(ObjectTableTest, IdleObjectsCanBeTrimmedAndRemoved) {
  const Geometry geometry((Grid()));
  ObjectTable table(geometry);
  auto object = table.FindOrAdd(KeyNumber(1), 100, {}).value();
  object->SetFacts({KeyNumber(1), {}});
  EXPECT_TRUE(table.TrimIfIdle(object));
  EXPECT_EQ(object->facts(), nullptr);
  EXPECT_EQ(object->ClaimForWrite(0, 0), StoredObject::Claim::kClaimed);
  EXPECT_FALSE(table.RemoveIfIdle(object, {}));
  EXPECT_TRUE(table.RemoveIfIdle(object, {0}));
  EXPECT_EQ(table.size(), 0U);
}

TEST(StoredObjectTest, ABlockIsKnownUntilItsRecordIsDurable) {
  const Grid grid;
  const Geometry geometry(grid);
  PlacementUsage usage;
  StoredObject object(geometry, KeyNumber(1), grid.block_size, usage);
  object.SetFacts({KeyNumber(1), {}});
  const GranuleRange all = {0, grid.GranuleCount(grid.block_size)};
  const auto write = [&] {
    EXPECT_EQ(object.ClaimForWrite(0, 0), StoredObject::Claim::kClaimed);
    return object.FinishWrite(0, std::make_shared<std::vector<uint64_t>>(all.count), 1).value();
  };
  const auto read_all = [&](uint64_t generation) {
    UseNews news;
    ASSERT_TRUE(object.Pin(0, 1, &news));
    object.MarkVerified(0, generation, all);
    object.Unpin(0);
  };
  const uint64_t failed = write();
  EXPECT_NE(object.MarkRecorded(0, failed), nullptr);  // a commit begins
  read_all(failed);
  object.Trim();
  EXPECT_EQ(object.Drop(0, failed).size(), 1U);  // and fails
  EXPECT_EQ(object.PresentBlocks(), 0U);
  const uint64_t durable = write();
  EXPECT_NE(object.MarkRecorded(0, durable), nullptr);
  read_all(durable);
  object.ReleaseSums(0, failed);  // of the other block
  object.ReleaseSums(0, durable);
  EXPECT_TRUE(object.Drop(0, durable).empty());  // known as loaded from the index from now on
  EXPECT_EQ(object.PresentBlocks(), 1U);
}

TEST(OpGateTest, WaitsForThoseInside) {
  OpGate gate;
  {
    const OpInside inside(gate);
    ASSERT_TRUE(inside);
    EXPECT_FALSE(gate.CloseAndWait(milliseconds(1)));
    EXPECT_FALSE(OpInside(gate));
  }
  EXPECT_TRUE(gate.CloseAndWait(milliseconds(0)));
}

TEST(UseClockTest, NeverRunsBackwards) {
  ManualClock clock;
  UseClock use_clock(clock);
  const uint64_t start = use_clock.NowMs();
  use_clock.NotBefore(start + 5000);
  use_clock.NotBefore(start + 4000);
  use_clock.NotBefore(UINT64_MAX);
  EXPECT_EQ(use_clock.NowMs(), start + 5000);
  clock.ShiftWall(-std::chrono::hours(1));
  clock.Advance(seconds(1));
  EXPECT_EQ(use_clock.NowMs(), start + 6000);
}

class LayoutOwnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(root_.data()), nullptr);
    ASSERT_TRUE(Open());
    std::ofstream(root_ + "/other") << "theirs";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  Result<std::unique_ptr<Layout>> Open() const { return Layout::Open(dir(), Grid()); }
  std::string dir() const { return root_ + "/cache"; }
  // Of what was refused, and what the file that was linked to holds.
  std::string Refused(const std::string& part) const {
    const auto opened = Open();
    if (opened || opened.error().code != Code::kRefused) return "not refused";
    if (opened.error().context.find(part) == std::string::npos) return opened.error().context;
    std::ifstream other(root_ + "/other");
    return {std::istreambuf_iterator<char>(other), {}};
  }
  std::string root_ = "/tmp/dartfs-layout-test.XXXXXX";
};

TEST_F(LayoutOwnerTest, LinksAreNotFollowed) {
  for (const char* name : {"/lock", "/version", "/objects"}) {
    SCOPED_TRACE(name);
    const std::string path = dir() + name;
    std::filesystem::rename(path, root_ + "/aside");
    std::filesystem::create_symlink(root_ + "/other", path);
    EXPECT_EQ(Refused(name), "theirs");
    std::filesystem::remove(path);
    if (std::string(name) != "/objects") {
      std::filesystem::create_hard_link(root_ + "/other", path);
      EXPECT_EQ(Refused(name), "theirs");
      std::filesystem::remove(path);
    }
    std::filesystem::rename(root_ + "/aside", path);
    EXPECT_TRUE(Open());
  }
  const std::string phase = root_ + "/index.phase";
  std::filesystem::create_symlink(root_ + "/other", phase);
  EXPECT_EQ(IndexPhase::Begin(phase).error().code, Code::kRefused);
  std::filesystem::create_directory(root_ + "/real");
  for (const char* path : {"/index", "/index/data.mdb", "/index/lock.mdb"}) {
    SCOPED_TRACE(path);
    std::filesystem::remove_all(root_ + "/index");
    std::filesystem::remove(phase);
    if (std::string(path) != "/index") std::filesystem::create_directory(root_ + "/index");
    std::filesystem::create_symlink(root_ + "/real", root_ + path);
    Index::Chunks chunks;
    const auto opened = Index::Open({.dir = root_ + "/index"}, &chunks);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::kRefused);
  }
}

TEST_F(LayoutOwnerTest, AnotherUsersDirectoryIsRefused) {
  constexpr uid_t kOther = 12'345;
  if (::geteuid() != 0) GTEST_SKIP() << "needs the right to give files away";
  for (const char* name : {"", "/lock", "/version", "/objects"}) {
    SCOPED_TRACE(name);
    ASSERT_EQ(::chown((dir() + name).c_str(), kOther, static_cast<gid_t>(-1)), 0);
    EXPECT_EQ(Refused(dir() + name + " belongs to user 12345"), "theirs");
    ASSERT_EQ(::chown((dir() + name).c_str(), 0, static_cast<gid_t>(-1)), 0);
  }
  EXPECT_TRUE(Open());
}

}  // namespace
}  // namespace dartfs::core
