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
    EXPECT_LE(report.origin_per_block, 1.02) << seed;
    EXPECT_LE(report.worst_block, seconds(2) + milliseconds(100)) << seed;
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
    EXPECT_GT(report.p99, core::Duration{});
    EXPECT_LE(report.worst_block, report.p99 + milliseconds(100)) << seed;
    EXPECT_LE(report.origin_per_block, 1.05) << seed;
  }
}

// The origin's slowness is nobody's fault, and no reason to ask it once more.
TEST(World, AnOriginThatIsSlowToAnswerIsAskedOnce) {
  for (const int first_byte_s : {1, 3, 8}) {
    Options options = Small(1);
    options.nodes = 40;
    options.origin_first_byte = seconds(first_byte_s);
    World world(options);
    const Report report = world.Run(kLimit);
    EXPECT_EQ(report.finished, options.nodes);
    EXPECT_EQ(report.origin_fetches, report.blocks) << first_byte_s;
    world.Idle(seconds(20));
    EXPECT_EQ(world.Unsettled(), "");
  }
}

TEST(World, AnOriginThatPutsRequestsOffIsWaitedFor) {
  Options options = Small(3);
  options.origin_requests_per_second = 4;
  World world(options);
  const Report report = world.Run(kLimit);
  EXPECT_EQ(report.finished, options.nodes);
  EXPECT_GT(report.throttled, 0U);
  EXPECT_LE(report.origin_per_block, 1.02);
}

// In a chain each would ask all above it, and they all above them.
TEST(World, AVersionThatIsGoneCostsEachNodeLittle) {
  for (const uint32_t fanout : {1U, 2U}) {
    Options options = Small(5);
    options.nodes = 24;
    options.fanout = fanout;
    World world(options);
    world.ChangeVersionAt(milliseconds(40));
    const Report report = world.Run(kLimit);
    EXPECT_EQ(report.finished, options.nodes);
    EXPECT_GT(report.reopened, 0U);
    EXPECT_LE(report.origin_per_block, 2.1) << "once of each version";
    EXPECT_LE(report.failovers, uint64_t{10} * options.nodes * report.blocks) << fanout;
    EXPECT_LE(report.probes, uint64_t{8} * options.nodes);
  }
}

TEST(World, WhoDoesNotReadFetchesForOthers) {
  Options options = Small(9);
  options.nodes = 60;
  options.reader_share = 0.1;
  World world(options);
  const Report report = world.Run(kLimit);
  EXPECT_LT(report.readers, 20U);
  EXPECT_EQ(report.finished, report.readers);
  EXPECT_EQ(report.origin_per_block, 1.0);
}

TEST(World, ATreeOfReadersSparesTheOthers) {
  Options options = Small(9);
  options.nodes = 60;
  options.reader_share = 0.1;
  options.trackers = true;
  World world(options);
  world.Run(kLimit);
  world.Idle(seconds(10));
  world.ReadAgain();
  const Report report = world.Run(kLimit);
  EXPECT_EQ(report.finished, report.readers);
  EXPECT_EQ(report.origin_per_block, 1.0);
  for (uint32_t i = 0; i < options.nodes; ++i) {
    EXPECT_TRUE(world.node(i).reads || world.node(i).copies.empty()) << "it was spared";
  }
}

TEST(World, ANodeThatComesBackEmptyAsksItsPeersForWhatItOwns) {
  for (const bool rosters : {false, true}) {
    Options options = Small(4);
    options.rosters = rosters;
    World world(options);
    const uint32_t owner = world.OwnerOf(0);
    world.CrashAt(seconds(2), owner);
    world.RestartAt(seconds(3), owner, /*warm=*/false);
    world.Run(kLimit);
    world.Idle(seconds(30));
    EXPECT_TRUE(world.node(owner).done);
    EXPECT_EQ(world.Run(kLimit).origin_per_block, 1.0) << "all was there already";
  }
}

TEST(World, AClusterThatWasPartedIsOneAgain) {
  for (const int for_s : {10, 100, 200}) {
    for (const uint32_t nodes : {8U, 50U}) {
      Options options = Small(nodes);
      options.nodes = nodes;
      options.rosters = true;
      World world(options);
      world.PartitionAt(milliseconds(20), 0.5);
      world.HealAt(seconds(for_s));
      world.Run(kLimit);
      world.Idle(seconds(for_s + 100));
      EXPECT_EQ(world.Unsettled(), "") << nodes << " nodes parted for " << for_s << " s";
    }
  }
}

