// A source of random numbers as an argument, so that jitter can be replayed. Thread-safe.
// For jitter and sampling, not for secrets.
#pragma once

#include <cstdint>

namespace dartfs::core {

class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t Next() = 0;
  // Uniform in [0, 1).
  double NextDouble() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
};

// Seeded from the kernel once; the process-wide source.
Random& RealRandom();

}  // namespace dartfs::core
