// View: the membership of a cluster as one node sees it, at one moment (spec/cluster.md 3). Built
// once, then constant: share it between threads freely.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "p2p/placement.h"

namespace dartfs::p2p {

// In the order of who is believed where two reports of one member disagree.
enum class MemberState : uint8_t { kReady, kSuspect, kJoining, kLeaving };
// "Ready", ...
const char* StateName(MemberState state);

struct Member {
  std::string id;     // stable over restarts, never an address
  std::string addr;   // host:port of its peer listener; no part of the epoch
  double weight = 1;  // of its cache, beside others'; as it was told
  MemberState state = MemberState::kReady;
  bool operator==(const Member&) const = default;
};

// Bytes 0x21 to 0x7E, at least one: no separator of the epoch's fields, nor of a header's, is among
// them.
bool IsMemberId(std::string_view text);

class View {
 public:
  // Sorts by ID and keeps one member of each: the one in the best state, then of the least weight.
  explicit View(std::vector<Member> members);
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  // A token of agreement, not a count: equal for equal sets of (ID, weight), whatever the states
  // and addresses (WIRE.md section 1).
  uint64_t epoch() const { return epoch_; }
  // By ID.
  std::span<const Member> members() const { return members_; }
  const Member* Find(std::string_view id) const;  // O(log n); null: no member

  // By ID. Ready members own chunks; reads may also be tried on those that are suspect.
  std::span<const PlacedNode> ready() const { return ready_; }
  std::span<const PlacedNode> live() const { return live_; }

 private:
  std::vector<Member> members_;
  std::vector<PlacedNode> ready_;  // their IDs are members_'
  std::vector<PlacedNode> live_;
  uint64_t epoch_;
};

using ViewPtr = std::shared_ptr<const View>;

}  // namespace dartfs::p2p
