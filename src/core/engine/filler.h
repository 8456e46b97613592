// Filler: completes objects in the background, so that they can be read without their origin, and
// by the kernel itself. Few blocks at a time, with the lowest priority: whatever anybody waits for,
// or reads ahead, goes first. Jobs wait in a bounded queue; a few run at once. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/result.h"
#include "core/base/unique_function.h"
#include "core/engine/object.h"
#include "core/engine/object_reader.h"

namespace dartfs::core {

struct FlightEnv;

struct FillProgress {
  uint64_t present_bytes = 0, total_bytes = 0;
  bool done = false;           // complete, failed, or stopped
  std::optional<Error> error;  // of a fill that is done and not complete
};

// A job; dropping it, before the engine goes, stops the filling (blocks that have come stay).
// Thread-safe.
class Fill {
 public:
  virtual ~Fill() = default;
  virtual FillProgress Progress() const = 0;
};

// Runs once, on an engine thread, or on the stack of who starts, drops (kCancelled) or stops it.
using FillDone = UniqueFunction<void(Status)>;

class Filler {
 public:
  struct Limits {
    size_t running = 2;    // jobs at once
    size_t waiting = 256;  // beyond this kBusy
    size_t blocks = 8;     // of one job, under way at once
  };
  Filler(FlightEnv& env, Limits limits);
  explicit Filler(FlightEnv& env) : Filler(env, Limits()) {}
  ~Filler();

  // Errors of a job: kBusy (too many wait), kTooLarge (it does not fit into the cache), kNoSpace
  // (it is not kept: bypass), kStale, or what its source says.
  std::unique_ptr<Fill> Start(std::shared_ptr<Object> object, Requester requester, FillDone done);
  // Jobs end with kCancelled. Twice is fine.
  void Stop();

 private:
  class Job;
  class Handle;
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dartfs::core
