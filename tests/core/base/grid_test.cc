#include "core/base/grid.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace dartfs::core {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;
constexpr uint64_t kMaxOffset = INT64_MAX;

struct GridRow {
  const char* name;
  Grid grid;
  bool valid;
};

TEST(Grid, Validate) {
  const GridRow rows[] = {
      {"default", {}, true},
      {"smallest", {4096, 4096, 4096}, true},
      {"block not a power of two", {12 * kKiB, 24 * kKiB, 4 * kKiB}, true},
      {"granule below a page", {4 * kMiB, 256 * kMiB, 2048}, false},
      {"granule no power of two", {12 * kKiB, 24 * kKiB, 12 * kKiB}, false},
      {"granule 0", {4 * kMiB, 256 * kMiB, 0}, false},
      {"block 0", {0, 256 * kMiB, 256 * kKiB}, false},
      {"block of a part granule", {4 * kMiB + 4096, 256 * kMiB, 256 * kKiB}, false},
      {"block below the granule", {128 * kKiB, 256 * kMiB, 256 * kKiB}, false},
      {"block above 1 GiB", {2 * kGiB, 2 * kGiB, 256 * kKiB}, false},
      {"chunk 0", {4 * kMiB, 0, 256 * kKiB}, false},
      {"chunk of a part block", {4 * kMiB, 255 * kMiB, 256 * kKiB}, false},
      {"chunk above 1 TiB", {4 * kMiB, 2048 * kGiB, 256 * kKiB}, false},
  };
  for (const auto& row : rows) {
    const auto status = row.grid.Validate();
    EXPECT_EQ(status.has_value(), row.valid) << row.name;
    if (!status.has_value()) {
      EXPECT_EQ(status.error().code, Code::kInvalidArgument) << row.name;
    }
  }
}

TEST(Grid, MaxBlockIndex) {
  const Grid grid;
  EXPECT_EQ(grid.MaxBlockIndex(), 2199023255551u);
  EXPECT_TRUE(grid.IsLegalBlock(2199023255551u));
  EXPECT_FALSE(grid.IsLegalBlock(2199023255552u));
  EXPECT_FALSE(grid.IsLegalBlock(uint64_t{1} << 63));
  EXPECT_FALSE(grid.IsLegalBlock(UINT64_MAX));
  // The largest legal block ends within int64_t.
  EXPECT_EQ(grid.BlockOffset(grid.MaxBlockIndex()) + (grid.block_size - 1), kMaxOffset);
}

TEST(Grid, IllegalBlocksHaveNoLength) {
  const Grid grid;
  for (const uint64_t index : {uint64_t{2199023255552u}, uint64_t{1} << 42, uint64_t{1} << 62,
                               uint64_t{1} << 63, UINT64_MAX}) {
    EXPECT_EQ(grid.BlockLength(kMaxOffset, index), 0u) << index;
    EXPECT_EQ(grid.BlockLength(4096, index), 0u) << index;
  }
}

TEST(Grid, LegalSizes) {
  const Grid grid;
  EXPECT_TRUE(grid.IsLegalSize(0));
  EXPECT_TRUE(grid.IsLegalSize(kMaxOffset));
  EXPECT_FALSE(grid.IsLegalSize(kMaxOffset + 1));
  EXPECT_FALSE(grid.IsLegalSize(UINT64_MAX));
  // 12 KiB does not divide 2^63: the last part block would be illegal.
  const Grid odd{12 * kKiB, 24 * kKiB, 4 * kKiB};
  const uint64_t end = (odd.MaxBlockIndex() + 1) * odd.block_size;
  ASSERT_LE(end, kMaxOffset);
  EXPECT_TRUE(odd.IsLegalSize(end));
  EXPECT_FALSE(odd.IsLegalSize(end + 1));
}

struct BlockRow {
  const char* name;
  uint64_t size;
  uint64_t count;
  uint64_t last_length;
};

TEST(Grid, BlocksOfAnObject) {
  const BlockRow rows[] = {
      {"one byte", 1, 1, 1},
      {"a byte short", 4 * kMiB - 1, 1, 4 * kMiB - 1},
      {"exactly one", 4 * kMiB, 1, 4 * kMiB},
      {"a byte more", 4 * kMiB + 1, 2, 1},
      {"largest", kMaxOffset, 2199023255552u, 4 * kMiB - 1},
  };
  const Grid grid;
  EXPECT_EQ(grid.BlockCount(0), 0u);
  EXPECT_EQ(grid.BlockLength(0, 0), 0u);
  for (const auto& row : rows) {
    EXPECT_EQ(grid.BlockCount(row.size), row.count) << row.name;
    EXPECT_EQ(grid.BlockLength(row.size, row.count - 1), row.last_length) << row.name;
    EXPECT_EQ(grid.BlockLength(row.size, row.count), 0u) << row.name;
    if (row.count > 1) {
      EXPECT_EQ(grid.BlockLength(row.size, row.count - 2), grid.block_size) << row.name;
    }
  }
}

struct RangeRow {
  const char* name;
  uint64_t size;
  uint64_t offset;
  uint64_t length;
  BlockRange want;
};

