// The grid of an object: granules within blocks within chunks (WIRE.md section 1). Pure arithmetic.
//
// Offsets and lengths are bytes, *_index counts from the object's (granules: the block's) start,
// *Count is a number of things. An index or size that comes from outside is checked with
// IsLegalBlock or IsLegalSize first; every function after that stays within int64_t.
#pragma once

#include <cstdint>

#include "core/base/page_size.h"
#include "core/base/result.h"

namespace dartfs::core {

// A run of consecutive blocks; count 0 is empty.
struct BlockRange {
  uint64_t first_index = 0;
  uint64_t count = 0;
  bool operator==(const BlockRange&) const = default;
};

struct Grid {
  uint64_t block_size = uint64_t{4} << 20;      // transfer and cache
  uint64_t chunk_size = uint64_t{256} << 20;    // placement and tree
  uint64_t granule_size = uint64_t{256} << 10;  // checksum

  bool operator==(const Grid&) const = default;

  // kInvalidArgument unless granules are a power of two of at least a page, blocks are whole
  // granules (hence whole pages) of at most 1 GiB, and chunks whole blocks of at most 1 TiB. All
  // other functions require a valid grid.
  Status Validate() const;

  // (INT64_MAX - block_size + 1) / block_size: a block of a larger index is declined before any
  // arithmetic, lookup or I/O.
  uint64_t MaxBlockIndex() const;
  bool IsLegalBlock(uint64_t block_index) const { return block_index <= MaxBlockIndex(); }
  // Whether all blocks of an object of this size are legal.
  bool IsLegalSize(uint64_t object_size) const;

  uint64_t BlockCount(uint64_t object_size) const;
  uint64_t BlockOfOffset(uint64_t offset) const { return offset / block_size; }
  // Requires a legal index.
  uint64_t BlockOffset(uint64_t block_index) const;
  // Bytes of the block: block_size, less for the object's last, 0 behind its end or if illegal.
  uint64_t BlockLength(uint64_t object_size, uint64_t block_index) const;
  // The blocks that [offset, offset + length) touches, cut at the object's end. No overflow for any
  // offset and length.
  BlockRange BlocksOfRange(uint64_t object_size, uint64_t offset, uint64_t length) const;

  uint64_t BlocksPerChunk() const { return chunk_size / block_size; }
  uint64_t ChunkCount(uint64_t object_size) const;
  uint64_t ChunkOfBlock(uint64_t block_index) const { return block_index / BlocksPerChunk(); }
  // The blocks of the object that lie in the chunk; empty behind its end.
  BlockRange BlocksOfChunk(uint64_t object_size, uint64_t chunk_index) const;

  uint64_t GranulesPerBlock() const { return block_size / granule_size; }
  // Granules of `length` bytes from a block's start; the last may be short.
  uint64_t GranuleCount(uint64_t length) const;
  uint64_t GranuleOfOffset(uint64_t offset_in_block) const {
    return offset_in_block / granule_size;
  }
  uint64_t GranuleOffset(uint64_t granule_index) const { return granule_index * granule_size; }
  // Bytes of that granule of a block of `block_length` bytes; 0 behind its end.
  uint64_t GranuleLength(uint64_t block_length, uint64_t granule_index) const;
};

}  // namespace dartfs::core
