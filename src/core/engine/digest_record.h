// DigestRecord: what is left of a digest's check once the whole object has matched it, so that a
// block fetched again later, from whichever URL names the digest, is held to the same bytes.
// Kept in the table `urls` under DigestRecordName (no URL looks like it). Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest.h"
#include "core/base/grid.h"

namespace dartfs::core {

// The first half of the block's SHA-256: second preimages of it are out of reach.
using BlockDigest = std::array<std::byte, 16>;
BlockDigest DigestOfBlock(std::span<const std::byte> bytes);

struct DigestRecord {
  uint64_t size = 0;        // of the object, bytes
  uint64_t block_size = 0;  // of the grid the blocks are of
  std::vector<BlockDigest> blocks;

  bool operator==(const DigestRecord&) const = default;
};

std::string DigestRecordName(const Digest& digest);
// A format version byte, size and block size as 8 bytes little-endian, then the blocks' digests.
std::string EncodeDigestRecord(const DigestRecord& record);
// nullopt for anything that EncodeDigestRecord did not write, and for another grid's.
std::optional<DigestRecord> DecodeDigestRecord(std::string_view bytes, const Grid& grid);

}  // namespace dartfs::core
