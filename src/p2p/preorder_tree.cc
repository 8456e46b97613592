#include "p2p/preorder_tree.h"

#include <algorithm>

#include "core/base/check.h"

namespace dartfs::p2p {
namespace {

// A node and how many stand below it, in the positions that follow it.
struct Subtree {
  uint32_t root = 0;
  uint32_t below = 0;
  uint32_t parent = PreorderTree::kNone;
  uint32_t depth = 0;
};

// The child's subtree that `position` lies in. Requires root < position <= root + below.
Subtree Descend(const Subtree& from, uint32_t fanout, uint32_t position) {
  const uint32_t children = std::min(fanout, from.below);
  const uint32_t quotient = from.below / children;
  const uint32_t remainder = from.below % children;
  const uint32_t offset = position - from.root - 1;
  const uint64_t longer = uint64_t{remainder} * (quotient + 1);  // positions in the longer segments
  uint32_t begin = 0;
  uint32_t length = quotient;
  if (offset < longer) {
    length = quotient + 1;
    begin = offset / length * length;
  } else {
    const auto shift = static_cast<uint32_t>(longer);
    begin = shift + (offset - shift) / quotient * quotient;
  }
  return {from.root + 1 + begin, length - 1, from.root, from.depth + 1};
}

Subtree Find(const PreorderTree& tree, uint32_t position) {
  const uint32_t fanout = std::max(tree.fanout, 1U);
  if (fanout == 1) {
    return {position, tree.size - 1 - position, position == 0 ? PreorderTree::kNone : position - 1,
            position};
  }
  Subtree at{0, tree.size - 1, PreorderTree::kNone, 0};
  while (at.root != position) at = Descend(at, fanout, position);
  return at;
}

}  // namespace

TreeChildren::TreeChildren(uint32_t first, uint32_t below, uint32_t fanout)
    : first_(first),
      count_(std::min(std::max(fanout, 1U), below)),
      quotient_(count_ == 0 ? 0 : below / count_),
      remainder_(count_ == 0 ? 0 : below % count_) {}

uint32_t TreeChildren::operator[](uint32_t index) const {
  DARTFS_CHECK(index < count_);
  return first_ + index * quotient_ + std::min(index, remainder_);
}

uint32_t PreorderTree::Parent(uint32_t position) const {
  return position < size ? Find(*this, position).parent : kNone;
}

TreeChildren PreorderTree::Children(uint32_t position) const {
  if (position >= size) return {0, 0, fanout};
  const Subtree at = Find(*this, position);
  return {position + 1, at.below, fanout};
}

uint32_t PreorderTree::Depth(uint32_t position) const {
  DARTFS_CHECK(position < size);
  return Find(*this, position).depth;
}

uint32_t PreorderTree::Height() const {
  if (size == 0) return 0;
  const uint32_t children = std::max(fanout, 1U);
  if (children == 1) return size - 1;
  // The first segment is never shorter than another.
  uint32_t height = 0;
  for (uint32_t below = size - 1; below > 0; ++height) {
    const uint32_t parts = std::min(children, below);
    below = (below + parts - 1) / parts - 1;
  }
  return height;
}

}  // namespace dartfs::p2p
