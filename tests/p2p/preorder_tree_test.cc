#include "p2p/preorder_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace dartfs::p2p {
namespace {

std::string Parents(uint32_t size, uint32_t fanout) {
  const PreorderTree tree{size, fanout};
  std::string text;
  for (uint32_t i = 0; i < size; ++i) {
    const uint32_t parent = tree.Parent(i);
    text += (i == 0 ? "" : " ") + (parent == PreorderTree::kNone ? "-1" : std::to_string(parent));
  }
  return text;
}

TEST(PreorderTree, ParentsAreTheWires) {
  EXPECT_EQ(Parents(7, 2), "-1 0 1 1 0 4 4");
  EXPECT_EQ(Parents(10, 2), "-1 0 1 2 1 4 0 6 7 6");
  EXPECT_EQ(Parents(13, 3), "-1 0 1 1 1 0 5 5 5 0 9 9 9");
  EXPECT_EQ(Parents(5, 1), "-1 0 1 2 3");
  EXPECT_EQ(Parents(6, 8), "-1 0 0 0 0 0");
  EXPECT_EQ(Parents(1, 2), "-1");
  EXPECT_EQ(Parents(3, 0), "-1 0 1") << "no fanout is a chain";
}

TEST(PreorderTree, NoPositionHasNothing) {
  const PreorderTree tree{3, 2};
  EXPECT_EQ(tree.Parent(3), PreorderTree::kNone);
  EXPECT_EQ(tree.Parent(UINT32_MAX), PreorderTree::kNone);
  EXPECT_EQ(tree.Children(3).size(), 0U);
  EXPECT_EQ((PreorderTree{0, 2}.Parent(0)), PreorderTree::kNone);
  EXPECT_EQ((PreorderTree{0, 2}.Height()), 0U);
}

// Every position but the root is a child of one parent, that parent's list has it, and depth counts
// the way.
TEST(PreorderTree, ChildrenAndParentsAreEachOthers) {
  for (uint32_t fanout = 1; fanout <= 9; ++fanout) {
    for (uint32_t size = 1; size <= 130; ++size) {
      const PreorderTree tree{size, fanout};
      std::vector<uint32_t> seen(size, PreorderTree::kNone);
      uint32_t deepest = 0;
      for (uint32_t at = 0; at < size; ++at) {
        const TreeChildren children = tree.Children(at);
        ASSERT_LE(children.size(), fanout);
        for (uint32_t i = 0; i < children.size(); ++i) {
          ASSERT_LT(children[i], size);
          ASSERT_GT(children[i], at) << "preorder";
          ASSERT_EQ(seen[children[i]], PreorderTree::kNone) << "two parents";
          seen[children[i]] = at;
        }
        ASSERT_EQ(tree.Depth(at), at == 0 ? 0 : tree.Depth(tree.Parent(at)) + 1);
        deepest = std::max(deepest, tree.Depth(at));
      }
      for (uint32_t at = 0; at < size; ++at) ASSERT_EQ(tree.Parent(at), seen[at]);
      ASSERT_EQ(tree.Height(), deepest) << size << " " << fanout;
    }
  }
}

// The subtrees of siblings differ by one at most, so the depth is that of the balanced tree.
TEST(PreorderTree, IsBalanced) {
  for (const uint32_t fanout : {2U, 3U, 8U}) {
    for (const uint32_t size : {2U, 100U, 4095U, 4096U, 100000U}) {
      const double levels = std::log(static_cast<double>(size)) / std::log(fanout);
      EXPECT_LE((PreorderTree{size, fanout}.Height()), std::ceil(levels) + 1) << size;
    }
  }
  EXPECT_EQ((PreorderTree{1000, 2}.Height()), 9U);
}

TEST(PreorderTree, LargestSizesDoNotOverflow) {
  const PreorderTree tree{UINT32_MAX, 2};
  const uint32_t last = UINT32_MAX - 1;
  EXPECT_LT(tree.Parent(last), last);
  EXPECT_LE(tree.Depth(last), 32U);
  EXPECT_EQ((PreorderTree{UINT32_MAX, 1}.Parent(last)), last - 1);
  EXPECT_EQ((PreorderTree{UINT32_MAX, UINT32_MAX}.Parent(last)), 0U);
}

}  // namespace
}  // namespace dartfs::p2p
