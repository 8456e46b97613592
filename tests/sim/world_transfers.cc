// How blocks travel.
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

constexpr Duration kDartWaits = std::chrono::seconds(1);  // WIRE.md section 7
constexpr Duration kBusyFor = std::chrono::milliseconds(50);
constexpr Duration kConnectionEnds = std::chrono::seconds(10);
constexpr Duration kSentAgain = std::chrono::milliseconds(200);
constexpr Duration kOnItsWay = std::chrono::milliseconds(30);
constexpr Duration kOriginAgain = std::chrono::seconds(1);

Duration TimeFor(uint64_t bytes, double per_second) {
  return Duration(static_cast<int64_t>(static_cast<double>(bytes) / per_second * 1e9));
}

}  // namespace

// A request for the object's head: what version the origin has now.
uint32_t World::Probe(Node& node) {
  ++report_.probes;
  node.probed = version_;
  return version_;
}

// Which of what the node has the request is about; false: of none.
bool World::ChooseCopy(uint32_t number, Transfer& transfer) {
  Node& node = nodes_[number];
  const uint32_t asked = VersionOf(transfer.key);
  uint32_t version = 0;
  if (node.dart) {
    version = 0;
  } else if (asked == 0) {
    if (node.copies.size() > 1 || (node.copies.empty() && !transfer.with_url)) return false;
    version = node.copies.empty() ? Probe(node) : node.copies.begin()->first;
  } else {
    version = asked;
    if (!node.copies.contains(asked)) {
      if (!transfer.with_url) return false;
      // Whoever names versions that do not exist costs the origin little.
      const bool may = node.probed == asked || node.probes.Take(/*urgent=*/true, events_.now());
      if (!may || (node.probed != asked && Probe(node) != asked)) return false;
    }
  }
  transfer.sender_key = KeyOf(version, BlockOf(transfer.key));
  return true;
}

void World::OnAsk(TransferId id) {
  Transfer* const found = transfers_.Find(id);
  if (found == nullptr) return;
  Transfer& transfer = *found;
  const uint32_t number = transfer.from;
  if (number == origin()) return OnOriginAsk(id);
  Node& node = nodes_[number];
  if (!node.up) return Lose(id, FailureKind::kHard);
  if (!network_.Carries(number, transfer.to)) {
    transfer.cut = true;
    return Later(kConnectionEnds, kTimeOut, transfer.to, id, 0);
  }
  report_.deepest_hop = std::max(report_.deepest_hop, transfer.hop);
  const bool at_once = node.lie == Lie::kSilent || node.lie == Lie::kDenies;
  report_.lies += at_once ? 1 : 0;
  if (node.lie == Lie::kSilent) return;
  if (node.lie == Lie::kDenies) return Lose(id, FailureKind::kMiss);
  if (!ChooseCopy(number, transfer)) return Lose(id, FailureKind::kMiss);
  Admit(id);
}

// The engine tries again where it is put off; a version that is gone ends it.
void World::OnOriginAsk(TransferId id) {
  Transfer& transfer = transfers_.At(id);
  const TimePoint now = events_.now();
  const bool allowed = origin_bucket_ == nullptr || origin_bucket_->Take(/*urgent=*/true, now);
  if (now < origin_down_until_ || !allowed) {
    ++report_.throttled;
    const double wait = static_cast<double>(kOriginAgain.count()) * (0.5 + random_.NextDouble());
    return Later(Duration(static_cast<int64_t>(wait)), kAsk, origin(), id);
  }
  const uint32_t version = VersionOf(transfer.key);
  if (version != 0 && version != version_) return Lose(id, FailureKind::kMiss);
  ++report_.origin_fetches;
  transfer.content = version_;
  Accept(transfer);
  Offer(id);
}

