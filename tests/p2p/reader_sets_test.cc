#include "p2p/reader_sets.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace dartfs::p2p {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class ReaderSetsTest : public ::testing::Test {
 protected:
  ReaderSet Join(const std::string& node, int64_t lease_ms = 0, const std::string& file = "f") {
    auto joined = sets_->Join(file, node, lease_ms, now_);
    EXPECT_TRUE(joined) << joined.error().ToString();
    return *joined;
  }
  std::string Readers(const ReaderSet& set) const {
    std::string text;
    for (const std::string& reader : *set.readers) text += reader + " ";
    return text;
  }
  void Make(ReaderSetOptions options) { sets_ = std::make_unique<ReaderSets>(options); }

  core::TimePoint now_ = core::TimePoint(seconds(1000));
  std::unique_ptr<ReaderSets> sets_ = std::make_unique<ReaderSets>(ReaderSetOptions{});
};

TEST_F(ReaderSetsTest, TheFirstReaderIsPublishedAtOnceOthersAtTheTick) {
  EXPECT_EQ(Readers(Join("b")), "b ");
  EXPECT_EQ(Readers(Join("a")), "b ") << "frozen until the tick";
  now_ += seconds(3) - milliseconds(1);
  EXPECT_EQ(Readers(Join("c")), "b ");
  now_ += milliseconds(1);
  EXPECT_EQ(Readers(Join("b")), "a b c ") << "sorted";
}

TEST_F(ReaderSetsTest, TheEpochGrowsWithTheSetAlone) {
  const uint64_t first = Join("a").epoch;
  now_ += seconds(3);
  EXPECT_EQ(Join("a").epoch, first);
  Join("b");
  now_ += seconds(3);
  const uint64_t second = Join("a").epoch;
  EXPECT_GT(second, first);
  now_ += seconds(3);
  EXPECT_GT(Join("a").epoch, second) << "b's lease is over";
}

TEST_F(ReaderSetsTest, LeasesRunOutAndAreRenewed) {
  Join("a");
  Join("b", 60000);
  now_ += seconds(6);
  EXPECT_EQ(Readers(Join("c")), "b c ") << "two ticks are the default";
  now_ += seconds(5);
  EXPECT_EQ(Readers(Join("c")), "b c ");
  now_ += seconds(50);
  EXPECT_EQ(Readers(Join("d")), "d ");
}

TEST_F(ReaderSetsTest, WhoLeavesIsGoneAtTheNextTick) {
  Join("a");
  Join("b");
  sets_->Leave("f", "a", now_);
  sets_->Leave("f", "never", now_);
  sets_->Leave("no such file", "a", now_);
  EXPECT_EQ(Readers(Join("b")), "a ");
  now_ += seconds(3);
  EXPECT_EQ(Readers(Join("b")), "b ");
}

TEST_F(ReaderSetsTest, LeasesAreClampedBeforeTheyAreConverted) {
  EXPECT_EQ(Join("a").lease, seconds(6));
  EXPECT_EQ(Join("a", -5).lease, seconds(6));
  EXPECT_EQ(Join("a", INT64_MIN).lease, seconds(6));
  EXPECT_EQ(Join("a", 1).lease, milliseconds(1));
  EXPECT_EQ(Join("a", 600000).lease, minutes(10));
  for (const int64_t huge : {int64_t{600001}, INT64_MAX / 1000000 + 1, INT64_MAX}) {
    EXPECT_EQ(Join("a", huge).lease, minutes(10)) << huge;
  }
}

TEST_F(ReaderSetsTest, AnIdleFileIsForgotten) {
  Join("a", 70000);
  now_ += seconds(65);
  sets_->Sweep(now_);
  EXPECT_EQ(sets_->files(), 1U) << "its lease lasts";
  now_ += seconds(5);
  sets_->Sweep(now_);
  EXPECT_EQ(sets_->files(), 0U);
  Join("b", 1);
  sets_->Leave("f", "b", now_);
  now_ += seconds(59);
  sets_->Sweep(now_);
  EXPECT_EQ(sets_->files(), 1U) << "somebody called";
  now_ += seconds(1);
  sets_->Sweep(now_);
  EXPECT_EQ(sets_->files(), 0U);
}

TEST_F(ReaderSetsTest, ALargeSetIsAnsweredWithNone) {
  Make({.max_readers = 3});
  for (const char* node : {"a", "b", "c"}) Join(node, 60000);
  now_ += seconds(3);
  EXPECT_EQ(Join("a", 60000).readers->size(), 3U);
  Join("d", 60000);
  now_ += seconds(3);
  EXPECT_EQ(Readers(Join("a", 60000)), "");
  sets_->Leave("f", "d", now_);
  now_ += seconds(3);
  EXPECT_EQ(Join("a", 60000).readers->size(), 3U);
}

TEST_F(ReaderSetsTest, TablesAreBounded) {
  Make({.max_files = 2, .max_leases = 2});
  Join("a", 0, "f");
  Join("b", 0, "f");
  EXPECT_EQ(sets_->Join("f", "c", 0, now_).error().code, core::Code::kBusy);
  Join("a", 0, "g");
  EXPECT_EQ(sets_->Join("h", "a", 0, now_).error().code, core::Code::kBusy);
  Join("a", 0, "g");
  now_ += seconds(67);
  Join("a", 0, "h");
  EXPECT_EQ(sets_->files(), 1U) << "made room";
}

TEST_F(ReaderSetsTest, WhatCannotBeMeantIsRefused) {
  EXPECT_EQ(sets_->Join("", "a", 0, now_).error().code, core::Code::kInvalidArgument);
  for (const char* node : {"", "a b", "a\x1f"}) {
    EXPECT_EQ(sets_->Join("f", node, 0, now_).error().code, core::Code::kInvalidArgument) << node;
  }
  EXPECT_EQ(sets_->files(), 0U);
}

}  // namespace
}  // namespace dartfs::p2p
