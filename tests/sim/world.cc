#include "sim/world.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/wire_id.h"

namespace dartfs::sim {
namespace {

using core::Duration;
using core::TimePoint;

constexpr Duration kNewOwner = std::chrono::seconds(60);

Duration Seconds(double seconds) { return Duration(static_cast<int64_t>(seconds * 1e9)); }

}  // namespace

World::World(Options options)
    : options_(std::move(options)), random_(options_.seed), trees_(options_.fanout, 4096) {
  block_count_ = static_cast<uint32_t>((options_.object_bytes + options_.block_bytes - 1) /
                                       options_.block_bytes);
  report_.blocks = block_count_;
  const uint64_t chunks = (options_.object_bytes + options_.chunk_bytes - 1) / options_.chunk_bytes;
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    keys_.push_back(core::MakeChunkKey("dart", "https://origin.example/object", chunk));
  }
  nodes_.resize(options_.nodes + 1);
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    Node& node = nodes_[i];
    node.id = fmt::format("node-{:05}", i);
    by_id_[node.id] = i;
    node.dart = random_.NextDouble() < options_.dart_share;
    node.route_options.self = node.id;
    node.route_options.extensions = !node.dart;
    node.peers = std::make_unique<p2p::PeerTable>(options_.peers);
    node.held.resize(block_count_);
    node.reads = true;
    ++unfinished_;
    const Duration spread = options_.start_spread;
    const auto delay =
        static_cast<int64_t>(static_cast<double>(spread.count()) * random_.NextDouble());
    Later(Duration(delay), kStart, i);
  }
  report_.readers = unfinished_;
  PublishView();
  for (uint32_t i = 0; i < options_.nodes; ++i) nodes_[i].view = views_.back();
  report_.deepest = TreeOf(views_.back(), 0)->shape().Height();
}

World::~World() = default;

void World::Later(Duration in, Kind kind, uint32_t node, uint64_t a, uint64_t b) {
  events_.Add(events_.now() + in, kind, node, a, b);
}

Duration World::Latency() {
  return options_.latency +
         Duration(static_cast<int64_t>(static_cast<double>(options_.jitter.count()) *
                                       random_.NextDouble()));
}

Report World::Run(Duration limit) {
  const TimePoint end = TimePoint{} + limit;
  while (unfinished_ > 0 && !events_.empty() && events_.next_at() <= end) Handle(events_.Pop());
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    const Node& node = nodes_[i];
    report_.busiest_bytes = std::max(report_.busiest_bytes, node.bytes_sent);
    if (node.has_crashed || node.has_stopped) continue;
    report_.worst_block = std::max(report_.worst_block, node.worst_block);
  }
  report_.origin_bytes = nodes_.back().bytes_sent;
  report_.origin_per_block =
      static_cast<double>(report_.origin_bytes) / static_cast<double>(options_.object_bytes);
  report_.events = events_.popped();
  return report_;
}

void World::Handle(const Event& event) {
  const auto kind = static_cast<Kind>(event.kind);
  const uint32_t node = event.node;
  const bool fate = kind == kCrash || kind == kContinue || kind == kRestart || kind == kForget;
  if (nodes_[node].stopped && !fate) {
    held_back_[node].push_back(event);
    return;
  }
  switch (kind) {
    case kStart:
      if (nodes_[node].up) Read(node);
      return;
    case kAsk:
      return OnAsk(event.a);
    case kLost:
      return OnLost(event.a, static_cast<FailureKind>(event.b));
    case kSent:
      nodes_[node].sending = false;
      return Send(node);
    case kGranule:
      return OnGranule(event.a, static_cast<uint32_t>(event.b));
    case kCancel:
      return OnCancel(event.a);
    case kMute:
      return OnMute(event.a);
    case kWake: {
      const auto found = nodes_[node].flights.find(static_cast<uint32_t>(event.a));
      if (found != nodes_[node].flights.end() && found->second.wakes == event.b) {
        Drive(node, static_cast<uint32_t>(event.a));
      }
      return;
    }
    case kCrash:
      return Crash(node);
    case kRestart:
      return Restart(node, event.a != 0);
    case kStop:
      nodes_[node].stopped = true;
      nodes_[node].has_stopped = true;
      return;
    case kContinue:
      return Continue(node);
    case kForget:
      if (!nodes_[node].up) PublishView();
      return;
    case kView:
      if (nodes_[node].up) TakeView(node, views_[event.a]);
      return;
  }
}

void World::CrashAt(Duration at, uint32_t node) { events_.Add(TimePoint{} + at, kCrash, node); }
void World::RestartAt(Duration at, uint32_t node, bool warm) {
  events_.Add(TimePoint{} + at, kRestart, node, warm ? 1 : 0);
}
void World::StopAt(Duration at, uint32_t node) { events_.Add(TimePoint{} + at, kStop, node); }
void World::ContinueAt(Duration at, uint32_t node) {
  events_.Add(TimePoint{} + at, kContinue, node);
}

