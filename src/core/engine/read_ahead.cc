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
  oldest->grown_at = oldest->next;
  oldest->used = tick_;
  return oldest;
}

AheadRange ReadAhead::OnRead(uint64_t offset, uint64_t length) {
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
      stream->window = std::min(options_.first_window, options_.max_window);
      stream->grown_at = stream->next;
    } else if (stream->next - stream->grown_at >= stream->window / 2) {
      stream->window = std::min(stream->window * 2, options_.max_window);
      stream->grown_at = stream->next;
    }
  }
  if (stream->window == 0) return {};
  return {stream->next, stream->next + stream->window};
}

}  // namespace dartfs::core
