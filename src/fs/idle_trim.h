// IdleTrim: gives freed memory back to the system once the kernel has forgotten many names and has
// been quiet for a moment. A walk over a large tree leaves its nodes freed but spread over the
// heap, which keeps such pages for ever; trimming costs milliseconds, so not while names come and
// go. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/scheduler.h"

namespace dartfs::fs {

class IdleTrim {
 public:
  static constexpr uint64_t kWorthIt = 10'000;  // names forgotten since the last time
  static constexpr core::Duration kQuiet = std::chrono::seconds(2);

  // `trim` runs on the scheduler, which outlives its last task.
  IdleTrim(core::Scheduler& scheduler, std::function<void()> trim);

  // Names have been forgotten.
  void Note(uint64_t names);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dartfs::fs