// Its connections are reset; what it held lies on its disk.
void World::Crash(uint32_t node) {
  Node& dead = nodes_[node];
  if (!dead.up) return;
  dead.up = false;
  dead.has_crashed = true;
  dead.stopped = false;
  held_back_.erase(node);
  std::vector<TransferId> ended;
  for (const auto& [id, transfer] : transfers_) {
    if (transfer.from == node || transfer.to == node) ended.push_back(id);
  }
  std::sort(ended.begin(), ended.end());
  for (const TransferId id : ended) {
    if (transfers_.at(id).to == node) {
      transfers_.erase(id);
    } else {
      Lose(id, FailureKind::kSoft);
    }
  }
  dead.flights.clear();
  dead.turn.clear();
  dead.peers = std::make_unique<p2p::PeerTable>(options_.peers);
  if (!dead.done) --unfinished_;
  Later(options_.forget_after, kForget, node);
}

void World::Restart(uint32_t node, bool warm) {
  Node& born = nodes_[node];
  if (born.up) return;
  born.up = true;
  if (!warm) {
    born.held.assign(block_count_, false);
    born.held_count = 0;
    born.read_next = 0;
    born.done = false;
  }
  PublishView();
  born.view = views_.back();
  born.view_before = nullptr;
  if (!born.done) {
    ++unfinished_;
    Read(node);
  }
}

void World::Continue(uint32_t node) {
  nodes_[node].stopped = false;
  std::vector<Event> events = std::move(held_back_[node]);
  held_back_.erase(node);
  for (const Event& event : events) events_.Add(events_.now(), event.kind, node, event.a, event.b);
}

// Dead members are members until they are forgotten; who is up is one.
void World::PublishView() {
  std::vector<p2p::Member> members;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    if (!nodes_[i].up) continue;
    members.push_back({.id = nodes_[i].id, .addr = nodes_[i].id + ":1"});
  }
  views_.push_back(std::make_shared<const p2p::View>(std::move(members)));
  if (views_.size() == 1) return;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    const double share = random_.NextDouble();
    Later(Seconds(std::chrono::duration<double>(options_.view_lag).count() * share), kView, i,
          views_.size() - 1);
  }
}

void World::TakeView(uint32_t node, const p2p::ViewPtr& view) {
  Node& taker = nodes_[node];
  if (taker.view == view) return;
  taker.view_before = std::exchange(taker.view, view);
  taker.view_changed = events_.now();
}

p2p::ChunkTreePtr World::TreeOf(const p2p::ViewPtr& view, uint32_t block) {
  const uint64_t chunk = uint64_t{block} * options_.block_bytes / options_.chunk_bytes;
  return trees_.Get(view, nullptr, keys_[chunk]);
}

bool World::IsNewOwner(const Node& node, uint32_t block) {
  if (node.view_before == nullptr || events_.now() - node.view_changed >= kNewOwner) return false;
  return TreeOf(node.view_before, block)->PositionOf(node.id) != 0U;
}

uint32_t World::OwnerOf(uint32_t chunk) const {
  const auto ready = views_.front()->ready();
  return by_id_.at(std::string(ready[p2p::RankTop(keys_[chunk], ready, 1).front()].id));
}

uint32_t World::ParentOf(uint32_t chunk, uint32_t node) const {
  const p2p::ChunkTree tree(views_.front(), nullptr, keys_[chunk], options_.fanout);
  const auto chain = tree.Upstreams(nodes_[node].id);
  DARTFS_CHECK(!chain.empty());
  return by_id_.at(std::string(tree.IdAt(chain.front())));
}

uint32_t World::GranulesOf(uint32_t block) const {
  const uint64_t begin = uint64_t{block} * options_.block_bytes;
  const uint64_t bytes = std::min(options_.block_bytes, options_.object_bytes - begin);
  return static_cast<uint32_t>((bytes + options_.granule_bytes - 1) / options_.granule_bytes);
}

uint64_t World::BytesOf(uint32_t block, uint32_t granule) const {
  const uint64_t begin = uint64_t{block} * options_.block_bytes + granule * options_.granule_bytes;
  return std::min(options_.granule_bytes, options_.object_bytes - begin);
}

Duration World::IdealPipeline() const {
  const double inner = options_.node_bytes_per_second / std::max(options_.fanout, 1U);
  const double rate = std::min(options_.origin_bytes_per_second, inner);
  const double granule = static_cast<double>(options_.granule_bytes);
  const Duration hop = 2 * options_.latency + Seconds(granule / options_.node_bytes_per_second);
  return options_.origin_first_byte + Seconds(static_cast<double>(options_.object_bytes) / rate) +
         report_.deepest * hop;
}

}  // namespace dartfs::sim
