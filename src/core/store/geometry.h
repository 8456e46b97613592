// Geometry: the grid as the store uses it. A chunk here is the grid's, or an even part of it where
// that has more than 64 blocks, so that one word holds a chunk's blocks. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/grid.h"

namespace dartfs::core {

class Geometry {
 public:
  static constexpr uint64_t kMaxBlocksPerChunk = 64;

  explicit Geometry(const Grid& grid) : grid_(grid) {
    const uint64_t blocks = grid.BlocksPerChunk();
    blocks_per_chunk_ = std::min(blocks, kMaxBlocksPerChunk);
    while (blocks % blocks_per_chunk_ != 0) --blocks_per_chunk_;
  }

  const Grid& grid() const { return grid_; }
  uint64_t blocks_per_chunk() const { return blocks_per_chunk_; }
  uint64_t ChunkOf(uint64_t block) const { return block / blocks_per_chunk_; }
  unsigned BitOf(uint64_t block) const { return static_cast<unsigned>(block % blocks_per_chunk_); }
  uint64_t MaskOf(uint64_t block) const { return uint64_t{1} << BitOf(block); }
  uint64_t BlockOf(uint64_t chunk, unsigned bit) const { return chunk * blocks_per_chunk_ + bit; }

  // Records hold a chunk's index in 32 bits.
  bool IsStorableSize(uint64_t object_size) const {
    return object_size > 0 && grid_.IsLegalSize(object_size) &&
           ChunkOf(grid_.BlockCount(object_size) - 1) <= UINT32_MAX;
  }
  uint64_t ChunkCount(uint64_t object_size) const {
    const uint64_t blocks = grid_.BlockCount(object_size);
    return blocks == 0 ? 0 : ChunkOf(blocks - 1) + 1;
  }
  // Bits of the chunk that are blocks of the object.
  uint64_t LegalMask(uint64_t object_size, uint64_t chunk) const {
    const uint64_t first = chunk * blocks_per_chunk_;
    const uint64_t count = grid_.BlockCount(object_size);
    if (first >= count) return 0;
    const uint64_t bits = std::min(count - first, blocks_per_chunk_);
    return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  }
  // What the block takes of the disk: its length in whole pages.
  uint64_t StoredBytes(uint64_t object_size, uint64_t block) const {
    return (grid_.BlockLength(object_size, block) + kPageSize - 1) / kPageSize * kPageSize;
  }
  uint64_t StoredBytesOfAll(uint64_t object_size) const {
    return (object_size + kPageSize - 1) / kPageSize * kPageSize;  // blocks are whole pages
  }
  uint64_t StoredBytesOf(uint64_t object_size, uint64_t chunk, uint64_t mask) const {
    uint64_t bytes = 0;
    for (unsigned bit = 0; bit < blocks_per_chunk_; ++bit) {
      if ((mask >> bit & 1) != 0) bytes += StoredBytes(object_size, BlockOf(chunk, bit));
    }
    return bytes;
  }

 private:
  Grid grid_;
  uint64_t blocks_per_chunk_ = 1;
};

}  // namespace dartfs::core
