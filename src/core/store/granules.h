// Granule checksums of one block. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/grid.h"
#include "core/base/hash.h"

namespace dartfs::core {

inline std::vector<uint64_t> SumGranules(const Grid& grid, std::span<const std::byte> block) {
  std::vector<uint64_t> sums(grid.GranuleCount(block.size()));
  for (uint64_t i = 0; i < sums.size(); ++i) {
    sums[i] = Xxh3(block.subspan(grid.GranuleOffset(i), grid.GranuleLength(block.size(), i)));
  }
  return sums;
}

// How many of the granules in `bytes`, which begins with granule `first`, do not match `sums`.
inline uint64_t CountBadGranules(const Grid& grid, std::span<const std::byte> bytes, uint64_t first,
                                 const std::vector<uint64_t>& sums) {
  uint64_t bad = 0;
  for (uint64_t at = 0, i = first; at < bytes.size(); at += grid.granule_size, ++i) {
    const auto granule = bytes.subspan(at, std::min(grid.granule_size, bytes.size() - at));
    if (i >= sums.size() || Xxh3(granule) != sums[i]) ++bad;
  }
  return bad;
}

}  // namespace dartfs::core