void World::Admit(TransferId id) {
  Transfer& transfer = transfers_.At(id);
  const uint32_t number = transfer.from;
  Node& node = nodes_[number];
  const BlockKey key = transfer.sender_key;
  p2p::BlockAsk ask;
  ask.hop = transfer.hop;
  ask.has_url = transfer.with_url;
  if (!node.dart) ask.path = transfer.path;
  p2p::BlockStatus status;
  status.held = Holds(node, key);
  const auto flight = node.flights.find(key);
  status.in_flight = flight != node.flights.end();
  if (status.in_flight) {
    status.at_origin = flight->second.route->at_origin();
    status.sources = flight->second.route->sources();
  }
  const bool has_room = HasRoom(node);
  const auto tree = TreeOf(node, BlockOf(key));
  const Admission admission = p2p::Admit(*tree, node.id, ask, status, has_room);
  if (admission == Admission::kDecline) return Lose(id, FailureKind::kMiss);
  if (admission == Admission::kBusy) return Lose(id, FailureKind::kBusy);
  Accept(transfer);
  if (admission == Admission::kServe) return Offer(id);
  if (!node.dart && transfer.path.empty() && admission == Admission::kJoin) {
    transfer.mute_at = events_.now() + kDartWaits;
    transfer.mute_as = FailureKind::kMiss;
  }
  if (!node.dart && !transfer.path.empty()) {
    const Duration limit = std::max(transfer.patience - p2p::kHopAllowance / 2, Duration{});
    transfer.mute_at = events_.now() + limit;
  }
  const bool relay = admission == Admission::kRelay;
  Flight& joined = relay ? StartFlight(number, key, &transfer) : flight->second;
  joined.out.push_back(id);
  joined.mute_at = std::min(joined.mute_at, transfer.mute_at);
  if (relay) {
    Drive(number, key);
  } else {
    WakeAt(number, joined, joined.wake);
  }
  CheckNoCycle(number, key);
  Offer(id);
}

bool World::HasRoom(const Node& node) const {
  if (options_.max_relays == 0) return true;
  return std::ranges::count_if(node.flights, [](const auto& entry) {
           return !entry.second.read_here;
         }) < static_cast<ptrdiff_t>(options_.max_relays);
}

// What its answer says of itself.
void World::Accept(Transfer& transfer) {
  transfer.accepted = true;
  if (transfer.from == origin()) return;
  const Node& node = nodes_[transfer.from];
  const bool extended = !node.dart && node.lie != Lie::kUnnamed;
  transfer.named = extended && VersionOf(transfer.key) == VersionOf(transfer.sender_key);
  if (!extended) return;
  const auto flight = node.flights.find(transfer.sender_key);
  if (Holds(node, transfer.sender_key)) {
    transfer.listed = node.copies.at(VersionOf(transfer.sender_key)).blocks[BlockOf(transfer.key)];
  } else if (flight != node.flights.end()) {
    transfer.listed = flight->second.listed;
  }
  if (node.lie == Lie::kForges) transfer.listed = kGarbage + transfer.from;
}

// Who joined and has waited for a first byte for as long as it may. Once all have, the flight goes
// on for a while: they will ask again.
void World::Mute(uint32_t number, BlockKey key) {
  Flight& flight = nodes_[number].flights.at(key);
  const TimePoint now = events_.now();
  if (flight.mute_at > now) return;
  flight.mute_at = core::kNoDeadline;
  if (!flight.got.empty()) return;
  if (flight.out.empty()) return ReleaseIfUnwanted(number, key);
  const std::vector<TransferId> waiting = flight.out;
  for (const TransferId id : waiting) {
    const Transfer& transfer = transfers_.At(id);
    if (transfer.mute_at <= now) {
      std::erase(flight.out, id);
      Lose(id, transfer.mute_as);
    } else {
      flight.mute_at = std::min(flight.mute_at, transfer.mute_at);
    }
  }
  if (flight.out.empty()) flight.mute_at = now + p2p::kLinger;
}

void World::OnTimeOut(TransferId id, bool unless_begun) {
  const Transfer* found = transfers_.Find(id);
  if (found == nullptr || (unless_begun && found->started)) return;
  Withdraw(id);
  OnLost(id, FailureKind::kSoft);
}

