#include "p2p/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "p2p/route.h"

namespace dartfs::p2p {
namespace {

// The rank of WIRE.md's golden values: 03 04 05 07 08 00 09 06 01 02.
constexpr uint64_t kKey = 0xdeadbeefcafebabe;

std::string Name(size_t i) { return "node-0" + std::to_string(i); }

class AdmissionTest : public ::testing::Test {
 protected:
  AdmissionTest() {
    std::vector<Member> members;
    for (size_t i = 0; i < 10; ++i) members.push_back({.id = Name(i), .addr = Name(i) + ":1"});
    tree_ = std::make_unique<ChunkTree>(std::make_shared<View>(members), nullptr, kKey, 2);
  }
  Admission At(const std::string& self, bool has_room = true) const {
    return Admit(*tree_, self, ask_, status_, has_room);
  }
  std::unique_ptr<ChunkTree> tree_;
  BlockAsk ask_{.hop = 1, .path = {"node-07"}};
  BlockStatus status_;
};

TEST_F(AdmissionTest, WhatIsHeldIsServedToAnybody) {
  status_.held = true;
  ask_.has_url = false;
  EXPECT_EQ(At("node-02", false), Admission::kServe);
  ask_.path.clear();
  EXPECT_EQ(At("node-02"), Admission::kServe);
}

TEST_F(AdmissionTest, WhatIsNotHeldIsFetchedWhereThereIsAUrl) {
  EXPECT_EQ(At("node-05"), Admission::kRelay);
  EXPECT_EQ(At("node-05", false), Admission::kBusy);
  ask_.has_url = false;
  EXPECT_EQ(At("node-05"), Admission::kDecline);
}

TEST_F(AdmissionTest, TheHopLimitDeclines) {
  for (const uint32_t hop : {0U, 1U, kMaxHop - 1}) {
    ask_.hop = hop;
    EXPECT_EQ(At("node-05"), Admission::kRelay) << hop;
  }
  for (const uint32_t hop : {kMaxHop, kMaxHop + 1, UINT32_MAX}) {
    ask_.hop = hop;
    EXPECT_EQ(At("node-05"), Admission::kDecline) << hop;
  }
}

TEST_F(AdmissionTest, ARequestThatComesBackIsDeclined) {
  ask_.path = {"node-01", "node-05", "node-07"};
  EXPECT_EQ(At("node-05"), Admission::kDecline);
  EXPECT_EQ(At("node-04"), Admission::kRelay);
}

TEST_F(AdmissionTest, NobodyJoinsAFlightThatWaitsForHim) {
  status_.in_flight = true;
  status_.sources = {"node-04"};
  EXPECT_EQ(At("node-05"), Admission::kJoin);
  EXPECT_EQ(At("node-05", false), Admission::kBusy);
  ask_.path = {"node-04", "node-07"};
  EXPECT_EQ(At("node-05"), Admission::kDecline);
  status_.at_origin = true;
  status_.sources.clear();
  EXPECT_EQ(At("node-05"), Admission::kJoin);
}

// A, which waits for B, which waits for C: C may not wait for A, though neither B nor C is A's.
TEST_F(AdmissionTest, WhoStandsBeforeUsDoesNotWaitForUs) {
  ask_.path = {"node-04"};
  EXPECT_EQ(At("node-05"), Admission::kDecline);
  status_.in_flight = true;
  status_.sources = {"node-03"};
  EXPECT_EQ(At("node-05"), Admission::kDecline);
  status_.at_origin = true;
  EXPECT_EQ(At("node-05"), Admission::kJoin) << "we wait for nobody";
  status_ = {};
  ask_.path = {"node-11"};  // no member, and before the owner perhaps
  EXPECT_EQ(At("node-03"), Admission::kRelay) << "the owner goes to the origin";
}

TEST_F(AdmissionTest, WithoutAUrlOnlyWhatComesFromTheOriginIsJoined) {
  ask_.has_url = false;
  status_.in_flight = true;
  status_.sources = {"node-03"};
  EXPECT_EQ(At("node-04"), Admission::kDecline);
  status_.at_origin = true;
  EXPECT_EQ(At("node-04"), Admission::kJoin);
}

TEST_F(AdmissionTest, ADartNodeIsLetWait) {
  ask_.path.clear();
  EXPECT_EQ(At("node-05"), Admission::kRelay);
  status_.in_flight = true;
  status_.sources = {"node-03"};
  EXPECT_EQ(At("node-05"), Admission::kJoin);
}

// Nodes that see different members and readers, and of whom some are down for some, fetch one
// block. Whoever waits for whom, there is no way round.
class WaitingTest : public ::testing::Test {
 protected:
  struct Node {
    std::string id;
    ChunkTreePtr tree;
    std::unique_ptr<PeerTable> peers;
    RouteOptions options;
    std::unique_ptr<Route> route;
    std::vector<std::string> path = {};  // of the request that has begun it
    AttemptId attempt = 0;               // that it waits for
  };

