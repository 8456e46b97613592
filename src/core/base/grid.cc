#include "core/base/grid.h"

#include <algorithm>
#include <bit>
#include <string>

#include "core/base/check.h"

namespace dartfs::core {
namespace {

constexpr uint64_t kInt64Max = INT64_MAX;
constexpr uint64_t kMaxBlockSize = uint64_t{1} << 30;
constexpr uint64_t kMaxChunkSize = uint64_t{1} << 40;

// Rounded up, without overflow.
uint64_t DivideUp(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

Error Invalid(const char* what, uint64_t size, const std::string& rule) {
  return MakeError(Code::kInvalidArgument,
                   std::string(what) + " size " + std::to_string(size) + " " + rule);
}

}  // namespace

Status Grid::Validate() const {
  if (!std::has_single_bit(granule_size) || granule_size < kPageSize) {
    return Invalid("granule", granule_size, "is not a power of two of 4096 bytes or more");
  }
  if (block_size == 0 || block_size % granule_size != 0) {
    return Invalid("block", block_size,
                   "is not a multiple of the granule size " + std::to_string(granule_size));
  }
  if (block_size > kMaxBlockSize) return Invalid("block", block_size, "is above 1 GiB");
  if (chunk_size == 0 || chunk_size % block_size != 0) {
    return Invalid("chunk", chunk_size,
                   "is not a multiple of the block size " + std::to_string(block_size));
  }
  if (chunk_size > kMaxChunkSize) return Invalid("chunk", chunk_size, "is above 1 TiB");
  return {};
}

uint64_t Grid::MaxBlockIndex() const { return (kInt64Max - block_size + 1) / block_size; }

bool Grid::IsLegalSize(uint64_t object_size) const {
  if (object_size > kInt64Max) return false;
  return object_size == 0 || IsLegalBlock((object_size - 1) / block_size);
}

uint64_t Grid::BlockCount(uint64_t object_size) const { return DivideUp(object_size, block_size); }

uint64_t Grid::BlockOffset(uint64_t block_index) const {
  DARTFS_CHECK(IsLegalBlock(block_index));
  return block_index * block_size;
}

uint64_t Grid::BlockLength(uint64_t object_size, uint64_t block_index) const {
  if (!IsLegalBlock(block_index)) return 0;
  const uint64_t offset = block_index * block_size;
  return offset < object_size ? std::min(block_size, object_size - offset) : 0;
}

BlockRange Grid::BlocksOfRange(uint64_t object_size, uint64_t offset, uint64_t length) const {
  if (offset >= object_size || length == 0) return {};
  const uint64_t last_offset = offset + std::min(length, object_size - offset) - 1;
  const uint64_t first = BlockOfOffset(offset);
  return {first, BlockOfOffset(last_offset) - first + 1};
}

uint64_t Grid::ChunkCount(uint64_t object_size) const { return DivideUp(object_size, chunk_size); }

BlockRange Grid::BlocksOfChunk(uint64_t object_size, uint64_t chunk_index) const {
  if (chunk_index >= ChunkCount(object_size)) return {};
  const uint64_t first = chunk_index * BlocksPerChunk();
  return {first, std::min(BlocksPerChunk(), BlockCount(object_size) - first)};
}

uint64_t Grid::GranuleCount(uint64_t length) const { return DivideUp(length, granule_size); }

uint64_t Grid::GranuleLength(uint64_t block_length, uint64_t granule_index) const {
  if (granule_index >= GranuleCount(block_length)) return 0;
  return std::min(granule_size, block_length - GranuleOffset(granule_index));
}

}  // namespace dartfs::core
