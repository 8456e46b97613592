// What a run has cost.
#pragma once

#include <cstdint>

#include "core/base/time.h"

namespace dartfs::sim {

struct Report {
  uint64_t blocks = 0;
  uint64_t origin_fetches = 0;  // begun; probes of the version apart:
  uint64_t probes = 0;
  uint64_t origin_bytes = 0;       // sent
  double origin_per_block = 0;     // bytes over the object's
  uint64_t throttled = 0;          // requests that the origin put off
  core::Duration last_finished{};  // since the beginning; of those that never crashed:
  core::Duration last_survivor{};
  core::Duration last_dartfs{};  // and are no DART nodes
  uint32_t finished = 0;         // readers
  uint32_t readers = 0;
  uint32_t liars = 0;
  uint64_t busiest_bytes = 0;  // sent by one node
  uint32_t deepest = 0;        // of the first chunk's tree
  uint32_t deepest_hop = 0;    // of any request
  uint64_t hedges = 0;
  uint64_t failovers = 0;
  uint64_t busy = 0;               // "not now", as an answer
  uint64_t lies = 0;               // told
  uint64_t wrong_granules = 0;     // found by their checksums
  uint64_t unnamed = 0;            // answers that did not name the object
  uint64_t digest_mismatches = 0;  // found when the object was whole
  uint64_t reopened = 0;           // readers whose version was gone
  double roster_rate = 0;          // bytes a second and node, in and out; of the busiest:
  double roster_most = 0;
  double tracker_rate = 0;
  uint64_t events = 0;
  core::Duration
      p99{};  // of a fetch from a peer, as the node that thinks worst of them estimates it
  core::Duration worst_block{};  // that a reader waited, whose node neither crashed nor stopped
};

}  // namespace dartfs::sim
