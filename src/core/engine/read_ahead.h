// ReadAhead: recognises sequential streams in the reads of one handle and says what to fetch ahead.
// Several streams may share a handle (threads on one descriptor, mmap, kernel read-ahead answered
// out of order): each read is matched to the nearest stream by offset. Pure; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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
  explicit ReadAhead(ReadAheadOptions options) : options_(options) {}

  // A read of [offset, offset + length). What to fetch ahead of it: nothing for a stream's first
  // read; from the second on a window that doubles each time the stream gets through half of it.
  // The range covers the whole window: asking again for blocks already on their way is the caller's
  // to avoid.
  AheadRange OnRead(uint64_t offset, uint64_t length);

 private:
  static constexpr size_t kStreams = 32;
  struct Stream {
    uint64_t next = 0;      // where the stream is expected to go on
    uint64_t window = 0;    // bytes; 0: seen once
    uint64_t grown_at = 0;  // `next` when the window last grew
    uint64_t used = 0;      // tick of the last read, 0: free
  };
  Stream* Match(uint64_t offset, uint64_t length);
  Stream* Replace(uint64_t offset, uint64_t length);

  const ReadAheadOptions options_;
  std::array<Stream, kStreams> streams_{};
  uint64_t tick_ = 0;
};

}  // namespace dartfs::core