  void Make(size_t count) {
    nodes_.clear();
    for (size_t i = 0; i < count; ++i) {
      Node node;
      node.id = Name(i);
      std::vector<Member> members;
      std::vector<std::string> readers;
      for (size_t k = 0; k < count; ++k) {
        if (k != i && random_() % 4 == 0) continue;
        members.push_back({.id = Name(k), .addr = Name(k) + ":1"});
        if (random_() % 2 == 0) readers.push_back(Name(k));
      }
      const ReaderIds ids = std::make_shared<std::vector<std::string>>(readers);
      node.tree = std::make_shared<ChunkTree>(std::make_shared<View>(members),
                                              random_() % 2 == 0 ? ids : nullptr, kKey, 2);
      node.peers = std::make_unique<PeerTable>(PeerTableOptions{});
      node.options.self = node.id;
      for (size_t k = 0; k < count; ++k) {
        if (random_() % 8 == 0) node.peers->breaker().OnHardFailure(Name(k), now_);
        if (random_() % 8 == 0) node.peers->OnSilent(Name(k), now_);
      }
      nodes_.emplace(node.id, std::move(node));
    }
  }
  void Start(Node& node, std::vector<std::string> path) {
    RouteRequest request;
    request.tree = node.tree;
    request.origin = "o";
    request.new_owner = random_() % 2 == 0;
    request.path = path;
    node.path = std::move(path);
    node.route = std::make_unique<Route>(node.options, *node.peers, std::move(request), now_);
  }
  // Does what a node's route says until it waits for somebody, or for the origin.
  void Drive(Node& node) {
    while (const auto step = node.route->Next(now_)) {
      if (step->kind == RouteStep::Kind::kAskOrigin) return;
      ASSERT_EQ(step->kind, RouteStep::Kind::kAskPeer);
      node.attempt = step->attempt;
      std::vector<std::string> way = node.path;
      way.push_back(node.id);
      if (Ask(nodes_.at(step->peer), *step, way)) return;
      node.route->OnFailure(step->attempt, {}, now_);
    }
  }
  // Something happens to a node: a reader comes, or whom it waits for fails.
  void Stir(Node& node) {
    if (node.route == nullptr) {
      Start(node, {});
    } else if (!node.route->sources().empty()) {
      node.route->OnFailure(node.attempt, {}, now_);
    }
    Drive(node);
  }
  // Whether the peer lets it wait.
  bool Ask(Node& peer, const RouteStep& step, const std::vector<std::string>& way) {
    BlockAsk ask{.hop = static_cast<uint32_t>(way.size()), .has_url = step.with_url, .path = way};
    BlockStatus status;
    status.in_flight = peer.route != nullptr;
    if (status.in_flight) {
      status.at_origin = peer.route->at_origin();
      status.sources = peer.route->sources();
    }
    switch (Admit(*peer.tree, peer.id, ask, status, true)) {
      case Admission::kJoin:
        ++joins_;
        return true;
      case Admission::kRelay:
        ++relays_;
        Start(peer, way);
        Drive(peer);
        return true;
      default:
        return false;
    }
  }
  bool HasCycle() {
    for (const auto& [id, node] : nodes_) {
      std::vector<std::string> seen = {id};
      for (std::deque<std::string> next = {id}; !next.empty(); next.pop_front()) {
        const auto& at = nodes_.at(next.front());
        if (at.route == nullptr) continue;
        for (const std::string& source : at.route->sources()) {
          if (source == id) return true;
          if (std::find(seen.begin(), seen.end(), source) != seen.end()) continue;
          seen.push_back(source);
          next.push_back(source);
        }
      }
    }
    return false;
  }

  core::TimePoint now_ = core::TimePoint(std::chrono::seconds(1000));
  std::mt19937_64 random_{11};
  std::map<std::string, Node> nodes_;
  size_t joins_ = 0;
  size_t relays_ = 0;
};

TEST_F(WaitingTest, NoCycleClosesWhateverTheViews) {
  for (int round = 0; round < 10000; ++round) {
    Make(2 + random_() % 9);
    for (size_t i = 0; i < 3 * nodes_.size(); ++i) {
      Stir(nodes_.at(Name(random_() % nodes_.size())));
      ASSERT_FALSE(HasCycle()) << round;
    }
  }
  EXPECT_GT(joins_, 1000U);
  EXPECT_GT(relays_, 10000U);
}

}  // namespace
}  // namespace dartfs::p2p
