// Scheduler: runs short tasks soon, or after a delay. Tasks must not block (no I/O, no waiting):
// timers for deadlines, back-off and stall checks live here, and completions that must leave the
// caller's stack. The real one is a small pool of named threads; tests step a ManualScheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/base/time.h"
#include "core/base/unique_function.h"

namespace dartfs::core {

using Task = UniqueFunction<void()>;
using TimerId = uint64_t;
inline constexpr TimerId kNoTimer = 0;

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Runs `task` soon, never on the caller's stack. Any thread.
  virtual void Post(Task task) = 0;
  // Runs `task` once, not before `when`. Any thread. Never returns kNoTimer.
  virtual TimerId At(TimePoint when, Task task) = 0;
  // True: the task will not run, and has been destroyed. False: it ran, runs, or is unknown.
  // Does not wait. Any thread.
  virtual bool Cancel(TimerId id) = 0;
  // Waits for the tasks that run, so not from one. Those not begun, and whatever is given to it
  // later, are destroyed without running. Twice is fine.
  virtual void Stop() = 0;
  virtual Clock& clock() = 0;
  TimerId After(Duration delay, Task task) { return At(clock().Now() + delay, std::move(task)); }
};

// A scheduler over `threads` threads named `name`-N. Tasks of one scheduler run concurrently.
// Destruction stops it.
std::unique_ptr<Scheduler> MakeThreadScheduler(const std::string& name, size_t threads,
                                               Clock& clock);

}  // namespace dartfs::core