// Its sender sends no more of it.
void World::Withdraw(TransferId id) {
  Transfer& transfer = transfers_.At(id);
  transfer.accepted = false;
  if (transfer.from == origin()) return;
  auto& flights = nodes_[transfer.from].flights;
  const auto flight = flights.find(transfer.sender_key);
  if (flight == flights.end() || std::erase(flight->second.out, id) == 0) return;
  ReleaseIfUnwanted(transfer.from, transfer.sender_key);
}

void World::OnCancel(TransferId id) {
  if (transfers_.Find(id) == nullptr) return;
  Withdraw(id);
  transfers_.Erase(id);
}

// Its sender will not send it, or not to its end: the receiver learns so.
void World::Lose(TransferId id, FailureKind kind) {
  Transfer& transfer = transfers_.At(id);
  transfer.accepted = false;
  if (kind == FailureKind::kBusy) ++report_.busy;
  Later(network_.Latency(), kLost, transfer.to, id, static_cast<uint64_t>(kind));
}

void World::OnLost(TransferId id, FailureKind kind) {
  Transfer* const found = transfers_.Find(id);
  if (found == nullptr) return;
  const Transfer transfer = std::move(*found);
  transfers_.Erase(id);
  const auto flight = nodes_[transfer.to].flights.find(transfer.key);
  if (flight == nodes_[transfer.to].flights.end()) return;
  if (std::erase(flight->second.in, id) == 0) return;
  ++report_.failovers;
  p2p::Route& route = *flight->second.route;
  route.OnFailure(transfer.attempt, {kind, kBusyFor}, events_.now());
  Drive(transfer.to, transfer.key);
}

// What is wrong with an answer, as far as its receiver can tell by now.
std::optional<p2p::PeerFailure::Kind> World::Judge(const Transfer& transfer,
                                                   Content content) const {
  const Node& node = nodes_[transfer.to];
  if (transfer.from == origin() || node.dart) return std::nullopt;
  const bool must_be_named = options_.kind == ObjectKind::kVersioned;
  if (must_be_named && !transfer.named) return FailureKind::kUnproven;
  if (transfer.listed != 0 && transfer.listed != content) return FailureKind::kWrong;
  return std::nullopt;
}

void World::OnGranule(TransferId id, uint32_t granule, Content content) {
  Transfer* const found = transfers_.Find(id);
  if (found == nullptr) return;
  Transfer& transfer = *found;
  const uint32_t number = transfer.to;
  const BlockKey key = transfer.key;
  if (transfer.cut || !network_.Carries(transfer.from, number)) {
    if (!std::exchange(transfer.cut, true)) Later(kConnectionEnds, kTimeOut, number, id, 0);
    return;
  }
  const auto at = nodes_[number].flights.find(key);
  if (at == nodes_[number].flights.end() ||
      std::find(at->second.in.begin(), at->second.in.end(), id) == at->second.in.end()) {
    return;  // given up, and the sender does not know yet
  }
  Flight& flight = at->second;
  if (const auto wrong = Judge(transfer, content)) {
    (*wrong == FailureKind::kWrong ? report_.wrong_granules : report_.unnamed) += 1;
    Withdraw(id);
    return OnLost(id, *wrong);
  }
  const Node& node = nodes_[number];
  // No reader of a dartfs node is given a wrong byte where no digest will tell.
  DARTFS_CHECK(node.dart || options_.kind == ObjectKind::kContentAddressed ||
               content == VersionOf(key));
  DARTFS_CHECK(granule <= flight.got.size());
  if (granule == flight.got.size()) {
    flight.got.push_back(content);
    flight.from_origin = flight.from_origin && transfer.from == origin();
  }
  if (flight.listed == 0) flight.listed = transfer.listed;
  flight.route->OnBytes(transfer.attempt, events_.now());
  OnEpochOf(number, transfer.from);
  if (granule + 1 == GranulesOf(BlockOf(key))) {
    const p2p::AttemptId attempt = transfer.attempt;
    std::erase(flight.in, id);
    transfers_.Erase(id);
    return Whole(number, key, attempt);
  }
  for (const TransferId out : flight.out) Offer(out);
}

