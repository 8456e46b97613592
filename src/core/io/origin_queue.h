// OriginQueue: who may talk to one origin next. Slots (connections) are limited, waiting calls are
// ordered by priority and age, and an origin that says "too many" is left alone for a while.
// Pure: time and chance come as arguments. Not thread-safe.
//
// Throttle: a 429, or a 503 with Retry-After, holds every new call back until a moment; then one
// call, the probe, goes out alone. What it is answered decides: again "too many" holds longer, any
// other answer opens the origin. A probe without an answer is followed by the next one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/io/http_client.h"

namespace dartfs::core {

class OriginQueue final {
 public:
  struct Limits {
    size_t connections = 16;
    size_t queue = 4096;
    Duration max_throttle = std::chrono::seconds(60);
  };
  enum class Admission : uint8_t { kQueued, kFull, kThrottled };
  // A connection's worth of permission; goes back through Release, once.
  struct Slot {
    uint64_t id = 0;
    Priority priority = Priority::kDemand;
    uint64_t epoch = 0;  // of the throttle when it was given out
    bool probe = false;
  };

  explicit OriginQueue(const Limits& limits) : limits_(limits) {}

  // `id` is the caller's, unique. kThrottled only for kReadAhead and kBackground.
  Admission Push(uint64_t id, Priority priority, TimePoint now);
  // The next call that may start now: demand before read-ahead before background, oldest first.
  // The two latter together leave two slots to demand.
  std::optional<Slot> Pop(TimePoint now);
  // False when it is not waiting (any more).
  bool Remove(uint64_t id);
  bool Raise(uint64_t id, Priority priority);
  // The final answer to the call of `slot`. `retry_after` as ParseRetryAfter gives it.
  void OnAnswer(const Slot& slot, int status, std::optional<Duration> retry_after, TimePoint now,
                Random& random);
  void Release(const Slot& slot);
  // While held: the waiting calls of kReadAhead and kBackground, which leave the queue.
  std::vector<uint64_t> TakeRefused(TimePoint now);

  bool Throttled(TimePoint now) const;
  Duration ThrottleLeft(TimePoint now) const;
  // When Pop may give something it does not give now, without any other event.
  std::optional<TimePoint> WakeAt(TimePoint now) const;
  size_t active() const { return active_; }
  size_t queued() const { return where_.size(); }
  bool idle() const { return active_ == 0 && where_.empty(); }

 private:
  struct Place {
    Priority priority;
    uint64_t sequence;
  };
  std::map<uint64_t, uint64_t>& Line(Priority priority) {
    return lines_[static_cast<size_t>(priority)];
  }
  std::optional<Priority> NextPriority() const;
  Slot TakeFrom(Priority priority);
  void Hold(std::optional<Duration> retry_after, TimePoint now, Random& random);
  Duration HoldTime(std::optional<Duration> retry_after, Random& random) const;

  const Limits limits_;
  std::array<std::map<uint64_t, uint64_t>, 3> lines_;  // by priority: sequence -> id
  std::unordered_map<uint64_t, Place> where_;          // by id
  uint64_t next_sequence_ = 0;
  size_t active_ = 0;
  size_t active_ahead_ = 0;  // of them kReadAhead and kBackground

  bool held_ = false;     // from the first "too many" to the first other answer
  TimePoint held_until_;  // while held_
  bool probing_ = false;  // while held_: the probe is out
  uint64_t epoch_ = 0;    // counts the holds, so that answers to older calls are known as such
  int steps_ = 0;         // holds in a row
};

}  // namespace dartfs::core
