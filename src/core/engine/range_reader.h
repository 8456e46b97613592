// RangeReader: a byte range of an object as a pull stream. Each step is a piece of the object's
// file, a piece of memory, "not yet", or the end; whoever pulls decides when and how much, so a
// slow client costs nothing but what it holds. Used by FUSE reads, HTTP bodies and peer answers
// alike.
//
// One user at a time; the waker may run at any moment after Next said kNotYet.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "core/base/result.h"
#include "core/engine/flight.h"
#include "core/engine/object.h"
#include "core/engine/object_reader.h"

namespace dartfs::core {

// Bytes [offset, offset + length) of a present block: read them with Store::TryRead or Store::Read.
struct FileSlice {
  BlockPin pin;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Trusted bytes of a flight.
struct MemorySlice {
  std::shared_ptr<const AlignedBuffer> keep;
  std::span<const std::byte> bytes;
};

struct NotYet {};
struct EndOfRange {};

using RangeStep = std::variant<FileSlice, MemorySlice, NotYet, EndOfRange, Error>;

struct RangeOptions {
  uint64_t offset = 0;
  uint64_t length = 0;  // cut at the object's end
  std::shared_ptr<const Requester> requester;
  // How many bytes must have come before a waiter is woken: a whole read for FUSE (it answers in
  // full), little for a client that streams.
  uint64_t wake_bytes = 1;
  bool hold_buffer = false;  // TicketOptions::hold_buffer
  bool patient = false;      // TicketOptions::patient
};

class RangeReader {
 public:
  RangeReader(std::shared_ptr<Object> object, RangeOptions options);

  // The next piece, at most `max` bytes, from where the last one ended. NotYet: `wake` will run
  // once, on an engine thread; otherwise it is not taken. After an Error or EndOfRange nothing
  // follows.
  RangeStep Next(uint64_t max, Waker&& wake);
  // Goes back to `offset`, after a FileSlice could not be read: the block is dropped then, and Next
  // fetches it again. A block that can't be read time after time is an error.
  void Rewind(uint64_t offset);
  // Goes to `offset`, back or forth within the range; leaves the flight it was in.
  void Seek(uint64_t offset);
  // Where the next piece begins.
  uint64_t position() const { return position_; }
  void SetInterested(bool interested);
  // Drops tickets and wakers.
  void Stop();

 private:
  Error CanNotKeep() const;
  RangeStep FromFlight(uint64_t in_block, uint64_t want, uint64_t block_left, Waker* wake);

  const std::shared_ptr<Object> object_;
  const RangeOptions options_;
  const uint64_t end_;
  uint64_t position_;
  std::optional<uint64_t> counted_block_;  // the last block counted as a read
  std::optional<uint64_t> ticket_block_;
  FlightTicket ticket_;
  bool interested_ = true;
  uint64_t rewound_to_ = 0;
  int rewinds_ = 0;  // to there, in a row
  int rounds_ = 0;   // flights of one block that ended without bytes for us
};

}  // namespace dartfs::core
