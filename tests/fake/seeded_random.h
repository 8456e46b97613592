// SeededRandom: the same numbers for the same seed, on every platform. Thread-safe.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

#include "core/base/mutex.h"
#include "core/base/random.h"

namespace dartfs::core {

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : engine_(seed) {}
  uint64_t Next() override {
    MutexLock lock(mu_);
    return engine_();
  }
  // In [0, bound); bound > 0.
  uint64_t Below(uint64_t bound) { return Next() % bound; }

 private:
  Mutex mu_;
  std::mt19937_64 engine_ GUARDED_BY(mu_);
};

// The seed for a randomised test: DARTFS_TEST_SEED where set, so that a failure can be replayed,
// else a new one. Printed either way.
inline uint64_t TestSeed() {
  const char* const given = std::getenv("DARTFS_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : RealRandom().Next();
  std::cout << "DARTFS_TEST_SEED=" << seed << std::endl;
  return seed;
}

}  // namespace dartfs::core
