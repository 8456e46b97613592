#include "sim/faults.h"

#include <chrono>
#include <string>

#include <fmt/format.h>

namespace dartfs::sim {
namespace {

using core::Duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kUsual = seconds(25);
constexpr Duration kLongest = seconds(150);
constexpr Duration kLimit = seconds(600);
// Enough that the dead are forgotten, and who was forgotten is found again, after the last of them.
constexpr Duration kRest = kLongest + seconds(200);

Duration Until(core::SeededRandom& random, Duration limit) {
  return milliseconds(random.Below(static_cast<uint64_t>(core::ToMillis(limit))));
}

void AddNodeFault(core::SeededRandom& random, World& world) {
  const Duration at = Until(random, milliseconds(400));
  const auto node = static_cast<uint32_t>(random.Below(world.options().nodes));
  switch (random.Below(6)) {
    case 0:
    case 1:
      world.CrashAt(at, node);
      if (random.Below(3) > 0) {
        world.RestartAt(at + Until(random, seconds(3)), node, random.Below(2) == 0,
                        random.Below(2) == 0);
      }
      return;
    case 2: {
      const auto other = static_cast<uint32_t>(random.Below(world.options().nodes));
      world.CrashAt(at, node);
      world.CrashAt(at, other);
      return world.ExchangeAt(at + Until(random, seconds(3)), node, other);
    }
    case 3:
      world.SlowDownAt(at, node, 0.001 + 0.1 * random.NextDouble());
      return world.SlowDownAt(at + Until(random, seconds(10)) + milliseconds(1), node, 1);
    default:
      world.StopAt(at, node);
      return world.ContinueAt(
          at + milliseconds(1) + Until(random, random.Below(4) == 0 ? seconds(70) : seconds(20)),
          node);
  }
}

void AddNetworkFault(core::SeededRandom& random, World& world) {
  const Duration at = Until(random, milliseconds(400));
  const uint64_t nodes = world.options().nodes;
  if (random.Below(2) == 0) return world.PartitionAt(at, random.NextDouble());
  const auto from = static_cast<uint32_t>(random.Below(nodes));
  for (uint64_t i = random.Below(nodes); i > 0; --i) {
    world.BlockDialsAt(at, from, static_cast<uint32_t>(random.Below(nodes)));
  }
}

void AddOriginFault(core::SeededRandom& random, World& world) {
  const Duration at = Until(random, milliseconds(400));
  switch (random.Below(3)) {
    case 0:
      world.OriginRateAt(at, 1e7 * (1 + random.NextDouble()));
      return world.OriginRateAt(at + Until(random, seconds(10)) + milliseconds(1),
                                world.options().origin_bytes_per_second);
    case 1:
      return world.OriginDownAt(at, Until(random, seconds(10)));
    default:
      if (world.options().kind == ObjectKind::kVersioned) world.ChangeVersionAt(at);
  }
}

std::string Unfinished(const World& world) {
  for (uint32_t i = 0; i < world.options().nodes; ++i) {
    const Node& node = world.node(i);
    if (node.up && node.reads && !node.done) {
      return fmt::format("{} has got {} blocks of the object", node.id, node.read_next);
    }
  }
  return "";
}

}  // namespace

Options RandomOptions(uint64_t seed) {
  core::SeededRandom random(seed);
  Options options;
  options.seed = seed;
  options.kind = static_cast<ObjectKind>(random.Below(3));
  options.object_bytes = (uint64_t{32} << 20) + random.Below(uint64_t{96} << 20);
  options.chunk_bytes = uint64_t{32} << 20;
  options.granule_bytes = uint64_t{1} << 20;
  options.nodes = 2 + static_cast<uint32_t>(random.Below(random.Below(4) == 0 ? 60 : 30));
  options.fanout = 1 + static_cast<uint32_t>(random.Below(4));
  options.dart_share = random.Below(3) == 0 ? 0.3 : 0;
  options.liar_share = random.Below(3) == 0 ? 0.1 : 0;
  options.loss = random.Below(4) == 0 ? 0.01 : 0;
  options.max_relays = random.Below(4) == 0 ? 1 + static_cast<uint32_t>(random.Below(8)) : 0;
  options.origin_requests_per_second = random.Below(6) == 0 ? 50 : 0;
  options.reader_share = random.Below(4) == 0 ? 0.5 : 1;
  options.rosters = random.Below(2) == 0;
  options.trackers = random.Below(2) == 0;
  options.start_spread = milliseconds(random.Below(300));
  return options;
}

void AddRandomFaults(uint64_t seed, World& world) {
  core::SeededRandom random(~seed);
  for (uint64_t i = random.Below(8); i > 0; --i) AddNodeFault(random, world);
  if (random.Below(4) == 0) AddNetworkFault(random, world);
  for (uint64_t i = random.Below(3); i > 0; --i) AddOriginFault(random, world);
  // After all of them; sometimes so late that each side has forgotten the other.
  world.HealAt(milliseconds(500) + Until(random, random.Below(3) == 0 ? kLongest : kUsual));
}

std::string RunRandom(uint64_t seed, Report* report) {
  World world(RandomOptions(seed));
  AddRandomFaults(seed, world);
  *report = world.Run(kLimit);
  if (std::string wrong = Unfinished(world); !wrong.empty()) return wrong;
  if (report->last_finished > seconds(180)) return "it took too long";
  world.Idle(kRest);
  if (std::string unsettled = world.Unsettled(); !unsettled.empty()) return unsettled;
  world.ReadAgain();
  const Report again = world.Run(2 * kLimit);
  *report = again;
  if (std::string wrong = Unfinished(world); !wrong.empty()) return "reading anew: " + wrong;
  const Options& options = world.options();
  // Without rosters a circuit is closed by a trial, beside which the others go round.
  const bool disturbed =
      !options.rosters || options.liar_share > 0 || options.dart_share > 0 || options.loss > 0;
  if (!disturbed && again.origin_per_block > 1.02) {
    return fmt::format("once all is well the origin is asked for {} of the object",
                       again.origin_per_block);
  }
  return "";
}

}  // namespace dartfs::sim
