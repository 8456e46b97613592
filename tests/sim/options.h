// What is simulated: nodes, network, origin, object. One seed and these replay a run, faults apart.
#pragma once

#include <cstdint>

#include "core/base/time.h"
#include "p2p/peer_table.h"

namespace dartfs::sim {

// What the object's bytes are told by (IDENTITY.md).
enum class ObjectKind : uint8_t {
  kVersioned,         // a strong ETag: peers' answers must name it
  kContentAddressed,  // a digest, checked when it is whole
  kImmutable,         // declared so: DART's nodes are believed as all are
};

// How a node of dartfs lies. Which lies there are depends on the object: bytes that nothing can
// tell from right ones are told for digests alone.
enum class Lie : uint8_t {
  kNone,
  kShort,    // half a block, whose end looks like one
  kDenies,   // what it holds
  kSilent,   // lets connect and says nothing
  kRoster,   // members that do not exist, or live at its own address
  kGarbles,  // bytes that went bad after their checksums were made
  kUnnamed,  // wrong bytes in an answer that names no object and has no checksums
  kForges,   // wrong bytes and the checksums of them
};

struct Options {
  uint64_t seed = 1;
  uint32_t nodes = 100;
  uint32_t fanout = 2;
  ObjectKind kind = ObjectKind::kVersioned;
  uint64_t object_bytes = uint64_t{256} << 20;
  uint64_t block_bytes = uint64_t{4} << 20;
  uint64_t chunk_bytes = uint64_t{256} << 20;
  uint64_t granule_bytes = uint64_t{256} << 10;  // the unit of what is sent
  uint32_t window_blocks = 8;                    // of a reader: on demand and ahead

  core::Duration latency = std::chrono::microseconds(200);  // one way
  core::Duration jitter = std::chrono::microseconds(50);
  double loss = 0;                        // of granules, sent again, and of connections
  double node_bytes_per_second = 1.25e9;  // each way
  double origin_bytes_per_second = 1.25e9;
  core::Duration origin_first_byte = std::chrono::milliseconds(5);
  double origin_requests_per_second = 0;  // beyond it 429; 0: as many as one likes
  core::Duration start_spread{};          // readers begin at random within it
  double reader_share = 1;                // of the nodes; the others are idle

  double dart_share = 0;      // of nodes without WIRE.md's section 7
  double liar_share = 0;      // of the others; see Lie
  Lie only_lie = Lie::kNone;  // they all tell that one; kNone: any that is about such objects
  uint32_t max_relays = 0;    // flights of a node beyond which it fetches for nobody else; 0: any

  // Who is a member: what the nodes tell each other, beginning with the first `seeds` of them. Else
  // each learns of a change within view_lag, and of a death after forget_after.
  bool rosters = false;
  bool trackers = false;
  uint32_t seeds = 3;
  core::Duration refresh = std::chrono::seconds(5);
  core::Duration view_lag = std::chrono::seconds(5);
  core::Duration forget_after = std::chrono::seconds(60);
  p2p::PeerTableOptions peers;
};

}  // namespace dartfs::sim