uint32_t World::Available(const Transfer& transfer) const {
  const Node& node = nodes_[transfer.from];
  const uint32_t all = GranulesOf(BlockOf(transfer.key));
  if (transfer.from == origin() || Holds(node, transfer.sender_key)) return all;
  const auto flight = node.flights.find(transfer.sender_key);
  return flight == node.flights.end() ? 0 : static_cast<uint32_t>(flight->second.got.size());
}

Content World::ContentOf(const Transfer& transfer, uint32_t granule) const {
  if (transfer.from == origin()) return transfer.content;
  const Node& node = nodes_[transfer.from];
  const bool held = Holds(node, transfer.sender_key);
  const bool garbles = node.lie == Lie::kGarbles && held && transfer.listed != 0;
  if (garbles || node.lie == Lie::kUnnamed || node.lie == Lie::kForges) {
    return kGarbage + transfer.from;
  }
  if (held) return node.copies.at(VersionOf(transfer.sender_key)).blocks[BlockOf(transfer.key)];
  return node.flights.at(transfer.sender_key).got[granule];
}

// Whatever of it can be sent now gets its turn.
void World::Offer(TransferId id) {
  Transfer* const found = transfers_.Find(id);
  if (found == nullptr) return;
  Transfer& transfer = *found;
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
    Transfer* const found = transfers_.Find(id);
    if (found == nullptr) continue;
    if (HoldsUp(id, *found)) continue;
    found->queued = false;
    if (!found->accepted) continue;
    if (found->next < Available(*found)) {
      SendGranule(id, *found);
    } else {
      Lose(id, FailureKind::kSoft);  // what it was to be sent from was wrong, and is dropped
    }
  }
}

// Flow control: what its receiver could not take soon is not sent yet, so that little is on its way
// when it is given up.
bool World::HoldsUp(TransferId id, const Transfer& transfer) {
  const TimePoint free = nodes_[transfer.to].receiving_until - kOnItsWay;
  if (!transfer.accepted || free <= events_.now()) return false;
  events_.Add(free, kTurn, transfer.from, id);
  return true;
}

void World::SendGranule(TransferId id, Transfer& transfer) {
  const uint32_t number = transfer.from;
  Node& node = nodes_[number];
  const uint32_t all = GranulesOf(BlockOf(transfer.key));
  if (node.lie == Lie::kShort && transfer.next >= (all + 1) / 2) {
    ++report_.lies;
    Withdraw(id);
    return Lose(id, FailureKind::kSoft);
  }
  const uint32_t granule = transfer.next++;
  transfer.started = true;
  const uint64_t bytes = BytesOf(BlockOf(transfer.key), granule);
  const Duration out = TimeFor(bytes, RateOf(number));
  const Duration in = TimeFor(bytes, RateOf(transfer.to));
  const TimePoint begun = events_.now();
  const Duration latency = network_.Latency();
  TimePoint& busy = nodes_[transfer.to].receiving_until;
  busy = std::max(begun + out + latency, std::max(begun + latency, busy) + in);
  TimePoint arrival = std::max(busy, transfer.last_arrival);
  if (network_.Loses()) arrival += kSentAgain;
  transfer.last_arrival = arrival;
  const Content content = ContentOf(transfer, granule);
  report_.lies += content == kGarbage + number ? 1 : 0;
  const uint64_t what = (uint64_t{granule} << 32) | content;
  events_.Add(arrival, kGranule, transfer.to, id, what);
  events_.Add(begun + out, kSent, number);
  node.sending = true;
  node.bytes_sent += bytes;
  if (transfer.next < Available(transfer)) {
    transfer.queued = true;
    node.turn.push_back(id);
  }
}

}  // namespace dartfs::sim
