// When a second peer is asked beside one that is slow (spec/engine.md 3.8). Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/time.h"

namespace dartfs::p2p {

// The exact quantiles of the last fetches that brought a block. Misses are not for it: a fast 404
// would make the next genuine fetch look slow.
class LatencyEstimator {
 public:
  static constexpr size_t kLeastSamples = 16;

  explicit LatencyEstimator(size_t window = 256);
  void Add(core::Duration sample);
  // The least sample that at least `q` of all do not exceed, 0 < q <= 1; nullopt with fewer than
  // kLeastSamples.
  std::optional<core::Duration> Quantile(double q) const;
  size_t samples() const { return ring_.size(); }

 private:
  const size_t window_;
  std::vector<core::Duration> ring_;
  size_t next_ = 0;
  mutable std::vector<core::Duration> scratch_;
};

// Bounds hedges to a share of the fetches. Credit for one at most is kept, so that idle times do
// not allow a burst.
class HedgeBudget {
 public:
  static constexpr double kDefaultRatio = 0.05;

  // Clamped to 0..1; NaN is the default.
  explicit HedgeBudget(double ratio = kDefaultRatio);
  void OnFetch();
  // Spends one hedge's credit, if there is any.
  bool Take();

 private:
  const uint64_t step_;  // of kUnit
  uint64_t credit_ = 0;
};

struct HedgeOptions {
  bool enabled = true;
  core::Duration floor = std::chrono::milliseconds(5);  // below is noise
  core::Duration cap = std::chrono::seconds(2);         // one wild sample must not end hedging
};

// How long the first peer is waited for: the estimated p99 within the bounds; nullopt where hedging
// is off or the estimator knows too little.
std::optional<core::Duration> HedgeDelay(const HedgeOptions& options,
                                         const LatencyEstimator& latencies);

}  // namespace dartfs::p2p
