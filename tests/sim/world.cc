#include "sim/world.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/wire_id.h"

namespace dartfs::sim {
namespace {

using core::Duration;
using core::TimePoint;

constexpr const char* kObject = "https://origin.example/object";
constexpr const char* kDigest =
    "sha256:abababababababababababababababababababababababababababababababab";

Duration Seconds(double seconds) { return Duration(static_cast<int64_t>(seconds * 1e9)); }

// What can be told about an object of that kind, and no more (see Lie).
std::vector<Lie> LiesAbout(ObjectKind kind, bool rosters) {
  std::vector<Lie> lies = {Lie::kShort, Lie::kDenies, Lie::kSilent};
  if (rosters) lies.push_back(Lie::kRoster);
  if (kind != ObjectKind::kImmutable) {
    lies.push_back(Lie::kGarbles);
    lies.push_back(Lie::kUnnamed);
  }
  if (kind == ObjectKind::kContentAddressed) lies.push_back(Lie::kForges);
  return lies;
}

}  // namespace

World::World(Options options)
    : options_(std::move(options)),
      random_(options_.seed),
      trees_(options_.fanout, 4096),
      origin_rate_(options_.origin_bytes_per_second) {
  block_count_ = static_cast<uint32_t>((options_.object_bytes + options_.block_bytes - 1) /
                                       options_.block_bytes);
  report_.blocks = block_count_;
  const uint64_t chunks = (options_.object_bytes + options_.chunk_bytes - 1) / options_.chunk_bytes;
  const char* id = options_.kind == ObjectKind::kContentAddressed ? kDigest : kObject;
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    keys_.push_back(core::MakeChunkKey("dart", id, chunk));
  }
  file_key_ = core::MakeFileKey("dart", id);
  if (options_.origin_requests_per_second > 0) {
    const double rate = options_.origin_requests_per_second;
    origin_bucket_ = std::make_unique<p2p::TokenBucket>(
        p2p::TokenBucketOptions{.per_second = rate, .burst = std::max(rate, 1.0), .reserve = 0},
        TimePoint{});
  }
  nodes_.resize(options_.nodes + 1);
  const std::vector<Lie> lies = LiesAbout(options_.kind, options_.rosters);
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    Node& node = nodes_[i];
    node.id = fmt::format("node-{:05}", i);
    node.addr = node.id + ":1";
    by_id_[node.id] = i;
    network_.Bind(node.addr, i);
    node.dart = random_.NextDouble() < options_.dart_share;
    if (!node.dart && random_.NextDouble() < options_.liar_share) {
      node.lie = lies[random_.Below(lies.size())];
      if (options_.only_lie != Lie::kNone) node.lie = options_.only_lie;
      ++report_.liars;
    }
    node.route_options.self = node.id;
    node.route_options.extensions = !node.dart;
    node.tracking_options.self = node.id;
    node.peers = std::make_unique<p2p::PeerTable>(options_.peers);
    node.reads = random_.NextDouble() < options_.reader_share;
    if (!node.reads) continue;
    ++unfinished_;
    Later(Seconds(std::chrono::duration<double>(options_.start_spread).count() *
                  random_.NextDouble()),
          kStart, i);
  }
  report_.readers = unfinished_;
  PublishView();
  for (uint32_t i = 0; i < options_.nodes; ++i) nodes_[i].view = views_.back();
  for (uint32_t i = 0; i < options_.nodes; ++i) StartMembership(i);
  report_.deepest = TreeOf(nodes_.front(), 0)->shape().Height();
}

World::~World() = default;

void World::Later(Duration in, EventKind kind, uint32_t node, uint64_t a, uint64_t b) {
  events_.Add(events_.now() + in, kind, node, a, b);
}

