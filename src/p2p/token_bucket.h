// TokenBucket: how often something may be done, with a reserve for what is urgent. Not thread-safe;
// time is an argument.
#pragma once

#include "core/base/time.h"

namespace dartfs::p2p {

struct TokenBucketOptions {
  double per_second = 32;
  double burst = 32;    // at least 1
  double reserve = 16;  // tokens that only what is urgent may take
};

class TokenBucket {
 public:
  TokenBucket(TokenBucketOptions options, core::TimePoint now);
  // Takes one, if there is one for it.
  bool Take(bool urgent, core::TimePoint now);
  // When Take would succeed if nobody else took any; `now` if it would already.
  core::TimePoint NextAt(bool urgent, core::TimePoint now) const;

 private:
  double Level(core::TimePoint now) const;

  const TokenBucketOptions options_;
  double level_;
  core::TimePoint at_;
};

}  // namespace dartfs::p2p
