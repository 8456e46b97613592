// World: nodes, a network and an origin on a virtual clock. The nodes decide with the real Route,
// Admit, ChunkTree, Breaker; the world carries what they say and breaks what it is told to break.
// Single-threaded; checks its invariants as it goes and dies of the first that does not hold.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fake/seeded_random.h"
#include "sim/event_queue.h"
#include "sim/node.h"
#include "sim/options.h"

namespace dartfs::sim {

struct Report {
  uint64_t blocks = 0;
  uint64_t origin_fetches = 0;     // begun
  uint64_t origin_bytes = 0;       // sent
  double origin_per_block = 0;     // bytes over the object's
  core::Duration last_finished{};  // since the beginning; of those that never crashed:
  core::Duration last_survivor{};
  uint32_t finished = 0;  // readers
  uint32_t readers = 0;
  uint64_t busiest_bytes = 0;  // sent by one node
  uint32_t deepest = 0;        // of the first chunk's tree
  uint64_t hedges = 0;
  uint64_t failovers = 0;
  uint64_t events = 0;
  core::Duration worst_block{};  // that a reader waited, whose node neither crashed nor stopped
};

class World {
 public:
  explicit World(Options options);
  ~World();

  // Faults, by the node's number, at a moment of virtual time.
  void CrashAt(core::Duration at, uint32_t node);
  void RestartAt(core::Duration at, uint32_t node, bool warm);
  void StopAt(core::Duration at, uint32_t node);
  void ContinueAt(core::Duration at, uint32_t node);

  // Until every reader that lives has finished, or `limit` of virtual time.
  Report Run(core::Duration limit);

  const Options& options() const { return options_; }
  uint32_t OwnerOf(uint32_t chunk) const;
  uint32_t ParentOf(uint32_t chunk, uint32_t node) const;
  const Node& node(uint32_t number) const { return nodes_[number]; }
  // The time in which the last node would have the object if each link carried its part without a
  // pause: see the README.
  core::Duration IdealPipeline() const;

 private:
  enum Kind : uint16_t {
    kStart,    // its reader
    kAsk,      // a: transfer
    kLost,     // a: transfer, b: PeerFailure::Kind
    kSent,     // its link is free
    kGranule,  // a: transfer, b: granule
    kCancel,   // a: transfer
    kMute,     // a: transfer of a DART node that may have no byte yet
    kWake,     // a: block, b: number
    kCrash,
    kRestart,  // a: warm
    kStop,
    kContinue,
    kForget,  // a member that may be dead still
    kView,    // a: number of the view
  };

  using FailureKind = p2p::PeerFailure::Kind;

  void Handle(const Event& event);
  void Later(core::Duration in, Kind kind, uint32_t node, uint64_t a = 0, uint64_t b = 0);
  core::Duration Latency();

  // A reader, and its node's flights.
  void Read(uint32_t node);
  Flight& StartFlight(uint32_t node, uint32_t block, const std::vector<std::string>& path,
                      uint32_t hop);
  bool IsNewOwner(const Node& node, uint32_t block);
  void Drive(uint32_t node, uint32_t block);
  void Ask(uint32_t node, uint32_t block, const p2p::RouteStep& step);
  void CancelAttempt(Flight& flight, p2p::AttemptId attempt);
  void Whole(uint32_t node, uint32_t block, p2p::AttemptId by);
  void CheckNoCycle(uint32_t node, uint32_t block);

  // What comes by the network.
  void OnAsk(TransferId id);
  void OnLost(TransferId id, FailureKind kind);
  void OnGranule(TransferId id, uint32_t granule);
  void OnCancel(TransferId id);
  void OnMute(TransferId id);

  // Sending: a granule at a time, one transfer after another.
  uint32_t Available(const Transfer& transfer) const;
  void Offer(TransferId id);
  void Send(uint32_t node);
  void Lose(TransferId id, FailureKind kind);

  void Crash(uint32_t node);
  void Restart(uint32_t node, bool warm);
  void Continue(uint32_t node);
  void PublishView();
  void TakeView(uint32_t node, const p2p::ViewPtr& view);
  p2p::ChunkTreePtr TreeOf(const p2p::ViewPtr& view, uint32_t block);
  uint32_t GranulesOf(uint32_t block) const;
  uint64_t BytesOf(uint32_t block, uint32_t granule) const;
  void Finish(uint32_t node);

  const Options options_;
  core::SeededRandom random_;
  EventQueue events_;
  std::vector<Node> nodes_;  // the last is the origin: it only sends
  std::unordered_map<std::string, uint32_t> by_id_;
  std::vector<uint64_t> keys_;  // by chunk
  p2p::ChunkTrees trees_;
  std::unordered_map<TransferId, Transfer> transfers_;
  TransferId next_transfer_ = 1;
  std::vector<p2p::ViewPtr> views_;
  std::unordered_map<uint32_t, std::vector<Event>> held_back_;  // of stopped nodes
  uint32_t block_count_ = 0;
  uint32_t unfinished_ = 0;
  Report report_;
};

}  // namespace dartfs::sim
