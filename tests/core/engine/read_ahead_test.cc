#include "core/engine/read_ahead.h"

#include <gtest/gtest.h>

namespace dartfs::core {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(ReadAhead, FirstReadFetchesNothingAhead) {
  ReadAhead ahead({});
  EXPECT_TRUE(ahead.OnRead(0, kMiB).empty());
  EXPECT_TRUE(ahead.OnRead(1000 * kMiB, 4096).empty());
}

TEST(ReadAhead, SequentialWindowDoublesUpToTheLimit) {
  ReadAheadOptions options;
  options.max_window = 64 * kMiB;
  ReadAhead ahead(options);
  uint64_t last = 0;
  uint64_t widest = 0;
  for (uint64_t at = 0; at < 400 * kMiB; at += kMiB) {
    const AheadRange range = ahead.OnRead(at, kMiB);
    if (at == 0) continue;
    ASSERT_FALSE(range.empty()) << at;
    EXPECT_EQ(range.begin, at + kMiB);
    const uint64_t window = range.end - range.begin;
    EXPECT_GE(window, last);
    EXPECT_LE(window, options.max_window);
    last = window;
    widest = std::max(widest, window);
  }
  EXPECT_EQ(widest, options.max_window);
}

TEST(ReadAhead, RandomReadsFetchNothing) {
  ReadAhead ahead({});
  uint64_t at = 7;
  for (int i = 0; i < 1000; ++i) {
    at = at * 6364136223846793005u + 1442695040888963407u;
    EXPECT_TRUE(ahead.OnRead(at % (uint64_t{1} << 40), 4096).empty()) << i;
  }
}

TEST(ReadAhead, SixteenStreamsOnOneHandle) {
  ReadAhead ahead({});
  constexpr uint64_t kPart = uint64_t{1} << 30;
  for (uint64_t step = 0; step < 16; ++step) {
    for (uint64_t stream = 0; stream < 16; ++stream) {
      const AheadRange range = ahead.OnRead(stream * kPart + step * kMiB, kMiB);
      EXPECT_EQ(range.empty(), step == 0) << stream << " " << step;
    }
  }
}

TEST(ReadAhead, OutOfOrderReadsOfTheKernelAreOneStream) {
  ReadAhead ahead({});
  const uint64_t order[] = {0, 2, 1, 3, 5, 4, 7, 6, 8};
  AheadRange range;
  for (const uint64_t i : order) range = ahead.OnRead(i * kMiB, kMiB);
  EXPECT_EQ(range.begin, 9 * kMiB);
  EXPECT_GT(range.end, range.begin);
}

}  // namespace
}  // namespace dartfs::core
