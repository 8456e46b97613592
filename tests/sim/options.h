// What is simulated: nodes, network, origin, object, faults. One seed and these replay a run.
#pragma once

#include <cstdint>

#include "core/base/time.h"
#include "p2p/peer_table.h"

namespace dartfs::sim {

struct Options {
  uint64_t seed = 1;
  uint32_t nodes = 100;
  uint32_t fanout = 2;
  uint64_t object_bytes = uint64_t{256} << 20;
  uint64_t block_bytes = uint64_t{4} << 20;
  uint64_t chunk_bytes = uint64_t{256} << 20;
  uint64_t granule_bytes = uint64_t{256} << 10;  // the unit of what is sent
  uint32_t window_blocks = 8;                    // of a reader: on demand and ahead

  core::Duration latency = std::chrono::microseconds(200);  // one way
  core::Duration jitter = std::chrono::microseconds(50);
  double node_bytes_per_second = 1.25e9;  // each way
  double origin_bytes_per_second = 1.25e9;
  core::Duration origin_first_byte = std::chrono::milliseconds(5);
  core::Duration start_spread{};  // readers begin at random within it

  double dart_share = 0;                              // of nodes without WIRE.md's section 7
  core::Duration view_lag = std::chrono::seconds(5);  // until a node learns of a change, at most
  core::Duration forget_after =
      std::chrono::seconds(60);  // until a dead member is a member no more
  p2p::PeerTableOptions peers;
};

}  // namespace dartfs::sim
