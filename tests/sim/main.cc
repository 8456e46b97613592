// dartfs-sim: one run, or many, of a simulated cluster; prints what it cost.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
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
  uint64_t idle_s = 0;
  uint64_t first_byte_ms = 5;
  double crash_share = 0;   // of the nodes, a second; as many come back, with nothing
  double kill_owner = -1;   // at this part of the time that it takes undisturbed
  double stop_parent = -1;  // at this second, a parent of the first chunk's tree
};

double Seconds(core::Duration time) { return std::chrono::duration<double>(time).count(); }
core::Duration At(double seconds) { return core::Duration(static_cast<int64_t>(seconds * 1e9)); }

void AddCrashes(const Arguments& arguments, const Options& options, World& world) {
  core::SeededRandom random(options.seed + 1);
  const double each = arguments.crash_share * options.nodes;
  if (each <= 0) return;
  const double until = Seconds(world.IdealPipeline()) * 4;
  for (double at = 1 / each; at < until; at += 1 / each) {
    const auto node = static_cast<uint32_t>(random.Below(options.nodes));
    world.CrashAt(At(at), node);
    world.RestartAt(At(at) + std::chrono::milliseconds(1), node, /*warm=*/false);
  }
}

void AddFaults(const Arguments& arguments, const Options& options, World& world) {
  AddCrashes(arguments, options, world);
  if (arguments.kill_owner >= 0) {
    World undisturbed(options);
    const Report report = undisturbed.Run(std::chrono::seconds(arguments.limit_s));
    world.CrashAt(At(Seconds(report.last_finished) * arguments.kill_owner), world.OwnerOf(0));
  }
  if (arguments.stop_parent >= 0) {
    const uint32_t owner = world.OwnerOf(0);
    uint32_t child = 0;
    while (child == owner || world.ParentOf(0, child) == owner) ++child;
    world.StopAt(At(arguments.stop_parent), world.ParentOf(0, child));
    world.ContinueAt(At(arguments.stop_parent + 600), world.ParentOf(0, child));
  }
}

void Print(uint64_t seed, const Report& report, const World& world, double took) {
  const Options& options = world.options();
  fmt::print(
      "seed {}: {} of {} readers, {} blocks, {} liars; origin {:.4f} of the object in {} fetches, "
      "{} probes; last {:.3f} s, of those that never crashed {:.3f} s, {:.2f} of the ideal "
      "pipeline, of dartfs's {:.3f} s; height {}, deepest hop {}; busiest {:.2f} objects; worst "
      "block {:.3f} s, p99 "
      "of peers {:.3f} s; {} "
      "hedges, {} failovers, {} busy; {} put off by the origin; wrong: {} granules, {} unnamed, {} "
      "digests; {} opened anew; roster {:.0f}, at most {:.0f}, tracker {:.0f} bytes a second and "
      "node; {} events in {:.1f} s, {:.0f} a second\n",
      seed, report.finished, report.readers, report.blocks, report.liars, report.origin_per_block,
      report.origin_fetches, report.probes, Seconds(report.last_finished),
      Seconds(report.last_survivor), Seconds(report.last_survivor) / Seconds(world.IdealPipeline()),
      Seconds(report.last_dartfs), report.deepest, report.deepest_hop,
      static_cast<double>(report.busiest_bytes) / static_cast<double>(options.object_bytes),
      Seconds(report.worst_block), Seconds(report.p99), report.hedges, report.failovers,
      report.busy, report.throttled, report.wrong_granules, report.unnamed,
      report.digest_mismatches, report.reopened, report.roster_rate, report.roster_most,
      report.tracker_rate, report.events, took, static_cast<double>(report.events) / took);
  std::fflush(stdout);
}

// The worst of many runs, in a line.
struct Worst {
  double origin = 0;
  double pipeline = 0;
  core::Duration block{};
  core::Duration beyond{};  // by which a block was later than the p99
  uint32_t unfinished = 0;
  void Add(const Report& report, const World& world) {
    origin = std::max(origin, report.origin_per_block);
    pipeline = std::max(pipeline, Seconds(report.last_survivor) / Seconds(world.IdealPipeline()));
    block = std::max(block, report.worst_block);
    beyond = std::max(beyond, report.worst_block - report.p99);
    for (uint32_t i = 0; i < world.options().nodes; ++i) {
      const Node& node = world.node(i);
      unfinished += node.up && node.reads && !node.done ? 1 : 0;
    }
  }
};

void RunOnce(const Arguments& arguments, uint64_t seed, Worst& worst) {
  Options options = arguments.options;
  options.seed = seed;
  World world(options);
  AddFaults(arguments, options, world);
  const auto began = std::chrono::steady_clock::now();
  if (arguments.idle_s > 0) world.Idle(std::chrono::seconds(arguments.idle_s));
  const Report report = world.Run(std::chrono::seconds(arguments.limit_s));
  Print(seed, report, world, Seconds(std::chrono::steady_clock::now() - began));
  worst.Add(report, world);
}

// An invariant that does not hold ends the process: which run it was in is told before.
uint64_t running_seed = 0;

