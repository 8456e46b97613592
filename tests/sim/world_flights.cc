// The nodes' flights, and how their blocks travel.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "p2p/admission.h"
#include "sim/world.h"

namespace dartfs::sim {
namespace {

using core::Duration;
using core::TimePoint;
using p2p::Admission;
using p2p::RouteStep;

constexpr Duration kDartWaits = std::chrono::seconds(1);  // WIRE.md section 7

Duration TimeFor(uint64_t bytes, double per_second) {
  return Duration(static_cast<int64_t>(static_cast<double>(bytes) / per_second * 1e9));
}

void Remove(std::vector<TransferId>& ids, TransferId id) {
  ids.erase(std::remove(ids.begin(), ids.end(), id), ids.end());
}

}  // namespace

void World::Read(uint32_t number) {
  Node& node = nodes_[number];
  const uint32_t before = node.read_next;
  while (node.read_next < block_count_ && node.held[node.read_next]) ++node.read_next;
  const TimePoint now = events_.now();
  if (node.read_next != before && before < block_count_) {
    node.worst_block = std::max(node.worst_block, now - node.wanted_at);
  }
  if (node.read_next != before || node.read_next == 0) node.wanted_at = now;
  if (node.read_next == block_count_) return Finish(number);
  const uint32_t end = std::min(block_count_, node.read_next + options_.window_blocks);
  for (uint32_t block = node.read_next; block < end; ++block) {
    if (node.held[block]) continue;
    const auto found = node.flights.find(block);
    if (found == node.flights.end()) {
      StartFlight(number, block, {}, 0).read_here = true;
      Drive(number, block);
    } else {
      found->second.read_here = true;
      if (block == node.read_next) found->second.route->MakeUrgent();
    }
  }
}

void World::Finish(uint32_t number) {
  Node& node = nodes_[number];
  if (std::exchange(node.done, true)) return;
  DARTFS_CHECK(node.held_count == block_count_);
  --unfinished_;
  ++report_.finished;
  const Duration at = events_.now() - TimePoint{};
  report_.last_finished = std::max(report_.last_finished, at);
  if (!node.has_crashed) report_.last_survivor = std::max(report_.last_survivor, at);
}

Flight& World::StartFlight(uint32_t number, uint32_t block, const std::vector<std::string>& path,
                           uint32_t hop) {
  Node& node = nodes_[number];
  Flight& flight = node.flights[block];
  flight.path = path;
  flight.hop = hop;
  p2p::RouteRequest request;
  request.tree = TreeOf(node.view, block);
  request.origin = "origin.example";
  request.urgent = !path.empty() || block == node.read_next;
  request.new_owner = IsNewOwner(node, block);
  request.path = path;
  request.changed = [this, number, block] {
    const auto found = nodes_[number].flights.find(block);
    if (found != nodes_[number].flights.end()) {
      Later(Duration{}, kWake, number, block, ++found->second.wakes);
    }
  };
  flight.route = std::make_unique<p2p::Route>(node.route_options, *node.peers, std::move(request),
                                              events_.now());
  return flight;
}

// Does what the route says, and comes back when it wants.
void World::Drive(uint32_t number, uint32_t block) {
  Flight& flight = nodes_[number].flights.at(block);
  const TimePoint now = events_.now();
  while (const auto step = flight.route->Next(now)) {
    if (step->kind == RouteStep::Kind::kCancel) {
      CancelAttempt(flight, step->attempt);
    } else {
      Ask(number, block, *step);
    }
  }
  const TimePoint wake = flight.route->wake_at(now);
  if (wake == core::kNoDeadline) return;
  // Nothing it waits for may lie further away than the longest of its limits.
  DARTFS_CHECK(wake - now <= std::chrono::seconds(30));
  events_.Add(wake, kWake, number, block, ++flight.wakes);
}

void World::Ask(uint32_t number, uint32_t block, const RouteStep& step) {
  const Node& node = nodes_[number];
  Flight& flight = nodes_[number].flights.at(block);
  const TransferId id = next_transfer_++;
  Transfer transfer;
  transfer.to = number;
  transfer.block = block;
  transfer.attempt = step.attempt;
  transfer.next = flight.got;
  transfer.hop = flight.hop + 1;
  transfer.with_url = step.with_url;
  flight.in.push_back(id);
  Duration delay = Latency();
  if (step.kind == RouteStep::Kind::kAskOrigin) {
    transfer.from = options_.nodes;
    delay += options_.origin_first_byte;
    ++report_.origin_fetches;
  } else {
    transfer.from = by_id_.at(step.peer);
    if (!node.dart) {
      transfer.path = flight.path;
      transfer.path.push_back(node.id);
    }
  }
  const uint32_t asked = transfer.from;
  transfers_.emplace(id, std::move(transfer));
  events_.Add(events_.now() + delay, kAsk, asked, id);
}

void World::OnAsk(TransferId id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  Transfer& transfer = found->second;
  const uint32_t number = transfer.from;
  if (number == options_.nodes) {
    transfer.accepted = true;
    return Offer(id);
  }
  Node& node = nodes_[number];
  if (!node.up) return Lose(id, FailureKind::kHard);
  p2p::BlockAsk ask;
  ask.hop = transfer.hop;
  ask.has_url = transfer.with_url;
  if (!node.dart) ask.path = transfer.path;
  p2p::BlockStatus status;
  status.held = node.held[transfer.block];
  const auto flight = node.flights.find(transfer.block);
  status.in_flight = flight != node.flights.end();
  if (status.in_flight) {
    status.at_origin = flight->second.route->at_origin();
    status.sources = flight->second.route->sources();
  }
  const auto tree = TreeOf(node.view, transfer.block);
  const Admission admission = p2p::Admit(*tree, node.id, ask, status, /*has_room=*/true);
  if (admission == Admission::kDecline) return Lose(id, FailureKind::kMiss);
  if (admission == Admission::kBusy) return Lose(id, FailureKind::kBusy);
  transfer.accepted = true;
  if (admission == Admission::kServe) return Offer(id);
  if (!node.dart && transfer.path.empty() && admission == Admission::kJoin) {
    Later(kDartWaits, kMute, number, id);
  }
  const uint32_t block = transfer.block;
  if (admission == Admission::kRelay) {
    StartFlight(number, block, transfer.path, transfer.hop).out.push_back(id);
    Drive(number, block);
  } else {
    flight->second.out.push_back(id);
  }
  CheckNoCycle(number, block);
  Offer(id);
}

// Of flights that wait for one another, as far as they told one another: a DART node does not.
void World::CheckNoCycle(uint32_t number, uint32_t block) {
  if (options_.dart_share > 0) return;
  std::vector<uint32_t> seen = {number};
  for (size_t i = 0; i < seen.size(); ++i) {
    const auto flight = nodes_[seen[i]].flights.find(block);
    if (flight == nodes_[seen[i]].flights.end()) continue;
    for (const TransferId id : flight->second.in) {
      const Transfer& transfer = transfers_.at(id);
      if (transfer.from == options_.nodes || !transfer.accepted) continue;
      DARTFS_CHECK(transfer.from != number);
      if (std::find(seen.begin(), seen.end(), transfer.from) == seen.end()) {
        seen.push_back(transfer.from);
      }
    }
  }
}

void World::OnMute(TransferId id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end() || found->second.queued) return;
  Node& node = nodes_[found->second.from];
  const auto flight = node.flights.find(found->second.block);
  if (flight == node.flights.end() || flight->second.got > 0) return;
  Remove(flight->second.out, id);
  Lose(id, FailureKind::kMiss);
}

