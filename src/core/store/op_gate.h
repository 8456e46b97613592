// OpGate: counts operations under way, so that a stop can wait for them. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/base/mutex.h"

namespace dartfs::core {

class OpGate {
 public:
  // False once closed; else one Leave is owed.
  bool Enter() {
    const uint64_t before = state_.fetch_add(kOne, std::memory_order_acq_rel);
    if ((before & kClosed) == 0) return true;
    Leave();
    return false;
  }
  void Leave() {
    const uint64_t before = state_.fetch_sub(kOne, std::memory_order_acq_rel);
    if (before != (kOne | kClosed)) return;
    MutexLock lock(mu_);
    all_left_.NotifyAll();
  }
  // False: some were still inside when `patience` ran out.
  bool CloseAndWait(std::chrono::nanoseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    state_.fetch_or(kClosed, std::memory_order_acq_rel);
    MutexLock lock(mu_);
    while (state_.load(std::memory_order_acquire) != kClosed) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= std::chrono::nanoseconds::zero()) return false;
      all_left_.WaitFor(mu_, left);
    }
    return true;
  }

 private:
  static constexpr uint64_t kClosed = 1;
  static constexpr uint64_t kOne = 2;
  std::atomic<uint64_t> state_ = 0;
  Mutex mu_;  // a leaf
  CondVar all_left_;
};

// Leaves when dropped; move-only.
class OpInside {
 public:
  explicit OpInside(OpGate& gate) : gate_(gate.Enter() ? &gate : nullptr) {}
  OpInside(OpInside&& other) noexcept : gate_(other.gate_) { other.gate_ = nullptr; }
  OpInside& operator=(OpInside&&) = delete;
  ~OpInside() {
    if (gate_ != nullptr) gate_->Leave();
  }
  explicit operator bool() const { return gate_ != nullptr; }

 private:
  OpGate* gate_;
};

}  // namespace dartfs::core