TEST(Grid, BlocksOfRange) {
  const RangeRow rows[] = {
      {"nothing", 100, 0, 0, {0, 0}},
      {"first byte", 100, 0, 1, {0, 1}},
      {"behind the end", 100, 100, 1, {0, 0}},
      {"far behind the end", 100, UINT64_MAX, UINT64_MAX, {0, 0}},
      {"cut at the end", 100, 99, UINT64_MAX, {0, 1}},
      {"last byte of a block", 12 * kMiB, 4 * kMiB - 1, 1, {0, 1}},
      {"over a border", 12 * kMiB, 4 * kMiB - 1, 2, {0, 2}},
      {"second block exactly", 12 * kMiB, 4 * kMiB, 4 * kMiB, {1, 1}},
      {"second and a byte", 12 * kMiB, 4 * kMiB, 4 * kMiB + 1, {1, 2}},
      {"all", 12 * kMiB, 0, UINT64_MAX, {0, 3}},
      {"largest object", kMaxOffset, kMaxOffset - 1, 2, {2199023255551u, 1}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Grid().BlocksOfRange(row.size, row.offset, row.length), row.want) << row.name;
  }
}

TEST(Grid, Chunks) {
  const Grid grid;
  EXPECT_EQ(grid.BlocksPerChunk(), 64u);
  EXPECT_EQ(grid.ChunkOfBlock(0), 0u);
  EXPECT_EQ(grid.ChunkOfBlock(63), 0u);
  EXPECT_EQ(grid.ChunkOfBlock(64), 1u);
  EXPECT_EQ(grid.ChunkCount(0), 0u);
  EXPECT_EQ(grid.ChunkCount(256 * kMiB), 1u);
  EXPECT_EQ(grid.ChunkCount(256 * kMiB + 1), 2u);
  EXPECT_EQ(grid.BlocksOfChunk(300 * kMiB, 0), (BlockRange{0, 64}));
  EXPECT_EQ(grid.BlocksOfChunk(300 * kMiB, 1), (BlockRange{64, 11}));
  EXPECT_EQ(grid.BlocksOfChunk(300 * kMiB, 2), (BlockRange{}));
  EXPECT_EQ(grid.BlocksOfChunk(300 * kMiB, UINT64_MAX), (BlockRange{}));
  EXPECT_EQ(grid.BlocksOfChunk(1, 0), (BlockRange{0, 1}));
}

TEST(Grid, Granules) {
  const Grid grid;
  EXPECT_EQ(grid.GranulesPerBlock(), 16u);
  EXPECT_EQ(grid.GranuleCount(0), 0u);
  EXPECT_EQ(grid.GranuleCount(1), 1u);
  EXPECT_EQ(grid.GranuleCount(256 * kKiB), 1u);
  EXPECT_EQ(grid.GranuleCount(4 * kMiB), 16u);
  EXPECT_EQ(grid.GranuleOfOffset(256 * kKiB - 1), 0u);
  EXPECT_EQ(grid.GranuleOfOffset(256 * kKiB), 1u);
  EXPECT_EQ(grid.GranuleOffset(3), 768 * kKiB);
  EXPECT_EQ(grid.GranuleLength(300 * kKiB, 0), 256 * kKiB);
  EXPECT_EQ(grid.GranuleLength(300 * kKiB, 1), 44 * kKiB);
  EXPECT_EQ(grid.GranuleLength(300 * kKiB, 2), 0u);
  EXPECT_EQ(grid.GranuleLength(300 * kKiB, UINT64_MAX), 0u);
}

// Blocks tile the object, granules tile the block, chunks tile the blocks: for awkward grids too.
TEST(Grid, Tiles) {
  const Grid grids[] = {{}, {4096, 8192, 4096}, {12 * kKiB, 36 * kKiB, 4 * kKiB}};
  for (const Grid& grid : grids) {
    ASSERT_TRUE(grid.Validate().has_value());
    for (const uint64_t size :
         {uint64_t{1}, grid.granule_size, grid.block_size - 1, grid.block_size, grid.block_size + 1,
          grid.chunk_size * 2 + grid.block_size + 7}) {
      uint64_t covered = 0;
      for (uint64_t chunk = 0; chunk < grid.ChunkCount(size); ++chunk) {
        const BlockRange blocks = grid.BlocksOfChunk(size, chunk);
        for (uint64_t b = blocks.first_index; b < blocks.first_index + blocks.count; ++b) {
          ASSERT_EQ(grid.ChunkOfBlock(b), chunk);
          ASSERT_EQ(grid.BlockOffset(b), covered);
          const uint64_t length = grid.BlockLength(size, b);
          uint64_t in_block = 0;
          for (uint64_t g = 0; g < grid.GranuleCount(length); ++g) {
            ASSERT_EQ(grid.GranuleOffset(g), in_block);
            in_block += grid.GranuleLength(length, g);
          }
          ASSERT_EQ(in_block, length);
          covered += length;
        }
      }
      EXPECT_EQ(covered, size);
    }
  }
}

TEST(GridDeathTest, OffsetOfAnIllegalBlock) {
  EXPECT_DEATH(static_cast<void>(Grid().BlockOffset(UINT64_MAX)), "IsLegalBlock");
}

}  // namespace
}  // namespace dartfs::core
