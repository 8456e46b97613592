// Where a key lives: highest random weight over nodes (WIRE.md section 3; Thaler and Ravishankar,
// "Using name-based mappings to increase hit rates", 1998, weighted as score = w / -ln(u)). Pure.
//
// A node is named by its index in the caller's list; ties are broken by ID, so that the order does
// not depend on the list's. Nothing here allocates but the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dartfs::p2p {

struct PlacedNode {
  std::string_view id;
  double weight = 1;  // capacity beside others'; 0 or less counts as 1
};

uint64_t NodeHash(uint64_t key, std::string_view node_id);

// Indices of all nodes, the first in rank first. Among nodes of one weight the order is that of
// their hashes, as integers, so that no libm can change it.
std::vector<uint32_t> Rank(uint64_t key, std::span<const PlacedNode> nodes);

// The first `count` of Rank, or all where there are fewer.
std::vector<uint32_t> RankTop(uint64_t key, std::span<const PlacedNode> nodes, size_t count);

// Whether `a` stands before `b` in the key's rank. That depends on the two and their weights alone,
// not on who else is a member: all who know the same weights agree.
bool RanksBefore(uint64_t key, const PlacedNode& a, const PlacedNode& b);

}  // namespace dartfs::p2p