Report World::Run(Duration limit) {
  const TimePoint end = TimePoint{} + limit;
  while (unfinished_ > 0 && !events_.empty() && events_.next_at() <= end) Handle(events_.Pop());
  uint64_t rosters = 0;
  uint64_t trackers = 0;
  uint64_t most = 0;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    const Node& node = nodes_[i];
    report_.busiest_bytes = std::max(report_.busiest_bytes, node.bytes_sent);
    rosters += node.roster_bytes;
    most = std::max(most, node.roster_bytes);
    trackers += node.tracker_bytes;
    if (node.has_crashed || node.has_stopped) continue;
    report_.p99 = std::max(report_.p99, node.peers->HedgeDelayNow().value_or(Duration{}));
    report_.worst_block = std::max(report_.worst_block, node.worst_block);
  }
  const double time = std::chrono::duration<double>(events_.now() - TimePoint{}).count();
  report_.roster_rate = static_cast<double>(rosters) / options_.nodes / std::max(time, 1e-9);
  report_.roster_most = static_cast<double>(most) / std::max(time, 1e-9);
  report_.tracker_rate = static_cast<double>(trackers) / options_.nodes / std::max(time, 1e-9);
  report_.origin_bytes = nodes_.back().bytes_sent - origin_bytes_before_;
  report_.origin_per_block =
      static_cast<double>(report_.origin_bytes) / static_cast<double>(options_.object_bytes);
  report_.events = events_.popped();
  return report_;
}

void World::Idle(Duration length) {
  const TimePoint end = events_.now() + length;
  while (!events_.empty() && events_.next_at() <= end) Handle(events_.Pop());
  events_.AdvanceTo(end);
}

void World::ReadAgain() {
  origin_bytes_before_ = nodes_.back().bytes_sent;
  reading_since_ = events_.now();
  const uint32_t liars = report_.liars;
  report_ = Report{};
  report_.liars = liars;
  report_.blocks = block_count_;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    Node& node = nodes_[i];
    DARTFS_CHECK(node.flights.empty());
    node.copies.clear();
    node.opened = false;
    node.worst_block = {};
    if (!node.up || !node.reads) continue;
    if (node.done) ++unfinished_;
    node.done = false;
    Later(Duration{}, kStart, i);
  }
  report_.readers = unfinished_;
}

void World::Handle(const Event& event) {
  constexpr std::array kNeverHeldBack = {
      kSent,      kCrash,      kRestart, kContinue,   kForget,     kSlowDown,     kExchange,
      kPartition, kBlockDials, kHeal,    kOriginRate, kOriginDown, kChangeVersion};
  const auto kind = static_cast<EventKind>(event.kind);
  if (nodes_[event.node].stopped &&
      std::find(kNeverHeldBack.begin(), kNeverHeldBack.end(), kind) == kNeverHeldBack.end()) {
    held_back_[event.node].push_back(event);
    return;
  }
  if (kind < kTick) return HandleFlight(event);
  if (kind < kForget) return HandleMembers(event);
  HandleFault(event);
}

void World::HandleFlight(const Event& event) {
  const uint32_t node = event.node;
  switch (static_cast<EventKind>(event.kind)) {
    case kStart:
      if (nodes_[node].up && !nodes_[node].done && !nodes_[node].opened) Open(node);
      return;
    case kAsk:
      return OnAsk(event.a);
    case kLost:
      return OnLost(event.a, static_cast<FailureKind>(event.b));
    case kSent:
      nodes_[node].sending = false;
      return Send(node);
    case kTurn:
      nodes_[node].turn.push_back(event.a);
      return Send(node);
    case kGranule:
      return OnGranule(event.a, static_cast<uint32_t>(event.b >> 32),
                       static_cast<Content>(event.b));
    case kCancel:
      return OnCancel(event.a);
    case kTimeOut:
      return OnTimeOut(event.a, event.b != 0);
    case kWake:
      return Wake(node);
    default:
      DARTFS_CHECK(false);
  }
}

