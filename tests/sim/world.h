// World: nodes, a network and an origin on a virtual clock. The nodes decide with the real parts of
// src/p2p; the world carries what they say and breaks what it is told to break. Single-threaded;
// checks its invariants as it goes and dies of the first that does not hold.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "fake/seeded_random.h"
#include "sim/event_kind.h"
#include "sim/event_queue.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/options.h"
#include "sim/report.h"
#include "sim/slots.h"

namespace dartfs::sim {

class World {
 public:
  explicit World(Options options);
  ~World();

  // What befalls a node, by its number, at a moment of virtual time.
  void CrashAt(core::Duration at, uint32_t node);
  // `moved`: at an address of its own that is new.
  void RestartAt(core::Duration at, uint32_t node, bool warm, bool moved = false);
  void StopAt(core::Duration at, uint32_t node);
  void ContinueAt(core::Duration at, uint32_t node);
  void SlowDownAt(core::Duration at, uint32_t node, double rate);
  // Two that are dead by then come back empty, each at the other's address.
  void ExchangeAt(core::Duration at, uint32_t a, uint32_t b);
  // And the network, and the origin. Each node is on a random side, one share of them on the first.
  void PartitionAt(core::Duration at, double share);
  void BlockDialsAt(core::Duration at, uint32_t from, uint32_t to);
  void HealAt(core::Duration at);
  void OriginRateAt(core::Duration at, double bytes_per_second);
  // Whoever asks it until then is put off.
  void OriginDownAt(core::Duration at, core::Duration length);
  void ChangeVersionAt(core::Duration at);  // of a versioned object

  // Until every reader that lives has finished, or `limit` of virtual time since the beginning.
  Report Run(core::Duration limit);
  // And on, though there is nothing to be done.
  void Idle(core::Duration length);
  // All forget what they hold and read anew; Run reports that reading.
  void ReadAgain();
  // Once it has idled long enough: empty, or what has not come to rest.
  std::string Unsettled() const;

  const Options& options() const { return options_; }
  uint32_t OwnerOf(uint32_t chunk) const;
  uint32_t ParentOf(uint32_t chunk, uint32_t node) const;
  const Node& node(uint32_t number) const { return nodes_[number]; }
  // The time in which the last node would have the object if each link carried its part without a
  // pause: the bytes at the rate of the slowest link (the origin's, or a node's over its children),
  // the origin's first byte, and a granule's way for each level of the first chunk's tree.
  core::Duration IdealPipeline() const;

 private:
  using FailureKind = p2p::PeerFailure::Kind;

  void Handle(const Event& event);
  void HandleFlight(const Event& event);
  void HandleMembers(const Event& event);
  void HandleFault(const Event& event);
  void Later(core::Duration in, EventKind kind, uint32_t node, uint64_t a = 0, uint64_t b = 0);
  uint32_t origin() const { return options_.nodes; }

  // A reader, and its node's flights: world_flights.cc.
  void Open(uint32_t node);
  void Read(uint32_t node);
  Flight& StartFlight(uint32_t node, BlockKey key, const Transfer* for_whom);
  bool IsNewOwner(const Node& node, uint32_t block);
  void Drive(uint32_t node, BlockKey key);
  void WakeAt(uint32_t node, Flight& flight, core::TimePoint at);
  void Wake(uint32_t node);
  void Ask(uint32_t node, BlockKey key, const p2p::RouteStep& step);
  void CancelAttempt(Flight& flight, p2p::AttemptId attempt);
  void Whole(uint32_t node, BlockKey key, p2p::AttemptId by);
  void Store(uint32_t node, BlockKey key, const Flight& flight);
  bool Verify(Node& node, uint32_t version);
  void Abandon(uint32_t node, BlockKey key);
  void ReleaseIfUnwanted(uint32_t node, BlockKey key);
  void CheckNoCycle(uint32_t node, BlockKey key);
  void Finish(uint32_t node);
  Copy& CopyOf(Node& node, uint32_t version);
  bool Holds(const Node& node, BlockKey key) const;

