#include "p2p/membership.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/base/check.h"

namespace dartfs::p2p {
namespace {

// A cluster of so many is asked whole each time.
constexpr size_t kSmallCluster = 32;
constexpr int kContactsBeforeForgotten = 3;
// One that is new and has not answered the first call by the second.
constexpr int kCallsOfNew = 2;
constexpr core::Duration kLargeInterval = std::chrono::seconds(1);
// Of a large cluster: news reaches all within some rounds, however many they are.
constexpr double kRostersARefresh = 3;
constexpr core::Duration kBetweenOtherEpochs = std::chrono::seconds(1);

double Seconds(core::Duration time) { return std::chrono::duration<double>(time).count(); }

// A weight of 0 is left out on the wire, and means 1.
double Normalised(double weight, double most) { return weight > 0 ? std::min(weight, most) : 1.0; }

}  // namespace

Membership::Membership(MembershipOptions options) : options_(std::move(options)) {
  DARTFS_CHECK(IsMemberId(options_.self.id));
}

const char* Membership::WhyNot(const Member& member) const {
  if (!IsMemberId(member.id)) return "the ID holds bytes other than 0x21 to 0x7E, or none";
  if (!std::isfinite(member.weight)) return "the weight is not finite";
  if (member.addr.empty()) return "there is no address";
  if (options_.allows_address && !options_.allows_address(member.addr)) {
    return "the address is not within --peer-allow";
  }
  if (size() >= options_.max_members && !known_.contains(member.id)) {
    return "there are too many members";
  }
  return nullptr;
}

std::vector<RejectedMember> Membership::Learn(std::span<const Member> reported,
                                              core::TimePoint now) {
  std::vector<RejectedMember> rejected;
  for (const Member& member : reported) {
    if (member.id == options_.self.id) continue;
    if (const char* why = WhyNot(member)) {
      rejected.push_back({member.id, why});
    } else if (const auto gone = forgotten_.find(member.id); gone != forgotten_.end()) {
      gone->second.last.addr = member.addr;
      gone->second.reported = true;
    } else {
      Put(member, /*first_hand=*/false, now);
    }
  }
  return rejected;
}

// Contact is left as it was: that a member was mentioned is no sign of its life.
void Membership::Put(const Member& member, bool first_hand, core::TimePoint now) {
  const double weight = Normalised(member.weight, options_.max_weight);
  const auto [at, added] = known_.try_emplace(member.id);
  Known& known = at->second;
  if (added) known.contact = now;
  if (!added && known.addr == member.addr && known.weight == weight) return;
  const bool in_contact = known.met && now - known.contact < options_.forget_after / 3;
  if (!first_hand && in_contact && known.addr != member.addr) return;
  known.addr = member.addr;
  known.weight = weight;
  ++generation_;
}

void Membership::OnCalledBy(std::string_view id, std::string_view addr, core::TimePoint now) {
  if (id == options_.self.id || !IsMemberId(id)) return;
  OnContact(id, now);
  if (addr.empty()) return;
  Member member{.id = std::string(id), .addr = std::string(addr)};
  const auto known = known_.find(id);
  if (known != known_.end()) member.weight = known->second.weight;
  if (WhyNot(member) != nullptr) return;
  Put(member, /*first_hand=*/true, now);
  OnContact(id, now);
}

void Membership::OnAnswerOf(std::string_view responder_id, core::TimePoint now) {
  OnContact(responder_id, now);
}

// One that had been forgotten is back.
void Membership::OnContact(std::string_view id, core::TimePoint now) {
  if (const auto gone = forgotten_.find(id); gone != forgotten_.end()) {
    if (size() < options_.max_members &&
        known_.try_emplace(gone->first, gone->second.last).second) {
      ++generation_;
    }
    forgotten_.erase(gone);
  }
  const auto known = known_.find(id);
  if (known == known_.end()) return;
  known->second.contact = std::max(known->second.contact, now);
  if (StateOf(known->second) != MemberState::kReady) ++generation_;
  known->second.met = true;
}

void Membership::Expire(core::TimePoint now) {
  std::erase_if(forgotten_, [now](const auto& entry) { return now >= entry.second.until; });
  generation_ += std::erase_if(known_, [this, now](const auto& entry) {
    if (now - entry.second.contact < options_.forget_after) return false;
    // Which one goes makes little difference: it may be learned of once more.
    if (forgotten_.size() >= options_.max_members) forgotten_.erase(forgotten_.begin());
    forgotten_[entry.first] = {entry.second, now + options_.forget_after};
    return true;
  });
}

MemberState Membership::StateOf(const Known& known) {
  return known.met || known.calls < kCallsOfNew ? MemberState::kReady : MemberState::kJoining;
}

std::vector<Member> Membership::Members() const {
  std::vector<Member> members;
  members.reserve(size());
  members.push_back(options_.self);
  for (const auto& [id, known] : known_) {
    members.push_back(
        {.id = id, .addr = known.addr, .weight = known.weight, .state = StateOf(known)});
  }
  return members;
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
  if (known.met && age < period * 9 / 10) return false;
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
  for (auto& [id, known] : known_) {
    const bool wants_roster = small || random.NextDouble() < share;
    if (!IsDue(known, now, random) && !(wants_roster && now >= known.called_after)) continue;
    known.called_after = again;
    if (!known.met && ++known.calls == kCallsOfNew) ++generation_;
    due.push_back({id, known.addr, wants_roster});
  }
  for (auto& [id, gone] : forgotten_) {
    if (!gone.reported || now < gone.last.called_after) continue;
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
