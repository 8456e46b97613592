// DigestWorker: the one thread that hashes content-addressed objects, at the lowest CPU priority,
// and the limit on fetched blocks kept in memory for it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace dartfs::core {

class DigestCheck;

class DigestWorker {
 public:
  explicit DigestWorker(uint64_t held_limit_bytes);
  ~DigestWorker();

  // Its Run will be called until there is no more. Once is enough however often it is asked.
  void Enqueue(std::shared_ptr<DigestCheck> check);
  // May `bytes` more be kept in memory until they are hashed? Then Release follows.
  bool Hold(uint64_t bytes);
  void Release(uint64_t bytes);
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  // What is queued stays unhashed. Waits for a block being hashed. Twice is fine.
  void Stop();

 private:
  void Loop();

  struct State;
  const uint64_t held_limit_bytes_;
  std::atomic<uint64_t> held_bytes_{0};
  std::atomic<bool> stopped_{false};
  const std::unique_ptr<State> state_;
};

}  // namespace dartfs::core