  // What comes by the network: world_transfers.cc.
  void OnAsk(TransferId id);
  void OnOriginAsk(TransferId id);
  bool ChooseCopy(uint32_t node, Transfer& transfer);
  uint32_t Probe(Node& node);
  void Admit(TransferId id);
  bool HasRoom(const Node& node) const;
  void Accept(Transfer& transfer);
  void OnLost(TransferId id, FailureKind kind);
  void OnGranule(TransferId id, uint32_t granule, Content content);
  std::optional<FailureKind> Judge(const Transfer& transfer, Content content) const;
  void OnCancel(TransferId id);
  void Mute(uint32_t node, BlockKey key);
  void OnTimeOut(TransferId id, bool unless_begun);
  void Lose(TransferId id, FailureKind kind);
  void Withdraw(TransferId id);

  // Sending: a granule at a time, one transfer after another.
  uint32_t Available(const Transfer& transfer) const;
  Content ContentOf(const Transfer& transfer, uint32_t granule) const;
  void Offer(TransferId id);
  void Send(uint32_t node);
  bool HoldsUp(TransferId id, const Transfer& transfer);
  void SendGranule(TransferId id, Transfer& transfer);

  // Who is a member, who reads: world_members.cc.
  void StartMembership(uint32_t node);
  void Introduce(Node& node);
  void Tick(uint32_t node);
  void CallRoster(uint32_t node, const std::string& addr, bool wants_roster);
  void OnRosterAsk(uint32_t node, uint32_t from, uint64_t epoch);
  void OnRosterAnswer(uint32_t node, uint32_t from, uint64_t roster);
  void OnEpochOf(uint32_t node, uint32_t other);
  void PublishSoon(uint32_t node);
  void Publish(uint32_t node);
  p2p::ViewPtr RosterOf(const Node& node);
  p2p::ViewPtr Intern(std::vector<p2p::Member> members);
  void PublishView();
  void TakeView(uint32_t node, const p2p::ViewPtr& view);
  void Track(uint32_t node);
  void OnTrackerAsk(uint32_t node, uint32_t from, bool leave);
  void OnTrackerAnswer(uint32_t node, uint64_t set, core::Duration lease);
  p2p::ChunkTreePtr TreeOf(const Node& node, uint32_t block);

  // world_faults.cc.
  void Crash(uint32_t node);
  void Restart(uint32_t node, bool warm);
  void Exchange(uint32_t a, uint32_t b);
  void Partition(double share);
  void Continue(uint32_t node);

  uint32_t GranulesOf(uint32_t block) const;
  uint64_t BytesOf(uint32_t block, uint32_t granule) const;
  double RateOf(uint32_t node) const;

  const Options options_;
  core::SeededRandom random_;
  Network network_{options_, random_};
  EventQueue events_;
  std::vector<Node> nodes_;  // the last is the origin: it only sends
  std::unordered_map<std::string, uint32_t> by_id_;
  std::vector<uint64_t> keys_;  // by chunk
  uint64_t file_key_ = 0;
  p2p::ChunkTrees trees_;
  Slots<Transfer> transfers_;
  std::vector<p2p::ViewPtr> views_;
  std::unordered_map<uint64_t, std::vector<std::weak_ptr<const p2p::View>>> interned_;
  // On their way, by number.
  std::unordered_map<uint64_t, p2p::ViewPtr> rosters_;
  std::unordered_map<uint64_t, p2p::ReaderIds> reader_sets_;
  uint64_t next_letter_ = 1;
  std::unordered_map<uint32_t, std::vector<Event>> held_back_;  // of stopped nodes
  uint32_t block_count_ = 0;
  uint32_t unfinished_ = 0;
  uint32_t moves_ = 0;
  uint32_t fakes_ = 0;
  double origin_rate_;
  core::TimePoint origin_down_until_{};
  std::unique_ptr<p2p::TokenBucket> origin_bucket_;
  uint32_t version_ = 1;  // that the origin serves
  uint64_t origin_bytes_before_ = 0;
  core::TimePoint reading_since_{};
  Report report_;
};

}  // namespace dartfs::sim
