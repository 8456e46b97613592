// RouteTest: one route in a cluster of ten, told in words like "04", "origin".
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "p2p/route.h"

namespace dartfs::p2p {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = PeerFailure::Kind;

// The rank of WIRE.md's golden values: 03 04 05 07 08 00 09 06 01 02, parents -1 0 1 2 1 4 0 6 7 6.
inline constexpr uint64_t kKey = 0xdeadbeefcafebabe;

class RouteTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Member> members;
    for (int i = 0; i < 10; ++i) {
      const std::string id = "node-0" + std::to_string(i);
      members.push_back({.id = id, .addr = id + ":1"});
    }
    request_.tree = std::make_shared<ChunkTree>(std::make_shared<View>(members), nullptr, kKey, 2);
    request_.origin = "origin.example";
    request_.changed = [this] { ++changes_; };
    Reset({});
  }
  void Reset(PeerTableOptions options) {
    route_.reset();
    peers_ = std::make_unique<PeerTable>(options);
  }
  // p99 of 40 ms, and credit for a hedge.
  void Learn() {
    for (int i = 0; i < 16; ++i) peers_->latencies().Add(milliseconds(40));
    for (int i = 0; i < 20; ++i) peers_->hedge_budget().OnFetch();
  }
  void Begin(const std::string& self) {
    options_.self = self;
    route_ = std::make_unique<Route>(options_, *peers_, request_, now_);
  }
  // The steps that are due: "04" asks node-04, "(04)" for what it holds alone, "origin", "-2" gives
  // up attempt 2.
  std::string Steps() {
    std::string text;
    while (const auto step = route_->Next(now_)) {
      if (!text.empty()) text += " ";
      if (step->kind == RouteStep::Kind::kCancel) {
        text += "-" + std::to_string(step->attempt);
      } else if (step->kind == RouteStep::Kind::kAskOrigin) {
        text += "origin";
      } else {
        const std::string peer = step->peer.substr(5);
        EXPECT_EQ(step->addr, step->peer + ":1");
        text += step->with_url ? peer : "(" + peer + ")";
      }
    }
    return text;
  }
  std::string Fail(AttemptId attempt, Kind kind, core::Duration retry_after = {}) {
    route_->OnFailure(attempt, {kind, retry_after}, now_);
    return Steps();
  }
  std::string Pass(core::Duration time) {
    now_ += time;
    return Steps();
  }
  Circuit CircuitOf(const std::string& peer) { return peers_->breaker().Of(peer, now_); }

  core::TimePoint now_ = core::TimePoint(seconds(1000));
  RouteOptions options_;
  RouteRequest request_;
  std::unique_ptr<PeerTable> peers_;
  std::unique_ptr<Route> route_;
  int changes_ = 0;
};

}  // namespace dartfs::p2p
