#include "core/base/random.h"

#include <sys/random.h>

#include <atomic>
#include <cerrno>

#include "core/base/check.h"

namespace dartfs::core {
namespace {

uint64_t KernelSeed() {
  uint64_t seed = 0;
  ssize_t got = 0;
  do {
    got = getrandom(&seed, sizeof seed, 0);
  } while (got < 0 && errno == EINTR);
  DARTFS_CHECK(got == static_cast<ssize_t>(sizeof seed));
  return seed;
}

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). Its state
// only ever grows by a constant, so one atomic addition makes it safe for all threads.
class SplitMix final : public Random {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t Next() override {
    constexpr uint64_t kGamma = 0x9e3779b97f4a7c15;
    uint64_t z = state_.fetch_add(kGamma, std::memory_order_relaxed) + kGamma;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::atomic<uint64_t> state_;
};

}  // namespace

Random& RealRandom() {
  static SplitMix random(KernelSeed());
  return random;
}

}  // namespace dartfs::core