void TellSeed(int /*signal*/) {
  std::array<char, 64> line{};
  const int length = std::snprintf(line.data(), line.size(), "seed %llu\n",
                                   static_cast<unsigned long long>(running_seed));
  if (write(STDERR_FILENO, line.data(), static_cast<size_t>(length)) < 0) _exit(1);
}

// Of real time. 1: a run was wrong.
int Soak(uint64_t seed, std::chrono::seconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  std::signal(SIGABRT, TellSeed);
  uint64_t runs = 0;
  uint64_t events = 0;
  for (; std::chrono::steady_clock::now() < until; ++seed, ++runs) {
    Report report;
    running_seed = seed;
    const std::string wrong = RunRandom(seed, &report);
    events += report.events;
    if (!wrong.empty()) {
      const World world(RandomOptions(seed));
      const Options& options = world.options();
      fmt::print(
          "seed {}: {}\n{} nodes, fanout {}, object kind {}, rosters {}, trackers {}, loss {}, "
          "at most {} relays, dart {}\n",
          seed, wrong, options.nodes, options.fanout, static_cast<int>(options.kind),
          options.rosters, options.trackers, options.loss, options.max_relays, options.dart_share);
      Print(seed, report, world, 0);
      return 1;
    }
  }
  fmt::print("{} runs up to seed {}, {} events: all right\n", runs, seed - 1, events);
  return 0;
}

void AddOptions(CLI::App& app, Arguments& arguments) {
  Options& options = arguments.options;
  const std::map<std::string, ObjectKind> kinds = {{"versioned", ObjectKind::kVersioned},
                                                   {"digest", ObjectKind::kContentAddressed},
                                                   {"immutable", ObjectKind::kImmutable}};
  app.add_option("--seed", options.seed, "of the first run");
  app.add_option("--runs", arguments.runs, "so many, each with the next seed");
  app.add_option("--nodes", options.nodes);
  app.add_option("--fanout", options.fanout);
  app.add_option("--object", options.kind, "versioned, digest or immutable")
      ->transform(CLI::CheckedTransformer(kinds));
  app.add_option("--object-mib", arguments.object_mib);
  app.add_option("--granule-kib", arguments.granule_kib, "the unit of sending");
  app.add_option("--window", options.window_blocks, "blocks that a reader has under way");
  app.add_option("--readers", options.reader_share, "share of nodes that read it");
  app.add_option("--first-byte-ms", arguments.first_byte_ms, "of the origin");
  app.add_option("--node-rate", options.node_bytes_per_second, "bytes a second, each way");
  app.add_option("--origin-rate", options.origin_bytes_per_second, "bytes a second");
  app.add_option("--origin-requests", options.origin_requests_per_second, "a second; then 429");
  app.add_option("--loss", options.loss, "share of granules, sent again, and of connections");
  app.add_option("--dart", options.dart_share, "share of nodes without the extensions");
  app.add_option("--liars", options.liar_share, "share of nodes that lie");
  app.add_flag("--rosters", options.rosters, "membership by roster exchange, not by decree");
  app.add_flag("--trackers", options.trackers, "trees over those that read");
  app.add_option("--crash", arguments.crash_share, "share of nodes that restart empty, a second");
  app.add_option("--kill-owner", arguments.kill_owner, "at this part of an undisturbed run");
  app.add_option("--stop-parent", arguments.stop_parent, "at this second, one for ten minutes");
  app.add_option("--refresh", arguments.refresh_s, "seconds between roster exchanges");
  app.add_option("--idle", arguments.idle_s, "seconds of idle members instead of readers");
  app.add_option("--soak", arguments.soak_s, "seconds of random clusters and faults instead");
  app.add_option("--limit", arguments.limit_s, "seconds of virtual time");
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("A simulated cluster reads one object at once.");
  AddOptions(app, arguments);
  CLI11_PARSE(app, argc, argv);
  Options& options = arguments.options;
  options.object_bytes = arguments.object_mib << 20;
  options.granule_bytes = arguments.granule_kib << 10;
  options.origin_first_byte = std::chrono::milliseconds(arguments.first_byte_ms);
  options.view_lag = std::chrono::seconds(arguments.refresh_s);
  options.refresh = options.view_lag;
  if (arguments.idle_s > 0) options.reader_share = 0;
  options.rosters |= arguments.idle_s > 0;
  if (arguments.soak_s > 0) return Soak(options.seed, std::chrono::seconds(arguments.soak_s));
  Worst worst;
  for (uint32_t run = 0; run < arguments.runs; ++run) {
    RunOnce(arguments, options.seed + run, worst);
  }
  if (arguments.runs > 1) {
    fmt::print(
        "worst of {}: origin {:.4f}, {:.2f} of the pipeline, block {:.3f} s, {:.3f} s beyond the "
        "p99, {} readers without it\n",
        arguments.runs, worst.origin, worst.pipeline, Seconds(worst.block), Seconds(worst.beyond),
        worst.unfinished);
  }
  return worst.unfinished == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dartfs::sim

int main(int argc, char** argv) { return dartfs::sim::Main(argc, argv); }
