#include "core/base/latency_histogram.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace dartfs::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(LatencyHistogram, ABoundBelongsToItsBucket) {
  struct Row {
    Duration took;
    size_t bucket;
  };
  const Row rows[] = {{Duration(0), 0},          {nanoseconds(-1), 0},
                      {milliseconds(5), 0},      {milliseconds(5) + nanoseconds(1), 1},
                      {milliseconds(1000), 7},   {milliseconds(60000), 12},
                      {milliseconds(60001), 13}, {std::chrono::hours(1000), 13}};
  for (const Row& row : rows) {
    LatencyHistogram histogram;
    histogram.Add(row.took);
    EXPECT_EQ(histogram.Read().buckets[row.bucket], 1u) << row.took.count();
    EXPECT_EQ(histogram.Read().count(), 1u);
  }
}

TEST(LatencyHistogram, NothingIsLostBetweenThreads) {
  constexpr int kThreads = 4;
  constexpr int kEach = 10000;
  LatencyHistogram histogram;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kEach; ++j) histogram.Add(milliseconds(7));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.Read().buckets[1], uint64_t{kThreads} * kEach);
  EXPECT_EQ(histogram.Read().sum, milliseconds(7) * kThreads * kEach);
}

}  // namespace
}  // namespace dartfs::core
