// ObjectStream: a range of an object for a client that takes it in order: a RangeReader that has
// the next blocks fetched ahead. How far ahead follows what the client has taken, so that one who
// asks for much and takes little costs the origin little.
//
// One user at a time, as with RangeReader.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/range_reader.h"

namespace dartfs::core {

struct StreamOptions {
  uint64_t offset = 0;
  uint64_t length = 0;  // cut at the object's end
  std::shared_ptr<const Requester> requester;
  uint64_t first_blocks = 2;  // fetched before anything has been taken
  uint64_t wake_bytes = 1;    // RangeOptions::wake_bytes
};

class ObjectStream {
 public:
  ObjectStream(std::shared_ptr<Object> object, StreamOptions options);

  // As RangeReader::Next. Whoever asks for more has taken all that came before.
  RangeStep Next(uint64_t max, Waker&& wake);
  // As RangeReader::Rewind.
  void Rewind(uint64_t offset);
  uint64_t position() const { return reader_.position(); }
  // The client takes nothing at present: the memory of blocks fetched for it is given back. What
  // follows comes from the store, or is fetched again. Next goes on at `position`, which is not
  // past position().
  void Rest(uint64_t position);
  // The last `bytes` of a FileSlice just given: they come again with Next.
  void GiveBack(uint64_t bytes);
  // Of the pieces so far: whether any came out of a flight rather than from the store.
  bool fetched() const { return fetched_; }

 private:
  struct AheadBlock {
    uint64_t block = 0;
    FlightTicket ticket;
  };
  void FetchAhead();
  uint64_t AllowedBlocks() const;
  bool HasRoom(uint64_t bytes) const;

  const std::shared_ptr<Object> object_;
  const StreamOptions options_;
  const uint64_t end_;
  RangeReader reader_;
  std::vector<AheadBlock> ahead_;  // few, in order; those before the position are gone
  uint64_t next_ahead_;            // the first block not yet looked at
  bool fetched_ = false;
};

}  // namespace dartfs::core
