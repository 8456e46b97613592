// dartfs-sim: one run, or many, of a simulated cluster; prints what it cost.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "sim/faults.h"

namespace dartfs::sim {
namespace {

struct Arguments {
  Options options;
  uint64_t object_mib = 256;
  uint64_t granule_kib = 256;
  uint32_t runs = 1;
  uint64_t limit_s = 3600;
  uint64_t refresh_s = 5;
  uint64_t soak_s = 0;
  double crash_share = 0;  // of the nodes, a second; as many come back, with nothing
};

double Seconds(core::Duration time) { return std::chrono::duration<double>(time).count(); }

void AddCrashes(const Arguments& arguments, const Options& options, World& world) {
  core::SeededRandom random(options.seed + 1);
  const double each = arguments.crash_share * options.nodes;
  if (each <= 0) return;
  const double until = Seconds(world.IdealPipeline()) * 4;
  for (double at = 1 / each; at < until; at += 1 / each) {
    const auto when = core::Duration(static_cast<int64_t>(at * 1e9));
    const auto node = static_cast<uint32_t>(random.Below(options.nodes));
    world.CrashAt(when, node);
    world.RestartAt(when + std::chrono::milliseconds(1), node, /*warm=*/false);
  }
}

void RunOnce(const Arguments& arguments, uint64_t seed) {
  Options options = arguments.options;
  options.seed = seed;
  World world(options);
  AddCrashes(arguments, options, world);
  const auto began = std::chrono::steady_clock::now();
  const Report report = world.Run(std::chrono::seconds(arguments.limit_s));
  const double took = Seconds(std::chrono::steady_clock::now() - began);
  fmt::print(
      "seed {}: {} of {} readers, {} blocks; origin {:.4f} of the object in {} fetches; last "
      "{:.3f} s, of those that never crashed {:.3f} s, {:.2f} of the ideal pipeline; height {}; "
      "busiest {:.2f} objects; worst block "
      "{:.3f} s; {} hedges, {} failovers; {} events in {:.1f} s, {:.0f} a second\n",
      seed, report.finished, report.readers, report.blocks, report.origin_per_block,
      report.origin_fetches, Seconds(report.last_finished), Seconds(report.last_survivor),
      Seconds(report.last_survivor) / Seconds(world.IdealPipeline()), report.deepest,
      static_cast<double>(report.busiest_bytes) / static_cast<double>(options.object_bytes),
      Seconds(report.worst_block), report.hedges, report.failovers, report.events, took,
      static_cast<double>(report.events) / took);
  std::fflush(stdout);
}

// Of real time. 1: a run was wrong.
int Soak(uint64_t seed, std::chrono::seconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  uint64_t runs = 0;
  uint64_t events = 0;
  for (; std::chrono::steady_clock::now() < until; ++seed, ++runs) {
    Report report;
    const std::string wrong = RunRandom(seed, &report);
    events += report.events;
    if (!wrong.empty()) {
      fmt::print("seed {}: {}\n", seed, wrong);
      return 1;
    }
  }
  fmt::print("{} runs up to seed {}, {} events: all right\n", runs, seed - 1, events);
  return 0;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  Options& options = arguments.options;
  CLI::App app("A simulated cluster reads one object at once.");
  app.add_option("--seed", options.seed, "of the first run");
  app.add_option("--runs", arguments.runs, "so many, each with the next seed");
  app.add_option("--nodes", options.nodes);
  app.add_option("--fanout", options.fanout);
  app.add_option("--object-mib", arguments.object_mib);
  app.add_option("--granule-kib", arguments.granule_kib, "the unit of sending");
  app.add_option("--window", options.window_blocks, "blocks that a reader has under way");
  app.add_option("--node-rate", options.node_bytes_per_second, "bytes a second, each way");
  app.add_option("--origin-rate", options.origin_bytes_per_second, "bytes a second");
  app.add_option("--dart", options.dart_share, "share of nodes without the extensions");
  app.add_option("--crash", arguments.crash_share, "share of nodes that restart empty, a second");
  app.add_option("--refresh", arguments.refresh_s, "seconds until all know of a change");
  app.add_option("--soak", arguments.soak_s, "seconds of random clusters and faults instead");
  app.add_option("--limit", arguments.limit_s, "seconds of virtual time");
  CLI11_PARSE(app, argc, argv);
  options.object_bytes = arguments.object_mib << 20;
  options.granule_bytes = arguments.granule_kib << 10;
  options.view_lag = std::chrono::seconds(arguments.refresh_s);
  if (arguments.soak_s > 0) return Soak(options.seed, std::chrono::seconds(arguments.soak_s));
  for (uint32_t run = 0; run < arguments.runs; ++run) RunOnce(arguments, options.seed + run);
  return 0;
}

}  // namespace
}  // namespace dartfs::sim

int main(int argc, char** argv) { return dartfs::sim::Main(argc, argv); }
