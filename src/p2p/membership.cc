#include "p2p/membership.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"

namespace dartfs::p2p {
namespace {

// A cluster of so many is asked whole each time.
constexpr size_t kSmallCluster = 32;
constexpr int kContactsBeforeForgotten = 3;

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
    } else {
      Put(member, now);
    }
  }
  return rejected;
}

// Contact is left as it was: that a member was mentioned is no sign of its life.
void Membership::Put(const Member& member, core::TimePoint now) {
  const double weight = Normalised(member.weight, options_.max_weight);
  const auto [at, added] = known_.try_emplace(member.id);
  Known& known = at->second;
  if (added) known.contact = now;
  if (!added && known.addr == member.addr && known.weight == weight) return;
  known.addr = member.addr;
  known.weight = weight;
  ++generation_;
}

void Membership::OnCalledBy(std::string_view id, std::string_view addr, core::TimePoint now) {
  if (id == options_.self.id || !IsMemberId(id)) return;
  if (!addr.empty()) {
    Member member{.id = std::string(id), .addr = std::string(addr)};
    const auto known = known_.find(id);
    if (known != known_.end()) member.weight = known->second.weight;
    if (WhyNot(member) == nullptr) Put(member, now);
  }
  OnAnswerOf(id, now);
}

void Membership::OnAnswerOf(std::string_view responder_id, core::TimePoint now) {
  const auto known = known_.find(responder_id);
  if (known != known_.end()) known->second.contact = std::max(known->second.contact, now);
}

void Membership::Expire(core::TimePoint now) {
  generation_ += std::erase_if(known_, [this, now](const auto& entry) {
    return now - entry.second.contact >= options_.forget_after;
  });
}

std::vector<Member> Membership::Members() const {
  std::vector<Member> members;
  members.reserve(size());
  members.push_back(options_.self);
  for (const auto& [id, known] : known_) {
    members.push_back({.id = id, .addr = known.addr, .weight = known.weight});
  }
  return members;
}

std::vector<std::string> Membership::Due(core::TimePoint now, core::Duration interval,
                                         core::Random& random) const {
  std::vector<std::string> due;
  const bool small = size() <= kSmallCluster;
  const core::Duration period = options_.forget_after / kContactsBeforeForgotten;
  for (const auto& [id, known] : known_) {
    const core::Duration age = now - known.contact;
    if (small) {
      due.push_back(id);
    } else if (age >= period * 3 / 4) {
      // Uniform over the period's last quarter; what is left for the next time must not be late.
      const double share = static_cast<double>(interval.count()) /
                           static_cast<double>(std::max((period - age).count(), int64_t{1}));
      if (period - age <= interval || random.NextDouble() < share) due.push_back(id);
    }
  }
  return due;
}

}  // namespace dartfs::p2p
