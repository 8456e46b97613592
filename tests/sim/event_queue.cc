#include "sim/event_queue.h"

#include <algorithm>

#include "core/base/check.h"

namespace dartfs::sim {
namespace {

bool Later(const Event& a, const Event& b) {
  return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
}

}  // namespace

void EventQueue::Add(core::TimePoint at, uint16_t kind, uint32_t node, uint64_t a, uint64_t b) {
  heap_.push_back({std::max(at, now_), sequence_++, kind, node, a, b});
  std::push_heap(heap_.begin(), heap_.end(), Later);
}

void EventQueue::AdvanceTo(core::TimePoint at) {
  DARTFS_CHECK(at >= now_ && (heap_.empty() || heap_.front().at >= at));
  now_ = at;
}

Event EventQueue::Pop() {
  DARTFS_CHECK(!heap_.empty());
  std::pop_heap(heap_.begin(), heap_.end(), Later);
  const Event event = heap_.back();
  heap_.pop_back();
  now_ = event.at;
  ++popped_;
  return event;
}

}  // namespace dartfs::sim
