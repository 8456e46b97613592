// Readers, and their nodes' flights.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "p2p/admission.h"
#include "sim/world.h"

namespace dartfs::sim {
namespace {

using core::Duration;
using core::TimePoint;
using p2p::RouteStep;
using p2p::Trust;

constexpr Duration kConnect = std::chrono::seconds(1);
// Of DART's client (WIRE.md section 4).
constexpr Duration kDartFirstByte = std::chrono::seconds(10);
constexpr Duration kDartBlock = std::chrono::seconds(30);
constexpr Duration kLongestWait = std::chrono::seconds(30);

}  // namespace

Copy& World::CopyOf(Node& node, uint32_t version) {
  const auto [at, added] = node.copies.try_emplace(version);
  if (added) {
    at->second.blocks.resize(block_count_);
    at->second.from_origin.resize(block_count_);
  }
  return at->second;
}

bool World::Holds(const Node& node, BlockKey key) const {
  const auto copy = node.copies.find(VersionOf(key));
  return copy != node.copies.end() && copy->second.blocks[BlockOf(key)] != 0;
}

// Its reader opens the object as it is now. A DART node's knows of no versions.
void World::Open(uint32_t number) {
  Node& node = nodes_[number];
  node.opened = true;
  node.version = node.dart ? 0 : Probe(node);
  node.read_next = 0;
  node.wanted_at = events_.now();
  if (node.tracking) {
    node.tracking->OnRead(events_.now());
    Track(number);
  }
  Read(number);
}

void World::Read(uint32_t number) {
  Node& node = nodes_[number];
  const uint32_t before = node.read_next;
  while (node.read_next < block_count_ && Holds(node, KeyOf(node.version, node.read_next))) {
    ++node.read_next;
  }
  const TimePoint now = events_.now();
  if (node.tracking) node.tracking->OnRead(now);
  if (node.read_next != before) {
    node.worst_block = std::max(node.worst_block, now - node.wanted_at);
    node.wanted_at = now;
  }
  if (node.read_next == block_count_) {
    if (Verify(node, node.version)) return Finish(number);
    node.read_next = 0;
    return Read(number);
  }
  const uint32_t end = std::min(block_count_, node.read_next + options_.window_blocks);
  for (uint32_t block = node.read_next; block < end; ++block) {
    const BlockKey key = KeyOf(node.version, block);
    if (Holds(node, key)) continue;
    const auto found = node.flights.find(key);
    if (found == node.flights.end()) {
      StartFlight(number, key, nullptr).read_here = true;
      Drive(number, key);
    } else {
      found->second.read_here = true;
      if (block == node.read_next) found->second.route->MakeUrgent();
    }
  }
}

// Of what is whole. False: some of it was wrong; what others gave is dropped and believed less.
bool World::Verify(Node& node, uint32_t version) {
  if (node.dart || options_.kind != ObjectKind::kContentAddressed) return true;
  Copy& copy = CopyOf(node, version);
  const bool right = std::all_of(copy.blocks.begin(), copy.blocks.end(),
                                 [version](Content content) { return content == version; });
  copy.verified = right;
  if (right) return true;
  ++report_.digest_mismatches;
  // What comes from the origin alone is right: that it lies is not simulated.
  DARTFS_CHECK(copy.trust != Trust::kOrigin);
  copy.trust = copy.trust == Trust::kTree ? Trust::kOwner : Trust::kOrigin;
  for (uint32_t block = 0; block < block_count_; ++block) {
    if (copy.from_origin[block]) continue;
    copy.blocks[block] = 0;
    --copy.held;
  }
  return false;
}

void World::Finish(uint32_t number) {
  Node& node = nodes_[number];
  if (std::exchange(node.done, true)) return;
  const Copy& copy = CopyOf(node, node.version);
  DARTFS_CHECK(copy.held == block_count_);
  if (!node.dart) {
    DARTFS_CHECK(std::all_of(copy.blocks.begin(), copy.blocks.end(),
                             [&node](Content content) { return content == node.version; }));
  }
  --unfinished_;
  ++report_.finished;
  const Duration at = events_.now() - reading_since_;
  report_.last_finished = std::max(report_.last_finished, at);
  if (node.has_crashed) return;
  report_.last_survivor = std::max(report_.last_survivor, at);
  if (!node.dart) report_.last_dartfs = std::max(report_.last_dartfs, at);
}

// For the node's reader, or on behalf of another node.
Flight& World::StartFlight(uint32_t number, BlockKey key, const Transfer* for_whom) {
  Node& node = nodes_[number];
  const uint32_t block = BlockOf(key);
  Flight& flight = node.flights[key];
  p2p::RouteRequest request;
  if (for_whom != nullptr) {
    flight.path = for_whom->path;
    flight.hop = for_whom->hop;
    request.path = for_whom->path;
    if (!for_whom->path.empty()) request.deadline = events_.now() + for_whom->patience;
  }
  request.tree = TreeOf(node, block);
  request.origin = "origin.example";
  request.urgent = for_whom != nullptr || block == node.read_next;
  request.new_owner = IsNewOwner(node, block);
  request.trust = CopyOf(node, VersionOf(key)).trust;
  request.must_be_named = !node.dart && options_.kind == ObjectKind::kVersioned;
  request.changed = [this, number, key] {
    const auto found = nodes_[number].flights.find(key);
    if (found != nodes_[number].flights.end()) WakeAt(number, found->second, events_.now());
  };
  flight.route = std::make_unique<p2p::Route>(node.route_options, *node.peers, std::move(request),
                                              events_.now());
  return flight;
}

// Does what the route says, and comes back when it wants.
void World::Drive(uint32_t number, BlockKey key) {
  Flight& flight = nodes_[number].flights.at(key);
  const TimePoint now = events_.now();
  while (const auto step = flight.route->Next(now)) {
    if (step->kind == RouteStep::Kind::kCancel) {
      CancelAttempt(flight, step->attempt);
    } else {
      Ask(number, key, *step);
    }
  }
  if (flight.route->over()) return Abandon(number, key);
  const TimePoint wake = flight.route->wake_at(now);
  DARTFS_CHECK(wake == core::kNoDeadline || wake - now <= kLongestWait);
  WakeAt(number, flight, wake);
}

void World::WakeAt(uint32_t number, Flight& flight, TimePoint at) {
  Node& node = nodes_[number];
  flight.wake = at;
  at = std::min(at, flight.mute_at);
  if (at >= node.wakes) return;
  node.wakes = at;
  events_.Add(at, kWake, number);
}

void World::Wake(uint32_t number) {
  Node& node = nodes_[number];
  const TimePoint now = events_.now();
  if (now < node.wakes) return;  // of a flight that is over
  node.wakes = core::kNoDeadline;
  std::vector<BlockKey> due;
  for (const auto& [key, flight] : node.flights) {
    if (std::min(flight.wake, flight.mute_at) <= now) due.push_back(key);
  }
  std::sort(due.begin(), due.end());
  for (const BlockKey key : due) {
    if (!node.flights.contains(key)) continue;
    Mute(number, key);
    if (node.flights.contains(key)) Drive(number, key);
  }
  for (auto& [key, flight] : node.flights) WakeAt(number, flight, flight.wake);
}

void World::Ask(uint32_t number, BlockKey key, const RouteStep& step) {
  const Node& node = nodes_[number];
  Flight& flight = nodes_[number].flights.at(key);
  const TransferId id = transfers_.Add({});
  Transfer& transfer = transfers_.At(id);
  transfer.from = origin();
  transfer.to = number;
  transfer.key = key;
  transfer.sender_key = key;
  transfer.attempt = step.attempt;
  transfer.next = static_cast<uint32_t>(flight.got.size());
  transfer.hop = flight.hop + 1;
  transfer.with_url = step.with_url;
  transfer.patience = step.patience;
  flight.in.push_back(id);
  const Duration delay = network_.Latency();
  if (step.kind == RouteStep::Kind::kAskOrigin) {
    Later(delay + options_.origin_first_byte, kAsk, origin(), id);
  } else {
    if (!node.dart) {
      transfer.path = flight.path;
      transfer.path.push_back(node.id);
    }
    const auto to = network_.ListenerAt(step.addr);
    const bool reached = to && network_.CanDial(number, *to) && !network_.Loses();
    if (reached) transfer.from = *to;
    if (reached) {
      Later(delay, kAsk, *to, id);
    } else {
      Later(to || !Network::Refuses(step.addr) ? kConnect : 2 * delay, kLost, number, id,
            static_cast<uint64_t>(FailureKind::kHard));
    }
    if (node.dart) {
      Later(kDartFirstByte, kTimeOut, number, id, 1);
      Later(kDartBlock, kTimeOut, number, id, 0);
    }
  }
}

// Of flights that wait for one another, as far as they told one another: a DART node does not. One
// that asks the origin waits for nobody, though a peer may still answer first.
void World::CheckNoCycle(uint32_t number, BlockKey key) {
  if (options_.dart_share > 0) return;
  std::vector<uint32_t> seen = {number};
  for (size_t i = 0; i < seen.size(); ++i) {
    const auto flight = nodes_[seen[i]].flights.find(key);
    if (flight == nodes_[seen[i]].flights.end() || flight->second.route->at_origin()) continue;
    for (const TransferId id : flight->second.in) {
      const Transfer& transfer = transfers_.At(id);
      if (transfer.from == origin() || !transfer.accepted) continue;
      DARTFS_CHECK(transfer.from != number);
      if (std::find(seen.begin(), seen.end(), transfer.from) == seen.end()) {
        seen.push_back(transfer.from);
      }
    }
  }
}

void World::CancelAttempt(Flight& flight, p2p::AttemptId attempt) {
  for (const TransferId id : flight.in) {
    const Transfer* transfer = transfers_.Find(id);
    if (transfer == nullptr || transfer->attempt != attempt) continue;
    std::erase(flight.in, id);
    // Its sender learns of it, if it is reached: else its connection ends by itself.
    Later(network_.Latency(), kCancel, transfer->from, id);
    return;
  }
}

void World::Whole(uint32_t number, BlockKey key, p2p::AttemptId by) {
  Node& node = nodes_[number];
  Flight& flight = node.flights.at(key);
  DARTFS_CHECK(flight.got.size() == GranulesOf(BlockOf(key)));
  flight.route->OnServed(by, events_.now());
  while (const auto step = flight.route->Next(events_.now())) {
    DARTFS_CHECK(step->kind == RouteStep::Kind::kCancel);
    CancelAttempt(flight, step->attempt);
  }
  DARTFS_CHECK(flight.in.empty());
  report_.hedges += flight.route->counts().hedges;
  Store(number, key, flight);
  const std::vector<TransferId> out = std::move(flight.out);
  const bool read_here = flight.read_here && VersionOf(key) == node.version;
  node.flights.erase(key);
  for (const TransferId id : out) Offer(id);
  if (read_here && !node.done) Read(number);
}

void World::Store(uint32_t number, BlockKey key, const Flight& flight) {
  Node& node = nodes_[number];
  Copy& copy = CopyOf(node, VersionOf(key));
  Content& content = copy.blocks[BlockOf(key)];
  DARTFS_CHECK(content == 0);
  content = flight.got.front();
  for (const Content granule : flight.got) {
    if (granule != VersionOf(key)) content = granule;
  }
  copy.from_origin[BlockOf(key)] = flight.from_origin;
  ++copy.held;
  if (node.dart) return;
  // Only a digest finds out about the whole; everything else is checked before it is stored.
  DARTFS_CHECK(options_.kind == ObjectKind::kContentAddressed || content == VersionOf(key));
  DARTFS_CHECK(!flight.from_origin || content == VersionOf(key));
}

// The origin has failed: who waits for it learns so, and a reader opens the object anew.
void World::Abandon(uint32_t number, BlockKey key) {
  Node& node = nodes_[number];
  const auto found = node.flights.find(key);
  while (const auto step = found->second.route->Next(events_.now())) {
    DARTFS_CHECK(step->kind == RouteStep::Kind::kCancel);
    CancelAttempt(found->second, step->attempt);
  }
  const Flight flight = std::move(found->second);
  node.flights.erase(found);
  for (const TransferId id : flight.out) {
    const Transfer* transfer = transfers_.Find(id);
    if (transfer == nullptr) continue;
    Lose(id, transfer->started ? FailureKind::kSoft : FailureKind::kMiss);
  }
  if (!flight.read_here || VersionOf(key) != node.version || node.done) return;
  ++report_.reopened;
  std::vector<BlockKey> left;
  for (auto& [other, its] : node.flights) {
    its.read_here = false;
    left.push_back(other);
  }
  std::sort(left.begin(), left.end());
  for (const BlockKey other : left) ReleaseIfUnwanted(number, other);
  Open(number);
}

// As the engine does: what nobody waits for and nobody has got a byte of is given up.
void World::ReleaseIfUnwanted(uint32_t number, BlockKey key) {
  Node& node = nodes_[number];
  const auto found = node.flights.find(key);
  if (found == node.flights.end()) return;
  Flight& flight = found->second;
  if (flight.read_here || !flight.out.empty() || !flight.got.empty()) return;
  for (const TransferId id : flight.in) {
    if (const Transfer* transfer = transfers_.Find(id)) {
      Later(network_.Latency(), kCancel, transfer->from, id);
    }
  }
  node.flights.erase(found);
}

}  // namespace dartfs::sim
