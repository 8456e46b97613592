// Who is a member and who reads, as the nodes tell each other; or as all are told.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/check.h"
#include "sim/world.h"

namespace dartfs::sim {
namespace {

using core::Duration;
using core::TimePoint;

constexpr Duration kPublishWithin = std::chrono::milliseconds(100);
constexpr Duration kConnect = std::chrono::seconds(1);

// Bytes of an exchange: a request with two IDs, an address, an epoch and a validator; an answer
// without a body; a member in JSON with an ID and an address of some length; a join and its answer.
constexpr uint64_t kRosterRequest = 190;
constexpr uint64_t kRosterHead = 150;
constexpr uint64_t kRosterMember = 64;
constexpr uint64_t kTrackerRequest = 240;
constexpr uint64_t kTrackerHead = 160;
constexpr uint64_t kTrackerReader = 16;

constexpr uint32_t kFakeMembers = 8;

}  // namespace

void World::StartMembership(uint32_t number) {
  Node& node = nodes_[number];
  ++node.boots;
  node.opened = false;
  if (options_.trackers) {
    node.sets = std::make_unique<p2p::ReaderSets>(p2p::ReaderSetOptions{});
    node.tracking = std::make_unique<p2p::ReaderTracking>(node.tracking_options, file_key_);
  }
  const bool first = node.boots == 1;
  if (!options_.rosters) {
    node.history = std::make_unique<p2p::OwnerHistory>(node.id, node.view, first, events_.now());
    return;
  }
  p2p::MembershipOptions options;
  options.self = {.id = node.id, .addr = node.addr};
  options.forget_after = options_.forget_after;
  options.refresh = options_.refresh;
  node.members = std::make_unique<p2p::Membership>(std::move(options));
  node.publishing = false;
  // The cluster has been there for a while when the run begins.
  if (first) Introduce(node);
  node.members_published = node.members->generation();
  node.view = Intern(node.members->Members());
  node.history = std::make_unique<p2p::OwnerHistory>(node.id, node.view, first, events_.now());
  const double wait = first ? random_.NextDouble() : 0.0;
  Later(Duration(static_cast<int64_t>(static_cast<double>(options_.refresh.count()) * wait)), kTick,
        number, node.boots);
}

// To all others, with each of whom it has been in contact within the last third of forget_after.
void World::Introduce(Node& node) {
  const TimePoint now = events_.now();
  const Duration longest = options_.forget_after / 3;
  // Long enough to doubt what it hears; dear in large clusters.
  const Duration settled = options_.liar_share > 0 ? options_.forget_after : Duration{};
  for (Duration ago = settled; ago > Duration{}; ago -= options_.refresh) {
    node.members->Expire(now - ago);
  }
  node.members->Learn(views_.front()->members(), now - longest);
  for (const p2p::Member& member : views_.front()->members()) {
    const double ago = static_cast<double>(longest.count()) * random_.NextDouble();
    node.members->OnAnswerOf(member.id, now - Duration(static_cast<int64_t>(ago)));
  }
}

void World::Tick(uint32_t number) {
  Node& node = nodes_[number];
  const TimePoint now = events_.now();
  node.members->Expire(now);
  for (const size_t seed : node.members->SeedsDue(options_.seeds, now, random_)) {
    if (seed != number) CallRoster(number, nodes_[seed].addr, /*wants_roster=*/true);
  }
  for (const p2p::RosterCall& call : node.members->Due(now, random_)) {
    CallRoster(number, call.addr, call.wants_roster);
  }
  if (node.sets) node.sets->Sweep(now);
  PublishSoon(number);
  Later(node.members->interval(), kTick, number, node.boots);
}

void World::CallRoster(uint32_t number, const std::string& addr, bool wants_roster) {
  Node& node = nodes_[number];
  node.roster_bytes += kRosterRequest;
  const auto to = network_.ListenerAt(addr);
  if (!to || *to == number || !network_.CanDial(number, *to) || network_.Loses()) return;
  Later(network_.Latency(), kRosterAsk, *to, number, wants_roster ? node.view->epoch() : 0);
}

void World::OnRosterAsk(uint32_t number, uint32_t from, uint64_t epoch) {
  Node& node = nodes_[number];
  if (!node.members) return;
  node.roster_bytes += kRosterRequest;
  node.members->OnCalledBy(nodes_[from].id, nodes_[from].addr, events_.now());
  node.peers->breaker().OnCalledBy(nodes_[from].id);
  PublishSoon(number);
  uint64_t roster = 0;
  uint64_t bytes = kRosterHead;
  if (epoch != 0 && (epoch != node.view->epoch() || node.lie == Lie::kRoster)) {
    roster = next_letter_++;
    rosters_[roster] = RosterOf(node);
    bytes += kRosterMember * rosters_[roster]->members().size();
  }
  node.roster_bytes += bytes;
  nodes_[from].roster_bytes += bytes;
  Later(network_.Latency(), kRosterAnswer, from, number, roster);
}

p2p::ViewPtr World::RosterOf(const Node& node) {
  if (node.lie != Lie::kRoster) return std::make_shared<const p2p::View>(node.members->Roster());
  ++report_.lies;
  std::vector<p2p::Member> members;
  for (const p2p::Member& member : node.view->members()) {
    if (members.size() < kFakeMembers) members.push_back({.id = member.id, .addr = node.addr});
  }
  // New ones each time, each where nobody answers.
  for (uint32_t i = 0; i < kFakeMembers; ++i) {
    const std::string id = fmt::format("fake-{}", ++fakes_);
    members.push_back({.id = id, .addr = id + Network::kNowhere, .weight = 1000});
  }
  return std::make_shared<const p2p::View>(std::move(members));
}

void World::OnRosterAnswer(uint32_t number, uint32_t from, uint64_t roster) {
  Node& node = nodes_[number];
  p2p::ViewPtr reported;
  if (const auto found = rosters_.find(roster); found != rosters_.end()) {
    reported = std::move(found->second);
    rosters_.erase(found);
  }
  if (!node.members) return;
  const std::string& id = nodes_[from].id;
  node.peers->breaker().OnReachable(id, events_.now());
  if (reported) node.members->Learn(reported->members(), events_.now(), id);
  node.members->OnAnswerOf(id, events_.now());
  if (!reported || node.opened) return PublishSoon(number);
  Publish(number);
  if (node.reads && !node.done) Open(number);
}

// Of a peer that it has got an answer from.
void World::OnEpochOf(uint32_t number, uint32_t other) {
  Node& node = nodes_[number];
  if (!node.members || other == origin()) return;
  if (nodes_[other].view->epoch() == node.view->epoch()) return;
  if (node.members->OnOtherEpoch(events_.now())) {
    CallRoster(number, nodes_[other].addr, /*wants_roster=*/true);
  }
}

void World::PublishSoon(uint32_t number) {
  Node& node = nodes_[number];
  if (node.publishing || node.members->generation() == node.members_published) return;
  node.publishing = true;
  Later(kPublishWithin, kPublish, number);
}

void World::Publish(uint32_t number) {
  Node& node = nodes_[number];
  node.publishing = false;
  if (!node.members || node.members->generation() == node.members_published) return;
  node.members_published = node.members->generation();
  TakeView(number, Intern(node.members->Members()));
}

// Nodes that know the same share one view, and the trees of it.
p2p::ViewPtr World::Intern(std::vector<p2p::Member> members) {
  auto view = std::make_shared<const p2p::View>(std::move(members));
  auto& known = interned_[view->epoch()];
  std::erase_if(known, [](const auto& weak) { return weak.expired(); });
  for (const auto& weak : known) {
    const p2p::ViewPtr other = weak.lock();
    if (std::ranges::equal(other->members(), view->members())) return other;
  }
  known.push_back(view);
  return view;
}

// Dead members are members until they are forgotten; who is up is one.
void World::PublishView() {
  std::vector<p2p::Member> members;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    if (nodes_[i].up) members.push_back({.id = nodes_[i].id, .addr = nodes_[i].addr});
  }
  views_.push_back(std::make_shared<const p2p::View>(std::move(members)));
  if (views_.size() == 1) return;
  for (uint32_t i = 0; i < options_.nodes; ++i) {
    const double share = random_.NextDouble();
    const double lag = static_cast<double>(options_.view_lag.count()) * share;
    Later(Duration(static_cast<int64_t>(lag)), kView, i, views_.size() - 1);
  }
}

