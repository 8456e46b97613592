// A cluster and its misfortunes, all out of one seed.
#pragma once

#include <cstdint>
#include <string>

#include "sim/world.h"

namespace dartfs::sim {

// Small enough for many runs: up to 31 nodes, of any fanout, a third of the clusters with DART
// nodes.
Options RandomOptions(uint64_t seed);
// Up to seven crashes, restarts with and without what was held, stops.
void AddRandomFaults(uint64_t seed, World& world);

// Runs that cluster. Empty, or what is wrong with the outcome: a node that is up and has not got
// the object, or a time beyond all limits. (What breaks an invariant within the run ends the
// process.)
std::string RunRandom(uint64_t seed, Report* report);

}  // namespace dartfs::sim
