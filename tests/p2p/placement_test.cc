#include "p2p/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace dartfs::p2p {
namespace {

constexpr uint64_t kKey = 0xdeadbeefcafebabe;

class PlacementTest : public ::testing::Test {
 protected:
  void Add(const std::string& id, double weight = 1) {
    ids_.push_back(id);
    weights_.push_back(weight);
  }
  std::vector<PlacedNode> Nodes() const {
    std::vector<PlacedNode> nodes;
    for (size_t i = 0; i < ids_.size(); ++i) nodes.push_back({ids_[i], weights_[i]});
    return nodes;
  }
  std::string Order(uint64_t key) const {
    std::string text;
    for (const uint32_t index : Rank(key, Nodes())) {
      text += (text.empty() ? "" : " ") + ids_[index];
    }
    return text;
  }

  std::vector<std::string> ids_;
  std::vector<double> weights_;
};

TEST_F(PlacementTest, NodeHashesAreTheWires) {
  EXPECT_EQ(NodeHash(0, "node-a"), 16511540948091628860U);
  EXPECT_EQ(NodeHash(1, "node-a"), 16141481610525751987U);
  EXPECT_EQ(NodeHash(0, "node-b"), 16852417870494220010U);
  EXPECT_EQ(NodeHash(kKey, "node-0"), 15394106576409441172U);
  EXPECT_EQ(NodeHash(42, "kube-node-01"), 16063926426682601568U);
  EXPECT_EQ(NodeHash(UINT64_MAX, "n"), 8170348174710897647U);
}

TEST_F(PlacementTest, RanksAreTheWires) {
  for (int i = 0; i < 10; ++i) Add("0" + std::to_string(i));
  for (std::string& id : ids_) id = "node-" + id;
  EXPECT_EQ(Order(kKey),
            "node-03 node-04 node-05 node-07 node-08 node-00 node-09 node-06 node-01 node-02");
}

TEST_F(PlacementTest, WeightedRanksAreTheWires) {
  Add("wn-1");
  Add("wn-2");
  Add("wn-3", 2);
  Add("wn-4", 4);
  EXPECT_EQ(Order(kKey), "wn-4 wn-3 wn-2 wn-1");
  EXPECT_EQ(Order(42), "wn-1 wn-3 wn-4 wn-2");
  EXPECT_EQ(Order(7), "wn-4 wn-2 wn-1 wn-3");
  EXPECT_EQ(Order(1024), "wn-2 wn-3 wn-4 wn-1");
}

TEST_F(PlacementTest, NoWeightIsOne) {
  Add("a", 0);
  Add("b", -3);
  Add("c", 1);
  const std::string mixed = Order(5);
  weights_ = {1, 1, 1};
  EXPECT_EQ(Order(5), mixed);
}

TEST_F(PlacementTest, TheOrderDoesNotDependOnTheListsAndTopIsItsBeginning) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    ids_.clear();
    weights_.clear();
    const size_t count = random() % 20;
    for (size_t i = 0; i < count; ++i) {
      Add("n" + std::to_string(i), round % 2 == 0 ? 1 : 1 + static_cast<double>(random() % 4));
    }
    const uint64_t key = random();
    const std::string order = Order(key);
    const auto whole = Rank(key, Nodes());
    EXPECT_EQ(std::set<uint32_t>(whole.begin(), whole.end()).size(), count);
    for (size_t top = 0; top <= count + 1; ++top) {
      auto first = whole;
      first.resize(std::min(top, count));
      EXPECT_EQ(RankTop(key, Nodes(), top), first) << top;
    }
    std::vector<size_t> shuffle(count);
    for (size_t i = 0; i < count; ++i) shuffle[i] = i;
    std::shuffle(shuffle.begin(), shuffle.end(), random);
    const auto ids = ids_;
    const auto weights = weights_;
    for (size_t i = 0; i < count; ++i) {
      ids_[i] = ids[shuffle[i]];
      weights_[i] = weights[shuffle[i]];
    }
    EXPECT_EQ(Order(key), order);
  }
}

// Who comes or goes changes nothing about the others' order.
TEST_F(PlacementTest, AMemberThatGoesDisruptsNothingElse) {
  for (int i = 0; i < 12; ++i) Add("m" + std::to_string(i), i % 3 == 0 ? 2 : 1);
  for (uint64_t key = 0; key < 100; ++key) {
    std::vector<std::string> before;
    for (const uint32_t index : Rank(key, Nodes())) before.push_back(ids_[index]);
    const std::string gone = before[key % before.size()];
    std::vector<PlacedNode> rest = Nodes();
    std::erase_if(rest, [&gone](const PlacedNode& node) { return node.id == gone; });
    std::erase(before, gone);
    std::vector<std::string> after;
    for (const uint32_t index : Rank(key, rest)) after.emplace_back(rest[index].id);
    EXPECT_EQ(after, before) << key;
  }
}

TEST_F(PlacementTest, OwnershipFollowsTheWeights) {
  Add("light", 1);
  Add("heavy", 3);
  int heavy = 0;
  constexpr int kKeys = 20000;
  for (int key = 0; key < kKeys; ++key) {
    heavy += ids_[RankTop(static_cast<uint64_t>(key), Nodes(), 1).front()] == "heavy" ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(heavy) / kKeys, 0.75, 0.02);
}

}  // namespace
}  // namespace dartfs::p2p