void World::CancelAttempt(Flight& flight, p2p::AttemptId attempt) {
  for (const TransferId id : flight.in) {
    const auto found = transfers_.find(id);
    if (found == transfers_.end() || found->second.attempt != attempt) continue;
    Remove(flight.in, id);
    events_.Add(events_.now() + Latency(), kCancel, found->second.from, id);
    return;
  }
}

void World::OnCancel(TransferId id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  const auto flight = nodes_[found->second.from].flights.find(found->second.block);
  if (flight != nodes_[found->second.from].flights.end()) Remove(flight->second.out, id);
  transfers_.erase(found);
}

// Its sender will not send it, or not to its end: the receiver learns so.
void World::Lose(TransferId id, FailureKind kind) {
  Transfer& transfer = transfers_.at(id);
  transfer.accepted = false;
  events_.Add(events_.now() + Latency(), kLost, transfer.to, id, static_cast<uint64_t>(kind));
}

void World::OnLost(TransferId id, FailureKind kind) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  const Transfer transfer = std::move(found->second);
  transfers_.erase(found);
  const auto flight = nodes_[transfer.to].flights.find(transfer.block);
  if (flight == nodes_[transfer.to].flights.end()) return;
  Remove(flight->second.in, id);
  ++report_.failovers;
  flight->second.route->OnFailure(transfer.attempt, {kind, std::chrono::milliseconds(50)},
                                  events_.now());
  Drive(transfer.to, transfer.block);
}

