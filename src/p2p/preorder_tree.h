// The distribution tree of a chunk, over positions 0..size-1 of a rank: position 0 is the root, and
// the others follow in preorder (WIRE.md section 3). Computed from the numbers alone, without a
// table: all functions are O(depth x 1), pure and allocate nothing.
#pragma once

#include <cstdint>

namespace dartfs::p2p {

// The children of a position, from the first on.
class TreeChildren {
 public:
  TreeChildren(uint32_t first, uint32_t below, uint32_t fanout);
  uint32_t size() const { return count_; }
  // Position of child `index` < size().
  uint32_t operator[](uint32_t index) const;

 private:
  uint32_t first_;
  uint32_t count_;
  uint32_t quotient_;   // descendants by child, itself among them,
  uint32_t remainder_;  // one more for so many of the first
};

struct PreorderTree {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t size = 0;
  uint32_t fanout = 2;  // 0 counts as 1

  // kNone for the root and for what is no position.
  uint32_t Parent(uint32_t position) const;
  // Of no position: none.
  TreeChildren Children(uint32_t position) const;
  // Hops to the root; 0 for it. Requires a position.
  uint32_t Depth(uint32_t position) const;
  // Of the deepest position; 0 for an empty tree.
  uint32_t Height() const;
};

}  // namespace dartfs::p2p
