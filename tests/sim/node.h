// One simulated node: the real pure parts, what it holds, what it fetches, what it sends.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "p2p/chunk_tree.h"
#include "p2p/peer_table.h"
#include "p2p/route.h"

namespace dartfs::sim {

using TransferId = uint64_t;

// A block on its way from one to another.
struct Transfer {
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t block = 0;
  p2p::AttemptId attempt = 0;
  uint32_t next = 0;  // granule to be sent
  uint32_t hop = 0;
  std::vector<std::string> path = {};  // of the request
  bool with_url = false;
  bool accepted = false;
  bool queued = false;  // in its sender's turn
};

struct Flight {
  std::unique_ptr<p2p::Route> route;
  std::vector<std::string> path;  // and hops, of the request that has begun it
  uint32_t hop = 0;
  uint32_t got = 0;             // granules that may be passed on
  bool read_here = false;       // this node's reader wants it
  std::vector<TransferId> in;   // from peers or the origin
  std::vector<TransferId> out;  // to those who joined
  uint64_t wakes = 0;           // the last one's number; earlier ones are void
};

struct Node {
  std::string id;
  bool up = true;
  bool stopped = false;
  bool has_crashed = false;
  bool has_stopped = false;
  bool dart = false;

  std::shared_ptr<const p2p::View> view;
  core::TimePoint view_changed{};
  std::shared_ptr<const p2p::View> view_before;
  p2p::RouteOptions route_options;
  std::unique_ptr<p2p::PeerTable> peers;

  std::vector<bool> held;
  uint32_t held_count = 0;
  std::unordered_map<uint32_t, Flight> flights;  // by block

  bool reads = false;
  uint32_t read_next = 0;        // the first block that its reader has not got
  core::TimePoint wanted_at{};   // since when it waits for that one
  core::Duration worst_block{};  // that it has waited
  bool done = false;

  std::deque<TransferId> turn;  // those that could send now
  bool sending = false;
  core::TimePoint receiving_until{};
  uint64_t bytes_sent = 0;
};

}  // namespace dartfs::sim
