// EventQueue: what happens when, in the order of time; at one moment in the order of Add. A run is
// replayed exactly by the same calls.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/time.h"

namespace dartfs::sim {

// `kind` and the rest mean what the world says they do.
struct Event {
  core::TimePoint at{};
  uint64_t sequence = 0;
  uint16_t kind = 0;
  uint32_t node = 0;
  uint64_t a = 0;
  uint64_t b = 0;
};

class EventQueue {
 public:
  // Not before `now`.
  void Add(core::TimePoint at, uint16_t kind, uint32_t node, uint64_t a = 0, uint64_t b = 0);
  bool empty() const { return heap_.empty(); }
  // Requires one. Time moves to it.
  Event Pop();
  core::TimePoint now() const { return now_; }
  // Requires that nothing happens before.
  void AdvanceTo(core::TimePoint at);
  core::TimePoint next_at() const { return heap_.front().at; }
  uint64_t popped() const { return popped_; }
  size_t size() const { return heap_.size(); }

 private:
  std::vector<Event> heap_;
  core::TimePoint now_{};
  uint64_t sequence_ = 0;
  uint64_t popped_ = 0;
};

}  // namespace dartfs::sim
