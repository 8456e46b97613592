// One simulated node: the real pure parts, what it holds, what it fetches, what it sends.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "p2p/chunk_tree.h"
#include "p2p/membership.h"
#include "p2p/owner_history.h"
#include "p2p/peer_table.h"
#include "p2p/reader_sets.h"
#include "p2p/reader_tracking.h"
#include "p2p/route.h"
#include "sim/options.h"

namespace dartfs::sim {

using TransferId = uint64_t;

// Of which version bytes are, from 1 on; 0: none; from kGarbage on: of none, as a liar sent them.
using Content = uint32_t;
inline constexpr Content kGarbage = Content{1} << 31;

// What a node has of one version; a DART node, which knows of none, of all together.
struct Copy {
  std::vector<Content> blocks;    // 0: not held
  std::vector<bool> from_origin;  // all of that block
  uint32_t held = 0;
  bool verified = false;  // its digest
  p2p::Trust trust = p2p::Trust::kTree;
};

// Of one version, at one node: what flights go by.
using BlockKey = uint64_t;
inline BlockKey KeyOf(uint32_t version, uint32_t block) {
  return (BlockKey{version} << 32) | block;
}
inline uint32_t VersionOf(BlockKey key) { return static_cast<uint32_t>(key >> 32); }
inline uint32_t BlockOf(BlockKey key) { return static_cast<uint32_t>(key); }

// A block on its way from one to another.
struct Transfer {
  uint32_t from = 0;
  uint32_t to = 0;
  BlockKey key = 0;         // as the receiver calls it
  BlockKey sender_key = 0;  // and its sender
  p2p::AttemptId attempt = 0;
  uint32_t next = 0;  // granule to be sent
  uint32_t hop = 0;
  std::vector<std::string> path = {};  // of the request
  bool with_url = false;
  core::Duration patience{};
  bool accepted = false;
  bool started = false;                         // a granule was sent
  bool queued = false;                          // in its sender's turn
  bool cut = false;                             // nothing arrives any more
  core::TimePoint mute_at = core::kNoDeadline;  // it is given up unless it has begun
  p2p::PeerFailure::Kind mute_as = p2p::PeerFailure::Kind::kBusy;
  bool named = false;   // the answer names the object
  Content listed = 0;   // what its checksums are of; 0: it has none
  Content content = 0;  // of the origin's answer
  core::TimePoint last_arrival{};
};

struct Flight {
  std::unique_ptr<p2p::Route> route;
  std::vector<std::string> path;  // and hops, of the request that has begun it
  uint32_t hop = 0;
  std::vector<Content> got;  // granules, which may be passed on
  Content listed = 0;
  bool from_origin = true;                      // all of them
  bool read_here = false;                       // this node's reader wants it
  std::vector<TransferId> in;                   // from peers or the origin
  std::vector<TransferId> out;                  // to those who joined
  core::TimePoint mute_at = core::kNoDeadline;  // the earliest of theirs
  core::TimePoint wake = core::kNoDeadline;
};

struct Node {
  std::string id;
  std::string addr;
  bool up = true;
  bool stopped = false;
  bool has_crashed = false;
  bool has_stopped = false;
  bool dart = false;
  Lie lie = Lie::kNone;
  double rate = 1;  // of what the others send in a second

  p2p::ViewPtr view;
  std::unique_ptr<p2p::OwnerHistory> history;
  p2p::RouteOptions route_options;
  std::unique_ptr<p2p::PeerTable> peers;
  std::unique_ptr<p2p::Membership> members;
  uint32_t boots = 0;
  uint64_t members_published = 0;  // their generation
  bool publishing = false;
  p2p::ReaderTrackingOptions tracking_options;
  std::unique_ptr<p2p::ReaderTracking> tracking;
  uint64_t track_wakes = 0;
  std::unique_ptr<p2p::ReaderSets> sets;

  std::map<uint32_t, Copy> copies;               // by version
  std::unordered_map<BlockKey, Flight> flights;  // of all versions
  core::TimePoint wakes = core::kNoDeadline;     // the earliest of theirs that is an event
  uint32_t probed = 0;                           // the version that the origin named last
  p2p::TokenBucket probes{{.per_second = 1, .burst = 4, .reserve = 0}, core::TimePoint{}};

  bool reads = false;
  bool opened = false;           // since it was started
  uint32_t version = 0;          // that its reader has open
  uint32_t read_next = 0;        // the first block that its reader has not got
  core::TimePoint wanted_at{};   // since when it waits for that one
  core::Duration worst_block{};  // that it has waited
  bool done = false;

  std::deque<TransferId> turn;  // those that could send now
  bool sending = false;
  core::TimePoint receiving_until{};
  uint64_t bytes_sent = 0;
  uint64_t roster_bytes = 0;   // in and out
  uint64_t tracker_bytes = 0;  // in and out
};

}  // namespace dartfs::sim
