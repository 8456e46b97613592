// What a node does with a peer's request for a block (WIRE.md sections 4 and 7). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "p2p/chunk_tree.h"

namespace dartfs::p2p {

// X-DART-Hop of this and more is declined.
inline constexpr uint32_t kMaxHop = 64;

// How long a relay goes on with what nobody waits for any more because it has answered "busy": they
// will ask again, and a slow origin would never be heard to its end.
inline constexpr core::Duration kLinger = std::chrono::seconds(4);

// What a relay keeps of the time that its requester gives it (X-DARTFS-Deadline): it waits so much
// less for its own upstream, and answers "busy" half of this before the time is up.
inline constexpr core::Duration kHopAllowance = std::chrono::milliseconds(100);

struct BlockAsk {
  uint32_t hop = 0;
  bool has_url = true;  // X-DART-Origin: we may fetch on the sender's behalf
  // X-DARTFS-Path: the nodes it has come through, the sender last. Empty: a DART node's.
  std::vector<std::string> path = {};
};

struct BlockStatus {
  bool held = false;
  bool in_flight = false;
  bool at_origin = false;                 // the flight's bytes come from the origin
  std::vector<std::string> sources = {};  // else the peers that the flight waits for
};

enum class Admission : uint8_t {
  kServe,    // it is held
  kJoin,     // the flight's bytes, as they come
  kRelay,    // a new flight on the sender's behalf
  kDecline,  // 404
  kBusy,     // 404, and again later
};

// `has_room`: whether one more may be relayed now.
//
// Who is joined or has a block fetched for it waits for us. It may do so if we wait for nobody (our
// bytes come from the origin), or if it stands behind us in the rank: so all waiting goes one way,
// and no cycle can close over any number of nodes and views. A DART node does not say who it is,
// and is let wait; WIRE.md's second without a byte ends that.
Admission Admit(const ChunkTree& tree, std::string_view self, const BlockAsk& ask,
                const BlockStatus& status, bool has_room);

}  // namespace dartfs::p2p