// And who cannot be dialled by some is a member all the same: it dials them.
TEST(World, OneSidedReachabilityIsMembership) {
  Options options = Small(6);
  options.rosters = true;
  World world(options);
  for (uint32_t other = 1; other < options.nodes; ++other) {
    world.BlockDialsAt(milliseconds(1), other, 0);
  }
  EXPECT_EQ(world.Run(kLimit).finished, options.nodes);
  world.Idle(seconds(200));
  for (uint32_t i = 0; i < options.nodes; ++i) {
    EXPECT_EQ(world.node(i).view->members().size(), options.nodes) << i;
  }
}

struct LiarCase {
  ObjectKind kind;
  Lie lie;
  double most;  // objects that the origin may send
};

class LiarsTest : public ::testing::TestWithParam<LiarCase> {};

// The world dies of a wrong byte. Each lie is told, to readers and once more when what was good
// lies about to be read, from those who hold it and those who lie; it costs the origin little.
TEST_P(LiarsTest, NoWrongByteIsBelieved) {
  Report sum;
  double most = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Options options = Small(seed);
    options.nodes = 30;
    options.kind = GetParam().kind;
    options.only_lie = GetParam().lie;
    options.liar_share = 0.2;
    options.dart_share = seed % 2 == 0 ? 0.3 : 0;
    options.rosters = true;
    World world(options);
    world.Idle(seconds(20));  // false rosters have spread
    const uint64_t before = world.Run(core::Duration{}).lies;
    world.ReadAgain();
    const Report report = world.Run(kLimit);
    EXPECT_EQ(report.finished, report.readers) << seed;
    most = std::max(most, report.origin_per_block);
    world.CrashAt(seconds(60), 1);
    world.RestartAt(seconds(61), 1, /*warm=*/false);
    world.Idle(seconds(60));
    EXPECT_TRUE(world.node(1).done);
    const Report after = world.Run(kLimit);
    sum.lies += before + after.lies;
    sum.wrong_granules += after.wrong_granules;
    sum.unnamed += after.unnamed;
    sum.digest_mismatches += after.digest_mismatches;
  }
  EXPECT_GT(sum.lies, 0U);
  EXPECT_LE(most, GetParam().most);
  const bool digest = GetParam().kind == ObjectKind::kContentAddressed;
  if (GetParam().lie == Lie::kGarbles) {
    EXPECT_GT(sum.wrong_granules, 0U);
  }
  if (GetParam().lie == Lie::kUnnamed && !digest) {
    EXPECT_GT(sum.unnamed, 0U);
  }
  const bool wrong = GetParam().lie == Lie::kUnnamed || GetParam().lie == Lie::kForges;
  if (wrong && digest) {
    EXPECT_GT(sum.digest_mismatches, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LiarsTest,
    ::testing::Values(LiarCase{ObjectKind::kVersioned, Lie::kShort, 5},
                      LiarCase{ObjectKind::kVersioned, Lie::kDenies, 5},
                      LiarCase{ObjectKind::kVersioned, Lie::kSilent, 5},
                      LiarCase{ObjectKind::kVersioned, Lie::kRoster, 3},
                      LiarCase{ObjectKind::kVersioned, Lie::kGarbles, 3},
                      LiarCase{ObjectKind::kVersioned, Lie::kUnnamed, 3},
                      LiarCase{ObjectKind::kImmutable, Lie::kShort, 5},
                      LiarCase{ObjectKind::kImmutable, Lie::kDenies, 5},
                      LiarCase{ObjectKind::kContentAddressed, Lie::kGarbles, 3},
                      LiarCase{ObjectKind::kContentAddressed, Lie::kUnnamed, 30},
                      LiarCase{ObjectKind::kContentAddressed, Lie::kForges, 30}));

// A version alone does not tell forged bytes: what the simulator holds against them is that it
// dies.
TEST(WorldDeathTest, AWrongByteThatIsBelievedEndsTheRun) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  Options options = Small(1);
  options.kind = ObjectKind::kVersioned;
  options.only_lie = Lie::kForges;
  options.liar_share = 0.5;
  EXPECT_DEATH(World(options).Run(kLimit), "content == VersionOf");
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
