#include "sim/world.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "sim/faults.h"

namespace dartfs::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr core::Duration kLimit = seconds(600);

Options Small(uint64_t seed) {
  Options options;
  options.seed = seed;
  options.nodes = 16;
  options.object_bytes = (uint64_t{96} << 20) + 12345;
  options.chunk_bytes = uint64_t{32} << 20;
  options.granule_bytes = uint64_t{1} << 20;
  return options;
}

TEST(World, OneSeedReplaysARun) {
  const auto run = [](uint64_t seed) {
    World world(Small(seed));
    world.CrashAt(milliseconds(30), world.OwnerOf(0));
    const Report report = world.Run(kLimit);
    return std::to_string(report.events) + " " + std::to_string(report.last_finished.count()) +
           " " + std::to_string(report.origin_bytes);
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

TEST(World, ManyReadersCostTheOriginOneFetchOfEachBlock) {
  for (const uint32_t nodes : {1U, 2U, 3U, 16U, 60U}) {
    for (const uint32_t fanout : {1U, 2U, 5U}) {
      Options options = Small(nodes);
      options.nodes = nodes;
      options.fanout = fanout;
      World world(options);
      const Report report = world.Run(kLimit);
      EXPECT_EQ(report.finished, nodes);
      EXPECT_EQ(report.origin_bytes, options.object_bytes) << nodes << " " << fanout;
      EXPECT_EQ(report.origin_fetches, report.blocks);
    }
  }
}

TEST(World, APipelineIsAsFastAsItsLinks) {
  Options options;
  options.nodes = 100;
  options.object_bytes = uint64_t{256} << 20;
  World world(options);
  const Report report = world.Run(kLimit);
  EXPECT_LT(report.last_finished, world.IdealPipeline() * 13 / 10);
  EXPECT_LE(report.busiest_bytes, 2 * options.object_bytes) << "its two children's";
}

TEST(World, AKilledOwnerCostsTheOriginLittle) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    for (const int percent : {0, 50, 95}) {
      Options options = Small(seed);
      World probe(options);
      const core::Duration whole = probe.Run(kLimit).last_finished;
      World world(options);
      world.CrashAt(whole * percent / 100, world.OwnerOf(0));
      const Report report = world.Run(kLimit);
      EXPECT_GE(report.finished, options.nodes - 1) << seed << " " << percent;
      EXPECT_LE(report.origin_per_block, 1.05) << seed << " " << percent;
    }
  }
}

TEST(World, AStoppedParentHoldsItsChildrenUpForAMoment) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Options options = Small(seed);
    options.nodes = 12;
    World world(options);
    const uint32_t reader = (world.OwnerOf(0) + 1) % options.nodes;
    const uint32_t parent = world.ParentOf(0, reader);
    world.StopAt(milliseconds(10), parent);
    world.ContinueAt(seconds(60), parent);
    const Report report = world.Run(kLimit);
    EXPECT_EQ(report.finished, options.nodes);
    EXPECT_LE(report.origin_per_block, 1.5) << seed;
    EXPECT_TRUE(world.node(reader).done);
  }
}

// Once it is known how long a block takes, a hedge finds out, and all who wait learn of it.
TEST(World, AStoppedParentIsFoundOutBeforeItsTimeIsUp) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Options options;
    options.seed = seed;
    options.nodes = 16;
    options.granule_bytes = uint64_t{1} << 20;
    options.origin_bytes_per_second = 5e8;
    World world(options);
    uint32_t child = 0;
    while (child == world.OwnerOf(0) || world.ParentOf(0, child) == world.OwnerOf(0)) ++child;
    const uint32_t parent = world.ParentOf(0, child);
    world.StopAt(milliseconds(300), parent);
    world.ContinueAt(seconds(60), parent);
    const Report report = world.Run(kLimit);
    EXPECT_EQ(report.finished, options.nodes);
    EXPECT_LT(report.worst_block, milliseconds(250)) << seed;
    EXPECT_LE(report.origin_per_block, 1.05) << seed;
  }
}

// Nodes die, come back with and without what they held, stop and go on; some are DART's. Whoever is
// up at the end has the object.
class FaultsTest : public ::testing::TestWithParam<int> {};

TEST_P(FaultsTest, EveryReaderThatLivesFinishes) {
  const auto first = static_cast<uint64_t>(GetParam()) * 20;
  for (uint64_t seed = first; seed < first + 20; ++seed) {
    Report report;
    EXPECT_EQ(RunRandom(seed, &report), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, FaultsTest, ::testing::Range(0, 10));

}  // namespace
}  // namespace dartfs::sim
