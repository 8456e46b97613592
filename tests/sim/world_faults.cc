// What befalls nodes, network and origin.
#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "core/base/check.h"
#include "sim/world.h"

namespace dartfs::sim {

using core::Duration;
using core::TimePoint;

namespace {

// One that has started reads without a roster if none has come until then.
constexpr Duration kFirstRoster = std::chrono::seconds(2);

}  // namespace

void World::CrashAt(Duration at, uint32_t node) { events_.Add(TimePoint{} + at, kCrash, node); }
void World::RestartAt(Duration at, uint32_t node, bool warm, bool moved) {
  events_.Add(TimePoint{} + at, kRestart, node, warm ? 1 : 0, moved ? 1 : 0);
}
void World::StopAt(Duration at, uint32_t node) { events_.Add(TimePoint{} + at, kStop, node); }
void World::ContinueAt(Duration at, uint32_t node) {
  events_.Add(TimePoint{} + at, kContinue, node);
}
void World::SlowDownAt(Duration at, uint32_t node, double rate) {
  events_.Add(TimePoint{} + at, kSlowDown, node, std::bit_cast<uint64_t>(rate));
}
void World::ExchangeAt(Duration at, uint32_t a, uint32_t b) {
  events_.Add(TimePoint{} + at, kExchange, a, b);
}
void World::PartitionAt(Duration at, double share) {
  events_.Add(TimePoint{} + at, kPartition, origin(), std::bit_cast<uint64_t>(share));
}
void World::BlockDialsAt(Duration at, uint32_t from, uint32_t to) {
  events_.Add(TimePoint{} + at, kBlockDials, from, to);
}
void World::HealAt(Duration at) { events_.Add(TimePoint{} + at, kHeal, origin()); }
void World::OriginRateAt(Duration at, double bytes_per_second) {
  events_.Add(TimePoint{} + at, kOriginRate, origin(), std::bit_cast<uint64_t>(bytes_per_second));
}
void World::OriginDownAt(Duration at, Duration length) {
  events_.Add(TimePoint{} + at, kOriginDown, origin(), static_cast<uint64_t>(length.count()));
}
void World::ChangeVersionAt(Duration at) {
  DARTFS_CHECK(options_.kind == ObjectKind::kVersioned);
  events_.Add(TimePoint{} + at, kChangeVersion, origin());
}

void World::HandleFault(const Event& event) {
  const uint32_t node = event.node;
  switch (static_cast<EventKind>(event.kind)) {
    case kForget:
      if (!nodes_[node].up) PublishView();
      return;
    case kCrash:
      return Crash(node);
    case kRestart:
      if (nodes_[node].up) return;
      if (event.b != 0) {
        nodes_[node].addr = fmt::format("{}-{}:1", nodes_[node].id, ++moves_);
      }
      return Restart(node, event.a != 0);
    case kStop:
      nodes_[node].stopped = nodes_[node].up;
      nodes_[node].has_stopped = true;
      return;
    case kContinue:
      return Continue(node);
    case kSlowDown:
      nodes_[node].rate = std::bit_cast<double>(event.a);
      return;
    case kExchange:
      return Exchange(node, static_cast<uint32_t>(event.a));
    case kPartition:
      return Partition(std::bit_cast<double>(event.a));
    case kBlockDials:
      return network_.BlockDials(node, static_cast<uint32_t>(event.a));
    case kHeal:
      return network_.Heal();
    case kOriginRate:
      origin_rate_ = std::bit_cast<double>(event.a);
      return;
    case kOriginDown:
      origin_down_until_ = events_.now() + Duration(static_cast<int64_t>(event.a));
      return;
    case kChangeVersion:
      ++version_;
      return;
    default:
      DARTFS_CHECK(false);
  }
}

// Its connections are reset; what it held lies on its disk.
void World::Crash(uint32_t node) {
  Node& dead = nodes_[node];
  if (!dead.up) return;
  dead.up = false;
  dead.has_crashed = true;
  dead.stopped = false;
  held_back_.erase(node);
  network_.Unbind(dead.addr, node);
  std::vector<TransferId> ended;
  transfers_.ForEach([&ended, node](TransferId id, const Transfer& transfer) {
    if (transfer.from == node || transfer.to == node) ended.push_back(id);
  });
  for (const TransferId id : ended) {
    if (transfers_.At(id).to == node) {
      Withdraw(id);
      transfers_.Erase(id);
    } else {
      Lose(id, FailureKind::kSoft);
    }
  }
  dead.flights.clear();
  dead.wakes = core::kNoDeadline;
  dead.turn.clear();
  dead.peers = std::make_unique<p2p::PeerTable>(options_.peers);
  dead.members.reset();
  dead.tracking.reset();
  dead.sets.reset();
  if (dead.reads && !dead.done) --unfinished_;
  if (!options_.rosters) Later(options_.forget_after, kForget, node);
}

void World::Restart(uint32_t node, bool warm) {
  Node& born = nodes_[node];
  if (born.up) return;
  born.up = true;
  network_.Bind(born.addr, node);
  if (!warm) {
    born.copies.clear();
    born.read_next = 0;
    born.done = false;
  }
  if (!options_.rosters) {
    PublishView();
    born.view = views_.back();
  }
  StartMembership(node);
  if (!born.reads || born.done) return;
  ++unfinished_;
  if (options_.rosters) return Later(kFirstRoster, kStart, node);
  Open(node);
}

void World::Exchange(uint32_t a, uint32_t b) {
  if (a == b || nodes_[a].up || nodes_[b].up) return;
  std::swap(nodes_[a].addr, nodes_[b].addr);
  Restart(a, /*warm=*/false);
  Restart(b, /*warm=*/false);
}

void World::Partition(double share) {
  std::vector<uint8_t> sides(options_.nodes);
  for (uint8_t& side : sides) side = random_.NextDouble() < share ? 1 : 0;
  network_.Partition(std::move(sides));
}

void World::Continue(uint32_t node) {
  nodes_[node].stopped = false;
  std::vector<Event> events = std::move(held_back_[node]);
  held_back_.erase(node);
  for (const Event& event : events) events_.Add(events_.now(), event.kind, node, event.a, event.b);
}

}  // namespace dartfs::sim
