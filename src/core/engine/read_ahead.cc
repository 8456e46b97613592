#include "core/engine/read_ahead.h"

#include <algorithm>

namespace dartfs::core {

// A read belongs to a stream when it starts at most one block away from where that goes on: the
// kernel's own read-ahead has several requests under way, answered in any order.
ReadAhead::Stream* ReadAhead::Match(uint64_t offset, uint64_t length) {
  Stream* best = nullptr;
  uint64_t best_distance = 0;
  for (Stream& stream : streams_) {
    if (stream.used == 0) continue;
    const bool behind = offset < stream.next;
    const uint64_t distance = behind ? stream.next - offset : offset - stream.next;
    const uint64_t slack = behind ? options_.block_size + length : options_.block_size;
    if (distance > slack) continue;
    if (best == nullptr || distance < best_distance) {
      best = &stream;
      best_distance = distance;
    }
  }
  return best;
}

ReadAhead::Stream* ReadAhead::Replace(uint64_t offset, uint64_t length) {
  Stream* oldest =
      &*std::min_element(streams_.begin(), streams_.end(),
                         [](const Stream& a, const Stream& b) { return a.used < b.used; });
  *oldest = Stream{};
  oldest->next = offset + length;
  oldest->used = tick_;
  return oldest;
}

// Measured over the second half of a window's worth of bytes: the first was fetched under the one
// before.
void ReadAhead::Adapt(Stream& stream, TimePoint now) {
  constexpr double kWorthIt = 1.2;
  constexpr double kNoBetter = 1.05;
  if (stream.next < stream.from + stream.window / 2) return;
  if (stream.since == TimePoint{}) stream.since = now;
  if (stream.next < stream.from + stream.window) return;
  const double seconds = std::max(std::chrono::duration<double>(now - stream.since).count(), 1e-6);
  const double rate = static_cast<double>(stream.window) / 2 / seconds;
  const bool worth_it = rate >= stream.best_rate * kWorthIt;
  const bool no_better = rate < stream.best_rate * kNoBetter;
  const bool on_trial = stream.on_trial;
  stream.on_trial = false;
  if (on_trial && !worth_it) {
    stream.hold_until = now + kHold;
    return SetWindow(stream, no_better ? stream.window / 2 : stream.window);
  }
  stream.best_rate = rate;
  if (now < stream.hold_until || stream.window == options_.max_window) {
    return SetWindow(stream, stream.window);
  }
  stream.on_trial = true;
  SetWindow(stream, stream.window * 2);
}

void ReadAhead::SetWindow(Stream& stream, uint64_t window) {
  const uint64_t least = std::min(options_.first_window, options_.max_window);
  stream.window = std::clamp(window, least, options_.max_window);
  stream.from = stream.next;
  stream.since = TimePoint{};
}

AheadRange ReadAhead::OnRead(uint64_t offset, uint64_t length, TimePoint now) {
  ++tick_;
  Stream* stream = Match(offset, length);
  if (stream == nullptr) {
    Replace(offset, length);
    return {};
  }
  stream->used = tick_;
  const uint64_t end = offset + length;
  if (end > stream->next) {
    stream->next = end;
    if (stream->window == 0) {
      SetWindow(*stream, options_.first_window);
    } else {
      Adapt(*stream, now);
    }
  }
  if (stream->window == 0) return {};
  return {stream->next, stream->next + stream->window};
}

}  // namespace dartfs::core
