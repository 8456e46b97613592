#include "p2p/hedge.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"

namespace dartfs::p2p {
namespace {

constexpr uint64_t kUnit = 1'000'000;

uint64_t StepOf(double ratio) {
  if (std::isnan(ratio)) ratio = HedgeBudget::kDefaultRatio;
  return static_cast<uint64_t>(
      std::llround(std::clamp(ratio, 0.0, 1.0) * static_cast<double>(kUnit)));
}

}  // namespace

LatencyEstimator::LatencyEstimator(size_t window) : window_(std::max(window, kLeastSamples)) {}

void LatencyEstimator::Add(core::Duration sample) {
  if (ring_.size() < window_) {
    ring_.push_back(sample);
    return;
  }
  ring_[next_] = sample;
  next_ = (next_ + 1) % window_;
}

std::optional<core::Duration> LatencyEstimator::Quantile(double q) const {
  DARTFS_CHECK(q > 0 && q <= 1);
  if (ring_.size() < kLeastSamples) return std::nullopt;
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(ring_.size())));
  const size_t index = std::min(rank, ring_.size()) - 1;
  scratch_ = ring_;
  std::nth_element(scratch_.begin(), scratch_.begin() + static_cast<ptrdiff_t>(index),
                   scratch_.end());
  return scratch_[index];
}

HedgeBudget::HedgeBudget(double ratio) : step_(StepOf(ratio)) {}

void HedgeBudget::OnFetch() { credit_ = std::min(credit_ + step_, kUnit); }

bool HedgeBudget::Take() {
  if (credit_ < kUnit) return false;
  credit_ -= kUnit;
  return true;
}

std::optional<core::Duration> HedgeDelay(const HedgeOptions& options,
                                         const LatencyEstimator& latencies) {
  if (!options.enabled) return std::nullopt;
  const auto p99 = latencies.Quantile(0.99);
  if (!p99) return std::nullopt;
  return std::clamp(*p99, options.floor, std::max(options.floor, options.cap));
}

}  // namespace dartfs::p2p
