#include "p2p/chunk_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace dartfs::p2p {
namespace {

constexpr uint64_t kKey = 0xdeadbeefcafebabe;

ViewPtr MakeView(int count, MemberState state_of_first = MemberState::kReady) {
  std::vector<Member> members;
  for (int i = 0; i < count; ++i) {
    const std::string id = std::string("node-0") + std::to_string(i);
    members.push_back({.id = id, .addr = id + ":1"});
  }
  if (count > 0) members[0].state = state_of_first;
  return std::make_shared<const View>(std::move(members));
}
ReaderIds Readers(std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  return std::make_shared<const std::vector<std::string>>(std::move(ids));
}
std::string Upstreams(const ChunkTree& tree, const std::string& id) {
  std::string text;
  for (const uint32_t at : tree.Upstreams(id)) text += std::string(tree.IdAt(at)) + " ";
  return text;
}

// The rank of WIRE.md's golden values: 03 04 05 07 08 00 09 06 01 02, parents -1 0 1 2 1 4 0 6 7 6.
TEST(ChunkTree, UpstreamsAreTheWayToTheOwner) {
  const ChunkTree tree(MakeView(10), nullptr, kKey, 2);
  EXPECT_EQ(tree.size(), 10U);
  EXPECT_EQ(tree.IdAt(0), "node-03");
  EXPECT_EQ(tree.MemberAt(0).addr, "node-03:1");
  EXPECT_EQ(Upstreams(tree, "node-03"), "");
  EXPECT_EQ(Upstreams(tree, "node-04"), "node-03 ");
  EXPECT_EQ(Upstreams(tree, "node-07"), "node-05 node-04 node-03 ");
  EXPECT_EQ(Upstreams(tree, "node-00"), "node-08 node-04 node-03 ");
  EXPECT_EQ(Upstreams(tree, "stranger"), "node-03 ") << "asks the owner";
}

TEST(ChunkTree, SpansReadyMembersAlone) {
  const ChunkTree tree(MakeView(10, MemberState::kSuspect), nullptr, kKey, 2);
  EXPECT_EQ(tree.size(), 9U);
  EXPECT_EQ(tree.PositionOf("node-00"), std::nullopt);
  EXPECT_EQ(Upstreams(tree, "node-00"), "node-03 ");
}

TEST(ChunkTree, SpansTheReadersWhereTheyAreKnown) {
  const ViewPtr view = MakeView(10);
  const ChunkTree tree(view, Readers({"node-01", "node-08", "node-00", "gone"}), kKey, 2);
  EXPECT_EQ(tree.size(), 3U);
  EXPECT_EQ(tree.IdAt(0), "node-08");
  EXPECT_EQ(Upstreams(tree, "node-01"), "node-08 ");
  EXPECT_EQ(Upstreams(tree, "node-02"), "node-08 ") << "who is not in it asks its root";
  for (const auto& few : {Readers({}), Readers({"node-01"}), Readers({"node-01", "gone"})}) {
    EXPECT_EQ(ChunkTree(view, few, kKey, 2).size(), 10U) << "no tree of fewer than two";
  }
}

TEST(ChunkTree, AnEmptyViewHasNoUpstream) {
  const ChunkTree tree(MakeView(0), nullptr, kKey, 2);
  EXPECT_EQ(tree.size(), 0U);
  EXPECT_TRUE(tree.Upstreams("a").empty());
}

// From every node the way leads to the owner, each step nearer, whatever readers there are.
TEST(ChunkTree, EveryWayEndsAtTheOwner) {
  const ViewPtr view = MakeView(10);
  for (unsigned subset = 0; subset < 1024; subset += 7) {
    std::vector<std::string> ids;
    for (int i = 0; i < 10; ++i) {
      if ((subset >> i & 1U) != 0) ids.push_back("node-0" + std::to_string(i));
    }
    const ChunkTree tree(view, Readers(ids), subset, 3);
    for (uint32_t at = 1; at < tree.size(); ++at) {
      const auto chain = tree.Upstreams(tree.IdAt(at));
      ASSERT_FALSE(chain.empty());
      EXPECT_EQ(chain.back(), 0U);
      EXPECT_TRUE(std::is_sorted(chain.rbegin(), chain.rend()));
      EXPECT_EQ(chain.size(), tree.shape().Depth(at));
    }
  }
}

TEST(OwnsChunk, FollowsTheRankOverAllReadyMembers) {
  const ViewPtr view = MakeView(10);
  EXPECT_TRUE(OwnsChunk(*view, "node-03", kKey, 1));
  EXPECT_FALSE(OwnsChunk(*view, "node-04", kKey, 1));
  EXPECT_TRUE(OwnsChunk(*view, "node-05", kKey, 3));
  EXPECT_FALSE(OwnsChunk(*view, "node-07", kKey, 3));
  EXPECT_TRUE(OwnsChunk(*view, "node-03", kKey, 0)) << "one replica at least";
  EXPECT_FALSE(OwnsChunk(*view, "stranger", kKey, 3));
  EXPECT_TRUE(OwnsChunk(*MakeView(3), "node-02", kKey, 3)) << "as many replicas as members";
  EXPECT_TRUE(OwnsChunk(*MakeView(1), "node-00", kKey, 1)) << "alone";
  EXPECT_TRUE(OwnsChunk(*MakeView(0), "node-00", kKey, 1));
}

TEST(ChunkTrees, AreKeptUntilOthersCome) {
  ChunkTrees trees(2, 3);
  const ViewPtr view = MakeView(5);
  const ReaderIds readers = Readers({"node-01", "node-02"});
  const auto first = trees.Get(view, nullptr, 1);
  EXPECT_EQ(trees.Get(view, nullptr, 1), first);
  EXPECT_NE(trees.Get(view, readers, 1), first);
  EXPECT_NE(trees.Get(MakeView(5), nullptr, 1), first) << "another view, if of the same members";
  EXPECT_EQ(trees.Get(view, nullptr, 1), first);
  trees.Get(view, nullptr, 2);
  EXPECT_EQ(trees.size(), 3U);
  EXPECT_EQ(trees.Get(view, nullptr, 1), first) << "the one used last stays";
  for (uint64_t key = 10; key < 100; ++key) trees.Get(view, nullptr, key % 7);
  EXPECT_EQ(trees.size(), 3U);
}

}  // namespace
}  // namespace dartfs::p2p
