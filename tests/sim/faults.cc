#include "sim/faults.h"

#include <chrono>

#include <fmt/format.h>

namespace dartfs::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

Options RandomOptions(uint64_t seed) {
  core::SeededRandom random(seed);
  Options options;
  options.seed = seed;
  options.object_bytes = (uint64_t{32} << 20) + random.Below(uint64_t{96} << 20);
  options.chunk_bytes = uint64_t{32} << 20;
  options.granule_bytes = uint64_t{1} << 20;
  options.nodes = 2 + static_cast<uint32_t>(random.Below(30));
  options.fanout = 1 + static_cast<uint32_t>(random.Below(4));
  options.dart_share = random.Below(3) == 0 ? 0.3 : 0;
  options.start_spread = milliseconds(random.Below(300));
  return options;
}

void AddRandomFaults(uint64_t seed, World& world) {
  core::SeededRandom random(~seed);
  const uint64_t faults = random.Below(8);
  for (uint64_t i = 0; i < faults; ++i) {
    const core::Duration at = milliseconds(random.Below(400));
    const auto node = static_cast<uint32_t>(random.Below(world.options().nodes));
    if (random.Below(2) == 0) {
      world.CrashAt(at, node);
      if (random.Below(3) > 0) {
        world.RestartAt(at + milliseconds(random.Below(3000)), node, random.Below(2) == 0);
      }
    } else {
      world.StopAt(at, node);
      world.ContinueAt(at + milliseconds(1 + random.Below(20000)), node);
    }
  }
}

std::string RunRandom(uint64_t seed, Report* report) {
  World world(RandomOptions(seed));
  AddRandomFaults(seed, world);
  *report = world.Run(seconds(600));
  for (uint32_t i = 0; i < world.options().nodes; ++i) {
    const Node& node = world.node(i);
    if (node.up && !node.done) return fmt::format("{} has not got the object", node.id);
  }
  if (report->last_finished > seconds(120)) return "it took too long";
  return "";
}

}  // namespace dartfs::sim
