#include "p2p/view.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "core/base/wire_id.h"

namespace dartfs::p2p {
namespace {

// Total for any weights, NaN too, so that the order never depends on the input's.
bool InOrder(const Member& a, const Member& b) {
  if (a.id != b.id) return a.id < b.id;
  if (a.state != b.state) return a.state < b.state;
  return std::strong_order(a.weight, b.weight) < 0;
}

uint64_t EpochOf(std::span<const Member> members) {
  core::Fnv1a64 hash;
  for (const Member& member : members) {
    hash.Add(member.id).AddByte(0x1F);
    hash.AddBigEndian(std::bit_cast<uint64_t>(member.weight)).AddByte(0x1E);
  }
  return core::Fmix64(hash.value());
}

}  // namespace

const char* StateName(MemberState state) {
  switch (state) {
    case MemberState::kReady:
      return "Ready";
    case MemberState::kSuspect:
      return "Suspect";
    case MemberState::kJoining:
      return "Joining";
    case MemberState::kLeaving:
      return "Leaving";
  }
  return "Unknown";
}

bool IsMemberId(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x21 && c <= 0x7E; });
}

View::View(std::vector<Member> members) : members_(std::move(members)) {
  std::sort(members_.begin(), members_.end(), InOrder);
  const auto same = [](const Member& a, const Member& b) { return a.id == b.id; };
  members_.erase(std::unique(members_.begin(), members_.end(), same), members_.end());
  epoch_ = EpochOf(members_);
  for (const Member& member : members_) {
    const PlacedNode node{member.id, member.weight};
    if (member.state == MemberState::kReady) ready_.push_back(node);
    if (member.state <= MemberState::kSuspect) live_.push_back(node);
  }
}

const Member* View::Find(std::string_view id) const {
  const auto found =
      std::lower_bound(members_.begin(), members_.end(), id,
                       [](const Member& member, std::string_view key) { return member.id < key; });
  return found != members_.end() && found->id == id ? &*found : nullptr;
}

}  // namespace dartfs::p2p
