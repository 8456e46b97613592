#include "p2p/membership.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "core/base/check.h"

namespace dartfs::p2p {
namespace {

// A cluster of so many is asked whole each time.
constexpr size_t kSmallCluster = 32;
constexpr int kContactsBeforeForgotten = 3;
// One that is new and has not answered the first call by the second.
constexpr int kCallsOfNew = 2;
// Called at a time at least, of those that nobody has met.
constexpr size_t kStrangersAtOnce = 64;
constexpr core::Duration kLargeInterval = std::chrono::seconds(1);
// Of a large cluster: news reaches all within some rounds, however many they are.
constexpr double kRostersARefresh = 3;
constexpr core::Duration kBetweenOtherEpochs = std::chrono::seconds(1);

double Seconds(core::Duration time) { return std::chrono::duration<double>(time).count(); }

// In JSON: names, quotes and a weight.
size_t BytesOf(const Member& member) { return member.id.size() + member.addr.size() + 48; }

}  // namespace

Membership::Membership(MembershipOptions options) : options_(std::move(options)) {
  DARTFS_CHECK(IsMemberId(options_.self.id));
}

const char* Membership::WhyNot(const Member& member) const {
  constexpr size_t kPortBytes = 8;  // and brackets
  if (!IsMemberId(member.id)) return "the ID holds bytes other than 0x21 to 0x7E, or none";
  if (member.id.size() > options_.max_id_bytes) return "the ID is too long";
  if (!std::isfinite(member.weight)) return "the weight is not finite";
  if (member.addr.empty()) return "there is no address";
  if (member.addr.size() > options_.max_id_bytes + kPortBytes) return "the address is too long";
  if (options_.allows_address && !options_.allows_address(member.addr)) {
    return "the address is not within --peer-allow";
  }
  if (known_.contains(member.id)) return nullptr;
  const bool full =
      size() >= options_.max_members || roster_bytes_ + BytesOf(member) > options_.max_roster_bytes;
  return full ? "there are too many members" : nullptr;
}

std::vector<RejectedMember> Membership::Learn(std::span<const Member> reported, core::TimePoint now,
                                              std::string_view from) {
  std::vector<RejectedMember> rejected;
  for (const Member& member : reported) {
    if (member.id == options_.self.id) continue;
    if (const char* why = WhyNot(member)) {
      rejected.push_back({member.id, why});
    } else if (const auto gone = forgotten_.find(member.id); gone != forgotten_.end()) {
      gone->second.last.addr = member.addr;
      gone->second.reported = true;
    } else {
      Put(member, member.id == from, now);
    }
  }
  NoteFlood();
  return rejected;
}

// Contact is left as it was: that a member was mentioned is no sign of its life.
void Membership::Put(const Member& member, bool own_word, core::TimePoint now) {
  // A weight of 0 is left out on the wire, and means 1.
  const double told = member.weight > 0 ? member.weight : 1.0;
  const double weight = std::clamp(told, options_.min_weight, options_.max_weight);
  const auto [at, added] = known_.try_emplace(member.id);
  Known& known = at->second;
  if (added) {
    known.contact = now;
    known.weight = weight;
    roster_bytes_ += BytesOf(member) - member.addr.size();
    ++generation_;
  }
  const bool in_contact = known.met && now - known.contact < options_.forget_after / 3;
  if ((own_word || !in_contact) && known.addr != member.addr) {
    roster_bytes_ += member.addr.size() - known.addr.size();
    known.addr = member.addr;
    ++generation_;
  }
  if (own_word) known.doubted = false;
  if (known.weight == weight) return;
  if (known.met && !own_word) {
    known.doubted = true;
    return;
  }
  known.weight = weight;
  ++generation_;
}

// For one that calls itself: of those that nobody has met, any goes.
void Membership::MakeRoom() {
  if (met_ == known_.size()) return;
  const auto unmet = std::find_if(known_.begin(), known_.end(),
                                  [](const auto& entry) { return !entry.second.met; });
  roster_bytes_ -= BytesOf({.id = unmet->first, .addr = unmet->second.addr});
  known_.erase(unmet);
  ++generation_;
}

void Membership::OnCalledBy(std::string_view id, std::string_view addr, core::TimePoint now) {
  if (id == options_.self.id || !IsMemberId(id) || id.size() > options_.max_id_bytes) return;
  OnContact(id, now);
  if (addr.empty()) return;
  Member member{.id = std::string(id), .addr = std::string(addr)};
  const auto known = known_.find(id);
  const bool doubted = known != known_.end() && known->second.doubted;
  if (known != known_.end()) {
    member.weight = known->second.weight;
  } else if (size() >= options_.max_members) {
    MakeRoom();
  }
  if (WhyNot(member) != nullptr) return;
  Put(member, /*own_word=*/true, now);
  known_.find(id)->second.doubted = doubted;  // a call tells no weight
  OnContact(id, now);
}

void Membership::OnAnswerOf(std::string_view responder_id, core::TimePoint now) {
  OnContact(responder_id, now);
}

// One that had been forgotten is back.
void Membership::OnContact(std::string_view id, core::TimePoint now) {
  if (const auto gone = forgotten_.find(id); gone != forgotten_.end()) {
    Known back = gone->second.last;
    back.met = false;
    const Member member{.id = gone->first, .addr = back.addr, .weight = back.weight};
    forgotten_.erase(gone);
    if (WhyNot(member) == nullptr && known_.try_emplace(member.id, std::move(back)).second) {
      roster_bytes_ += BytesOf(member);
      ++generation_;
    }
  }
  const auto at = known_.find(id);
  if (at == known_.end()) return;
  Known& known = at->second;
  known.contact = std::max(known.contact, now);
  if (known.met) return;
  if (!IsReady(known) || known.weight > 1) ++generation_;
  known.met = true;
  ++met_;
  NoteFlood();
}

void Membership::Expire(core::TimePoint now) {
  if (begun_ == core::kNoDeadline) begun_ = expired_ = now;
  const core::Duration asleep = now - std::exchange(expired_, now) - interval();
  if (asleep > 2 * options_.refresh) {
    begun_ += asleep;
    for (auto& [id, known] : known_) known.contact += asleep;
    for (auto& [id, gone] : forgotten_) gone.until += asleep;
  }
  std::erase_if(forgotten_, [now](const auto& entry) { return now >= entry.second.until; });
  generation_ += std::erase_if(known_, [this, now](const auto& entry) {
    const auto& [id, known] = entry;
    if (now - known.contact < options_.forget_after) return false;
    // Which one goes makes little difference: it may be learned of once more.
    if (forgotten_.size() >= options_.max_members) forgotten_.erase(forgotten_.begin());
    forgotten_[id] = {known, now + options_.forget_after};
    roster_bytes_ -= BytesOf({.id = id, .addr = known.addr});
    met_ -= known.met ? 1 : 0;
    return true;
  });
  NoteFlood();
}

void Membership::NoteFlood() {
  const bool settled = begun_ != core::kNoDeadline && expired_ - begun_ >= options_.forget_after;
  const bool flooded = settled && known_.size() - met_ > std::max(met_, kSmallCluster);
  if (std::exchange(flooded_, flooded) != flooded) ++generation_;
}

bool Membership::IsReady(const Known& known) const {
  return known.met || (known.calls < kCallsOfNew && !flooded_);
}

std::vector<Member> Membership::Members() const {
  std::vector<Member> members;
  members.reserve(size());
  members.push_back(options_.self);
  double heaviest = std::max(options_.self.weight, 1.0);
  for (const auto& [id, known] : known_) {
    if (known.met) heaviest = std::max(heaviest, known.weight);
  }
  for (const auto& [id, known] : known_) {
    members.push_back({.id = id,
                       .addr = known.addr,
                       .weight = known.weight,
                       .state = IsReady(known) && (known.met || known.weight <= heaviest)
                                    ? MemberState::kReady
                                    : MemberState::kJoining});
  }
  return members;
}

std::vector<Member> Membership::Roster() const {
  std::vector<Member> roster;
  roster.reserve(met_ + 1);
  roster.push_back(options_.self);
  for (const auto& [id, known] : known_) {
    if (known.met) roster.push_back({.id = id, .addr = known.addr, .weight = known.weight});
  }
  return roster;
}

bool Membership::IsSmall() const { return size() <= kSmallCluster; }

core::Duration Membership::interval() const {
  return IsSmall() ? options_.refresh : std::min(options_.refresh, kLargeInterval);
}

bool Membership::IsDue(const Known& known, core::TimePoint now, core::Random& random) const {
  if (now < known.called_after) return false;
  if (IsSmall()) return true;
  const core::Duration age = now - known.contact;
  const core::Duration period =
      known.met ? options_.forget_after / kContactsBeforeForgotten : options_.refresh;
  if (known.met && !known.doubted && age < period * 9 / 10) return false;
  // Uniform over the time that is left; what is left for the next time must not be late.
  if (period - age <= interval()) return true;
  return random.NextDouble() < Seconds(interval()) / Seconds(period - age);
}

std::vector<RosterCall> Membership::Due(core::TimePoint now, core::Random& random) {
  std::vector<RosterCall> due;
  const bool small = IsSmall();
  const double share = kRostersARefresh * Seconds(interval()) / Seconds(options_.refresh) /
                       static_cast<double>(size());
  // Small clusters are called whole each time; not later because a tick came early.
  const core::TimePoint again = now + options_.refresh - (small ? interval() / 2 : interval() / 4);
  size_t strangers = kStrangersAtOnce + met_ / 2;
  std::unordered_set<std::string_view> strange;
  const auto may_call = [&](const Known& known) {
    if (known.met) return true;
    if (strangers == 0 || !strange.insert(known.addr).second) return false;
    --strangers;
    return true;
  };
  for (auto& [id, known] : known_) {
    const bool chosen = random.NextDouble() < share;
    if (now < known.called_after || !(chosen || IsDue(known, now, random))) continue;
    if (!may_call(known)) continue;
    known.called_after = again;
    if (!known.met && ++known.calls == kCallsOfNew) ++generation_;
    due.push_back({id, known.addr, small || chosen || known.doubted});
  }
  for (auto& [id, gone] : forgotten_) {
    gone.last.met = false;
    if (!gone.reported || now < gone.last.called_after || !may_call(gone.last)) continue;
    gone.last.called_after = again;
    gone.reported = false;
    due.push_back({id, gone.last.addr, /*wants_roster=*/true});
  }
  return due;
}

std::vector<size_t> Membership::SeedsDue(size_t seeds, core::TimePoint now, core::Random& random) {
  std::vector<size_t> due;
  if (now < seeds_after_) return due;
  seeds_after_ = now + options_.refresh - interval() / 4;
  const double share = static_cast<double>(kSmallCluster) / static_cast<double>(size());
  for (size_t seed = 0; seed < seeds; ++seed) {
    if (IsSmall() || random.NextDouble() < share) due.push_back(seed);
  }
  return due;
}

bool Membership::OnOtherEpoch(core::TimePoint now) {
  if (now < other_epoch_until_) return false;
  other_epoch_until_ = now + kBetweenOtherEpochs;
  return true;
}

}  // namespace dartfs::p2p