void World::TakeView(uint32_t number, const p2p::ViewPtr& view) {
  Node& node = nodes_[number];
  if (node.view == view) return;
  node.view = view;
  node.history->OnView(view, events_.now());
}

bool World::IsNewOwner(const Node& node, uint32_t block) {
  const auto tree = TreeOf(node, block);
  return tree->PositionOf(node.id) == 0U && node.history->IsNew(tree->key(), events_.now());
}

void World::Track(uint32_t number) {
  Node& node = nodes_[number];
  if (!node.tracking) return;
  const TimePoint now = events_.now();
  while (const auto call = node.tracking->Next(node.view, now)) {
    const bool leave = call->kind == p2p::TrackerCall::Kind::kLeave;
    node.tracker_bytes += kTrackerRequest;
    const auto to = network_.ListenerAt(call->addr);
    if (to && network_.CanDial(number, *to)) {
      Later(network_.Latency(), kTrackerAsk, *to, number, leave ? 1 : 0);
    } else if (!leave) {
      Later(kConnect, kTrackerAnswer, number, 0);
    }
  }
  const TimePoint wake = node.tracking->wake_at();
  ++node.track_wakes;
  if (wake == core::kNoDeadline) return;
  events_.Add(std::max(wake, now), kTrack, number, node.track_wakes);
}

void World::OnTrackerAsk(uint32_t number, uint32_t from, bool leave) {
  Node& node = nodes_[number];
  if (!node.sets) return;
  node.tracker_bytes += kTrackerRequest;
  if (leave) return node.sets->Leave("object", nodes_[from].id, events_.now());
  const auto set = node.sets->Join("object", nodes_[from].id, 0, events_.now());
  if (!set) return Later(network_.Latency(), kTrackerAnswer, from, 0);
  const uint64_t bytes = kTrackerHead + kTrackerReader * set->readers->size();
  node.tracker_bytes += bytes;
  nodes_[from].tracker_bytes += bytes;
  const uint64_t letter = next_letter_++;
  reader_sets_[letter] = set->readers;
  Later(network_.Latency(), kTrackerAnswer, from, letter,
        static_cast<uint64_t>(set->lease.count()));
}

void World::OnTrackerAnswer(uint32_t number, uint64_t set, Duration lease) {
  Node& node = nodes_[number];
  p2p::ReaderIds readers;
  if (const auto found = reader_sets_.find(set); found != reader_sets_.end()) {
    readers = std::move(found->second);
    reader_sets_.erase(found);
  }
  if (!node.tracking) return;
  if (readers) {
    node.tracking->OnJoined(*readers, lease, events_.now());
  } else {
    node.tracking->OnFailed(events_.now());
  }
  Track(number);
}

}  // namespace dartfs::sim