void World::OnGranule(TransferId id, uint32_t granule) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  const Transfer& transfer = found->second;
  const uint32_t number = transfer.to;
  const uint32_t block = transfer.block;
  const p2p::AttemptId attempt = transfer.attempt;
  const bool last = granule + 1 == GranulesOf(block);
  const auto at = nodes_[number].flights.find(block);
  if (at == nodes_[number].flights.end() ||
      std::find(at->second.in.begin(), at->second.in.end(), id) == at->second.in.end()) {
    return;  // given up, and the sender does not know yet
  }
  Flight& flight = at->second;
  DARTFS_CHECK(granule <= flight.got);
  flight.got = std::max(flight.got, granule + 1);
  flight.route->OnBytes(attempt, events_.now());
  if (last) {
    Remove(flight.in, id);
    transfers_.erase(found);
    return Whole(number, block, attempt);
  }
  for (const TransferId out : flight.out) Offer(out);
}

void World::Whole(uint32_t number, uint32_t block, p2p::AttemptId by) {
  Node& node = nodes_[number];
  Flight& flight = node.flights.at(block);
  DARTFS_CHECK(flight.got == GranulesOf(block));
  flight.route->OnServed(by, events_.now());
  while (const auto step = flight.route->Next(events_.now())) {
    DARTFS_CHECK(step->kind == RouteStep::Kind::kCancel);
    CancelAttempt(flight, step->attempt);
  }
  report_.hedges += flight.route->counts().hedges;
  DARTFS_CHECK(!node.held[block]);
  node.held[block] = true;
  ++node.held_count;
  const std::vector<TransferId> out = std::move(flight.out);
  const bool read_here = flight.read_here;
  node.flights.erase(block);
  for (const TransferId id : out) Offer(id);
  if (read_here) Read(number);
}

uint32_t World::Available(const Transfer& transfer) const {
  const Node& node = nodes_[transfer.from];
  if (transfer.from == options_.nodes || node.held[transfer.block]) {
    return GranulesOf(transfer.block);
  }
  const auto flight = node.flights.find(transfer.block);
  return flight == node.flights.end() ? 0 : flight->second.got;
}

// Whatever of it can be sent now gets its turn.
void World::Offer(TransferId id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  Transfer& transfer = found->second;
  if (!transfer.accepted || transfer.queued || transfer.next >= Available(transfer)) return;
  transfer.queued = true;
  nodes_[transfer.from].turn.push_back(id);
  Send(transfer.from);
}

void World::Send(uint32_t number) {
  Node& node = nodes_[number];
  while (!node.sending && !node.turn.empty()) {
    const TransferId id = node.turn.front();
    node.turn.pop_front();
    const auto found = transfers_.find(id);
    if (found == transfers_.end() || !found->second.accepted) continue;
    Transfer& transfer = found->second;
    transfer.queued = false;
    const uint32_t granule = transfer.next++;
    const uint64_t bytes = BytesOf(transfer.block, granule);
    const bool origin = number == options_.nodes;
    const Duration out =
        TimeFor(bytes, origin ? options_.origin_bytes_per_second : options_.node_bytes_per_second);
    const Duration in = TimeFor(bytes, options_.node_bytes_per_second);
    const TimePoint begun = events_.now();
    const Duration latency = Latency();
    TimePoint& busy = nodes_[transfer.to].receiving_until;
    busy = std::max(begun + out + latency, std::max(begun + latency, busy) + in);
    events_.Add(busy, kGranule, transfer.to, id, granule);
    events_.Add(begun + out, kSent, number);
    node.sending = true;
    node.bytes_sent += bytes;
    if (transfer.next < Available(transfer)) {
      transfer.queued = true;
      node.turn.push_back(id);
    }
  }
}

}  // namespace dartfs::sim
