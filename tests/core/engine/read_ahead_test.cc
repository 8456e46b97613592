#include "core/engine/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace dartfs::core {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr TimePoint kStart = TimePoint{} + std::chrono::hours(1);

// A stream that is read as fast as its window lets it: `rate_of(window)` bytes per second.
class Stream {
 public:
  explicit Stream(ReadAheadOptions options) : ahead_(options) {}

  // Reads on by `bytes` and returns the windows that were asked for, each once.
  template <typename RateOf>
  std::vector<uint64_t> Read(uint64_t bytes, RateOf rate_of) {
    std::vector<uint64_t> windows;
    for (const uint64_t end = at_ + bytes; at_ < end; at_ += kMiB) {
      const AheadRange range = ahead_.OnRead(at_, kMiB, now_);
      window_ = range.end - range.begin;
      if (windows.empty() || windows.back() != window_) windows.push_back(window_);
      const double seconds = static_cast<double>(kMiB) / rate_of(std::max(window_, 4 * kMiB));
      now_ += std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    }
    return windows;
  }
  uint64_t window() const { return window_; }
  void Wait(Duration time) { now_ += time; }

 private:
  ReadAhead ahead_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  uint64_t at_ = 0;
  uint64_t window_ = 0;
};

// 20 ms to the first byte, 50 MB/s a connection, a connection a block.
double SlowConnections(uint64_t window) {
  const double blocks = static_cast<double>(window) / static_cast<double>(4 * kMiB);
  const double block_seconds = 0.02 + static_cast<double>(4 * kMiB) / 50e6;
  return blocks * static_cast<double>(4 * kMiB) / block_seconds;
}

double OneConnectionFillsThePipe(uint64_t) { return 800e6; }

TEST(ReadAhead, FirstReadFetchesNothingAhead) {
  ReadAhead ahead({});
  EXPECT_TRUE(ahead.OnRead(0, kMiB, kStart).empty());
  EXPECT_TRUE(ahead.OnRead(1000 * kMiB, 4096, kStart).empty());
}

TEST(ReadAhead, WindowDoublesWhileThatMakesTheStreamFaster) {
  ReadAheadOptions options;
  options.max_window = 64 * kMiB;
  Stream stream(options);
  const auto windows = stream.Read(400 * kMiB, SlowConnections);
  EXPECT_EQ(windows, (std::vector<uint64_t>{0, 8 * kMiB, 16 * kMiB, 32 * kMiB, 64 * kMiB}));
}

TEST(ReadAhead, WindowStaysSmallWhereOneConnectionFillsThePipe) {
  Stream stream({});
  stream.Read(400 * kMiB, OneConnectionFillsThePipe);
  EXPECT_LE(stream.window(), 16 * kMiB);
}

TEST(ReadAhead, ALargerWindowIsTriedAgain) {
  Stream stream({});
  stream.Read(400 * kMiB, OneConnectionFillsThePipe);
  ASSERT_LE(stream.window(), 16 * kMiB);
  stream.Wait(ReadAhead::kHold);
  stream.Read(1200 * kMiB, SlowConnections);
  EXPECT_EQ(stream.window(), ReadAheadOptions().max_window);
}

TEST(ReadAhead, WindowNeverLeavesItsLimits) {
  ReadAheadOptions options;
  options.max_window = 6 * kMiB;  // less than the first one
  Stream stream(options);
  const auto windows = stream.Read(100 * kMiB, SlowConnections);
  EXPECT_EQ(windows, (std::vector<uint64_t>{0, 6 * kMiB}));
}

TEST(ReadAhead, RandomReadsFetchNothing) {
  ReadAhead ahead({});
  uint64_t at = 7;
  for (int i = 0; i < 1000; ++i) {
    at = at * 6364136223846793005u + 1442695040888963407u;
    EXPECT_TRUE(ahead.OnRead(at % (uint64_t{1} << 40), 4096, kStart).empty()) << i;
  }
}

TEST(ReadAhead, SixteenStreamsOnOneHandle) {
  ReadAhead ahead({});
  constexpr uint64_t kPart = uint64_t{1} << 30;
  for (uint64_t step = 0; step < 16; ++step) {
    for (uint64_t stream = 0; stream < 16; ++stream) {
      const AheadRange range = ahead.OnRead(stream * kPart + step * kMiB, kMiB, kStart);
      EXPECT_EQ(range.empty(), step == 0) << stream << " " << step;
    }
  }
}

TEST(ReadAhead, OutOfOrderReadsOfTheKernelAreOneStream) {
  ReadAhead ahead({});
  const uint64_t order[] = {0, 2, 1, 3, 5, 4, 7, 6, 8};
  AheadRange range;
  for (const uint64_t i : order) range = ahead.OnRead(i * kMiB, kMiB, kStart);
  EXPECT_EQ(range.begin, 9 * kMiB);
  EXPECT_GT(range.end, range.begin);
}

}  // namespace
}  // namespace dartfs::core
