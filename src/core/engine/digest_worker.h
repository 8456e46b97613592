// DigestWorker: the one thread that hashes content-addressed objects, at the lowest CPU priority,
// and the limit on fetched blocks kept in memory for it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/time.h"
#include "core/base/unique_function.h"

namespace dartfs::core {

class DigestCheck;

// How many bytes of fetched blocks are kept until they are hashed. Thread-safe.
class HeldBytes {
 public:
  explicit HeldBytes(uint64_t limit) : limit_(limit) {}
  // May `bytes` more be kept? Then Release follows.
  bool Hold(uint64_t bytes) {
    if (held_.fetch_add(bytes) + bytes <= limit_) return true;
    Release(bytes);
    return false;
  }
  void Release(uint64_t bytes) { held_.fetch_sub(bytes); }

 private:
  const uint64_t limit_;
  std::atomic<uint64_t> held_{0};
};

class DigestWorker {
 public:
  static constexpr Duration kFilingPatience = std::chrono::milliseconds(500);

  explicit DigestWorker(uint64_t held_limit_bytes);
  ~DigestWorker();

  // Its Run will be called until there is no more. Once is enough however often it is asked.
  void Enqueue(std::shared_ptr<DigestCheck> check);
  // Shared by the checks, some of which outlive the worker.
  const std::shared_ptr<HeldBytes>& held() const { return held_; }
  // The worker's thread: runs `file`, which gives an object the key of its digest, named as its
  // record is.
  void File(const std::string& name, UniqueFunction<void()> file);
  // Whoever has looked for the digest's object in vain while it was being filed, as it then has
  // neither key, looks again after this. Blocking, for `kFilingPatience` at most.
  void AwaitFiled(const std::string& name);
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  // What is queued stays unhashed. Waits for a block being hashed. Twice is fine.
  void Stop();

 private:
  void Loop();

  struct State;
  const std::shared_ptr<HeldBytes> held_;
  std::atomic<bool> stopped_{false};
  const std::unique_ptr<State> state_;
};

}  // namespace dartfs::core
