#include "p2p/token_bucket.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace dartfs::p2p {
namespace {

using Seconds = std::chrono::duration<double>;

TokenBucketOptions Sane(TokenBucketOptions options) {
  options.per_second = std::max(options.per_second, 1e-3);
  options.burst = std::max(options.burst, 1.0);
  options.reserve = std::clamp(options.reserve, 0.0, options.burst - 1);
  return options;
}

}  // namespace

TokenBucket::TokenBucket(TokenBucketOptions options, core::TimePoint now)
    : options_(Sane(options)), level_(options_.burst), at_(now) {}

double TokenBucket::Level(core::TimePoint now) const {
  const double passed = std::max(Seconds(now - at_).count(), 0.0);
  return std::min(options_.burst, level_ + passed * options_.per_second);
}

bool TokenBucket::Take(bool urgent, core::TimePoint now) {
  if (NextAt(urgent, now) > now) return false;
  level_ = std::max(Level(now) - 1, 0.0);
  at_ = std::max(at_, now);
  return true;
}

core::TimePoint TokenBucket::NextAt(bool urgent, core::TimePoint now) const {
  const double missing = 1 + (urgent ? 0 : options_.reserve) - Level(now);
  // A nanosecond's share of a token is rounding.
  if (missing <= options_.per_second * 1e-9) return now;
  const double nanoseconds = std::ceil(missing / options_.per_second * 1e9);
  return now + core::Duration(static_cast<int64_t>(nanoseconds));
}

}  // namespace dartfs::p2p
