#include "p2p/hedge.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

namespace dartfs::p2p {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LatencyEstimator, SaysNothingBeforeSixteenSamples) {
  LatencyEstimator estimator;
  for (int i = 0; i < 15; ++i) estimator.Add(milliseconds(10));
  EXPECT_EQ(estimator.Quantile(0.99), std::nullopt);
  estimator.Add(milliseconds(10));
  EXPECT_EQ(estimator.Quantile(0.99), milliseconds(10));
}

TEST(LatencyEstimator, QuantilesAreExact) {
  LatencyEstimator estimator;
  for (int i = 100; i >= 1; --i) estimator.Add(milliseconds(i));
  EXPECT_EQ(estimator.Quantile(0.5), milliseconds(50));
  EXPECT_EQ(estimator.Quantile(0.99), milliseconds(99));
  EXPECT_EQ(estimator.Quantile(1), milliseconds(100));
  EXPECT_EQ(estimator.Quantile(0.001), milliseconds(1));
}

TEST(LatencyEstimator, OldSamplesAgeOut) {
  LatencyEstimator estimator(32);
  for (int i = 0; i < 32; ++i) estimator.Add(seconds(9));
  for (int i = 0; i < 31; ++i) estimator.Add(milliseconds(1));
  EXPECT_EQ(estimator.Quantile(1), seconds(9));
  estimator.Add(milliseconds(1));
  EXPECT_EQ(estimator.Quantile(1), milliseconds(1));
  EXPECT_EQ(estimator.samples(), 32U);
}

TEST(HedgeBudget, TheLongRunsShareIsTheRatio) {
  for (const double ratio : {0.05, 0.25, 0.5, 1.0}) {
    HedgeBudget budget(ratio);
    int hedges = 0;
    for (int i = 0; i < 10000; ++i) {
      budget.OnFetch();
      hedges += budget.Take() ? 1 : 0;
    }
    EXPECT_NEAR(hedges, ratio * 10000, 1) << ratio;
  }
}

TEST(HedgeBudget, RatiosAreClamped) {
  const auto of_100 = [](double ratio) {
    HedgeBudget budget(ratio);
    int hedges = 0;
    for (int i = 0; i < 100; ++i) {
      budget.OnFetch();
      for (int k = 0; k < 3; ++k) hedges += budget.Take() ? 1 : 0;
    }
    return hedges;
  };
  EXPECT_EQ(of_100(-1), 0);
  EXPECT_EQ(of_100(0), 0);
  EXPECT_EQ(of_100(7), 100);
  EXPECT_EQ(of_100(INFINITY), 100);
  EXPECT_EQ(of_100(NAN), 5) << "the default's";
}

TEST(HedgeBudget, IdleTimesSaveNoBurst) {
  HedgeBudget budget(0.5);
  EXPECT_FALSE(budget.Take()) << "nothing is given in advance";
  for (int i = 0; i < 1000; ++i) budget.OnFetch();
  EXPECT_TRUE(budget.Take());
  EXPECT_FALSE(budget.Take());
}

TEST(HedgeDelay, IsTheP99WithinBounds) {
  const auto delay = [](core::Duration sample) {
    LatencyEstimator latencies;
    for (int i = 0; i < 16; ++i) latencies.Add(sample);
    return HedgeDelay({}, latencies);
  };
  EXPECT_EQ(delay(milliseconds(40)), milliseconds(40));
  EXPECT_EQ(delay(milliseconds(1)), milliseconds(5));
  EXPECT_EQ(delay(seconds(30)), seconds(2));
}

TEST(HedgeDelay, IsOffWhenDisabledOrUnknown) {
  LatencyEstimator latencies;
  EXPECT_EQ(HedgeDelay({}, latencies), std::nullopt);
  for (int i = 0; i < 16; ++i) latencies.Add(milliseconds(40));
  HedgeOptions off;
  off.enabled = false;
  EXPECT_EQ(HedgeDelay(off, latencies), std::nullopt);
}

}  // namespace
}  // namespace dartfs::p2p
