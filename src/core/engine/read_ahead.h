// ReadAhead: recognises sequential streams in the reads of one handle and says what to fetch ahead.
// Several streams may share a handle (threads on one descriptor, mmap, kernel read-ahead answered
// out of order): each read is matched to the nearest stream by offset.
//
// A stream's window doubles as long as that makes the stream faster: what one connection can't
// fill, several may; beyond that, a larger window only takes memory and other readers' turns. Now
// and then it is tried again. Pure; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"

namespace dartfs::core {

struct ReadAheadOptions {
  uint64_t block_size = uint64_t{4} << 20;    // bytes
  uint64_t max_window = uint64_t{128} << 20;  // bytes ahead of a stream, at most
  uint64_t first_window = uint64_t{8} << 20;  // bytes ahead once a stream is recognised
};

// Bytes [begin, end) that should be on their way; empty when begin == end.
struct AheadRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool empty() const { return begin >= end; }
};

class ReadAhead {
 public:
  // How long a window stays that was not worth doubling.
  static constexpr Duration kHold = std::chrono::seconds(2);

  explicit ReadAhead(ReadAheadOptions options) : options_(options) {}

  // A read of [offset, offset + length). What to fetch ahead of it: nothing for a stream's first
  // read; from the second on a window. The range covers the whole window: asking again for blocks
  // already on their way is the caller's to avoid.
  AheadRange OnRead(uint64_t offset, uint64_t length, TimePoint now);

 private:
  static constexpr size_t kStreams = 32;
  struct Stream {
    uint64_t next = 0;    // where the stream is expected to go on
    uint64_t window = 0;  // bytes; 0: seen once
    uint64_t used = 0;    // tick of the last read, 0: free
    // The measurement of the present window: from `from` at `since` on, once the stream has got
    // through what was fetched for the window before.
    uint64_t from = 0;
    TimePoint since{};
    double best_rate = 0;    // bytes per second, as last measured before a doubling
    bool on_trial = false;   // the window has just been doubled
    TimePoint hold_until{};  // no doubling before
  };
  Stream* Match(uint64_t offset, uint64_t length);
  Stream* Replace(uint64_t offset, uint64_t length);
  void Adapt(Stream& stream, TimePoint now);
  void SetWindow(Stream& stream, uint64_t window);

  const ReadAheadOptions options_;
  std::array<Stream, kStreams> streams_{};
  uint64_t tick_ = 0;
};

}  // namespace dartfs::core