void World::HandleMembers(const Event& event) {
  const uint32_t node = event.node;
  const auto other = static_cast<uint32_t>(event.a);
  const bool letter = event.kind == kRosterAsk || event.kind == kRosterAnswer;
  if (!nodes_[node].up || (letter && !network_.Carries(node, other))) {
    rosters_.erase(event.kind == kRosterAnswer ? event.b : 0);
    reader_sets_.erase(event.kind == kTrackerAnswer ? event.a : 0);
    return;
  }
  switch (static_cast<EventKind>(event.kind)) {
    case kTick:
      if (event.a == nodes_[node].boots) Tick(node);
      return;
    case kPublish:
      return Publish(node);
    case kRosterAsk:
      return OnRosterAsk(node, other, event.b);
    case kRosterAnswer:
      return OnRosterAnswer(node, other, event.b);
    case kTrack:
      if (event.a == nodes_[node].track_wakes) Track(node);
      return;
    case kTrackerAsk:
      return OnTrackerAsk(node, other, event.b != 0);
    case kTrackerAnswer:
      return OnTrackerAnswer(node, event.a, Duration(static_cast<int64_t>(event.b)));
    case kView:
      return TakeView(node, views_[event.a]);
    default:
      DARTFS_CHECK(false);
  }
}

p2p::ChunkTreePtr World::TreeOf(const Node& node, uint32_t block) {
  const uint64_t chunk = uint64_t{block} * options_.block_bytes / options_.chunk_bytes;
  const p2p::ReaderIds readers = node.tracking ? node.tracking->Readers(events_.now()) : nullptr;
  return trees_.Get(node.view, readers, keys_[chunk]);
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
  const uint64_t begin = uint64_t{block} * options_.block_bytes;
  const uint64_t end = std::min(begin + options_.block_bytes, options_.object_bytes);
  const uint64_t at = begin + granule * options_.granule_bytes;
  return std::min(options_.granule_bytes, end - at);
}

double World::RateOf(uint32_t node) const {
  return node == origin() ? origin_rate_ : options_.node_bytes_per_second * nodes_[node].rate;
}

Duration World::IdealPipeline() const {
  const double inner = options_.node_bytes_per_second / std::max(options_.fanout, 1U);
  const double rate = std::min(options_.origin_bytes_per_second, inner);
  const double granule = static_cast<double>(options_.granule_bytes);
  const Duration hop = 2 * options_.latency + Seconds(granule / options_.node_bytes_per_second);
  return options_.origin_first_byte + Seconds(static_cast<double>(options_.object_bytes) / rate) +
         report_.deepest * hop;
}

// Its circuits are shut, its tables hold nothing that is over, and where they tell each other who
// is a member, they agree.
std::string World::Unsettled() const {
  uint64_t epoch = 0;
  size_t up = 0;
  bool roster_lies = false;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    up += nodes_[i].up ? 1 : 0;
    roster_lies |= nodes_[i].lie == Lie::kRoster;
  }
  std::string wrong;
  transfers_.ForEach([&](TransferId, const Transfer& left) {
    wrong = fmt::format("{} transfers are left, one of block {} to {} from {}{}{}{}",
                        transfers_.size(), BlockOf(left.key), nodes_[left.to].id,
                        left.from == origin() ? "the origin" : nodes_[left.from].id,
                        left.accepted ? ", accepted" : "", left.cut ? ", cut" : "",
                        nodes_[left.from].lie != Lie::kNone ? ", a liar" : "");
  });
  if (!wrong.empty()) return wrong;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    const Node& node = nodes_[i];
    if (!node.up) continue;
    if (!node.flights.empty()) return node.id + " has flights left";
    if (node.peers->asked() > 0) return node.id + " waits for peers";
    for (uint32_t other = 0; other < options_.nodes; ++other) {
      const Node& peer = nodes_[other];
      if (!peer.up || peer.lie != Lie::kNone) continue;
      if (!node.peers->breaker().Allows(peer.id, events_.now())) {
        return fmt::format("{}'s circuit to {} is open", node.id, peer.id);
      }
      if (node.members && node.peers->breaker().IsSuspect(peer.id)) {
        return fmt::format("{} suspects {}", node.id, peer.id);
      }
    }
    if (!node.members || roster_lies) continue;
    if (node.members->size() != up) {
      return fmt::format("{} knows {} members of {}", node.id, node.members->size(), up);
    }
    if (epoch == 0) epoch = node.view->epoch();
    if (node.view->epoch() != epoch) return node.id + " has another epoch";
  }
  return "";
}

}  // namespace dartfs::sim
