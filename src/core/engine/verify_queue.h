// VerifyQueue: the one thread that reads complete objects back and checks their granules before
// their files may be lent (Store::Verify), at the lowest CPU priority. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "core/engine/object.h"
#include "core/store/store.h"

namespace dartfs::core {

class VerifyQueue {
 public:
  static constexpr size_t kMostWaiting = 1024;

  // The store outlives it.
  explicit VerifyQueue(Store& store);
  ~VerifyQueue();

  // Once is enough however often it is asked; while too many wait, the object is left for the next
  // asking.
  void Enqueue(const std::shared_ptr<Object>& object);
  size_t waiting() const;
  // What is under way breaks off. Twice is fine.
  void Stop();

 private:
  void Loop();
  void Check(const Object& object);

  struct State;
  Store& store_;
  std::atomic<bool> stopped_{false};
  const std::unique_ptr<State> state_;
};

}  // namespace dartfs::core
