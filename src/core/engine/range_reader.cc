#include "core/engine/range_reader.h"

#include <algorithm>
#include <utility>

#include "core/engine/flight_env.h"

namespace dartfs::core {

namespace {
// A block that is fetched and gone again before it could be read, so often: give up.
constexpr int kMaxRounds = 8;

uint64_t EndOf(const Object& object, const RangeOptions& options) {
  const uint64_t size = object.size();
  if (options.offset >= size) return options.offset;
  return options.offset + std::min(options.length, size - options.offset);
}
}  // namespace

RangeReader::RangeReader(std::shared_ptr<Object> object, RangeOptions options)
    : object_(std::move(object)),
      options_(std::move(options)),
      end_(EndOf(*object_, options_)),
      position_(options_.offset) {}

RangeStep RangeReader::Next(uint64_t max, Waker&& wake) {
  if (position_ >= end_) return EndOfRange{};
  FlightEnv& env = object_->flights().env();
  const Grid& grid = env.options.grid;
  const uint64_t block = grid.BlockOfOffset(position_);
  const uint64_t in_block = position_ - grid.BlockOffset(block);
  const uint64_t block_left = grid.BlockLength(object_->size(), block) - in_block;
  const uint64_t want = std::min({max, end_ - position_, block_left});

  if (rewinds_ > kMaxRounds) return CanNotKeep();
  while (true) {
    if (ticket_block_ != block) {
      ticket_ = FlightTicket();
      ticket_block_.reset();
      BlockPin pin = env.store.Pin(object_->stored(), block);
      if (!pin) {
        TicketOptions options;
        options.requester = options_.requester;
        options.hold_buffer = options_.hold_buffer;
        options.patient = options_.patient;
        FlightTable::Joined joined = object_->flights().Join(object_, block, std::move(options));
        pin = std::move(joined.pin);
        ticket_ = std::move(joined.ticket);
      }
      if (pin) {
        if (counted_block_ != block)
          env.counters.cache_reads.fetch_add(1, std::memory_order_relaxed);
        counted_block_ = block;
        env.counters.cache_bytes.fetch_add(want, std::memory_order_relaxed);
        position_ += want;
        rounds_ = 0;
        return FileSlice{std::move(pin), in_block, want};
      }
      ticket_block_ = block;
      if (!interested_) ticket_.SetInterested(false);
    }
    RangeStep step = FromFlight(in_block, want, block_left, &wake);
    if (ticket_block_ == block) return step;
    if (++rounds_ > kMaxRounds) {
      return CanNotKeep();
    }
  }
}

// Leaves ticket_block_ unset when the flight has nothing more to give and the block must be looked
// for again.
RangeStep RangeReader::FromFlight(uint64_t in_block, uint64_t want, uint64_t block_left,
                                  Waker* wake) {
  FlightEnv& env = object_->flights().env();
  while (true) {
    const FlightView view = ticket_.Look();
    if (view.phase == FlightPhase::kFailed) {
      if (view.error->code != Code::kCancelled || env.stopped.load(std::memory_order_acquire)) {
        return *view.error;
      }
      ticket_block_.reset();  // cancelled by others' leaving just as we joined
      return NotYet{};
    }
    const uint64_t need = in_block + std::min(options_.wake_bytes, std::min(want, block_left));
    if (view.buffer != nullptr && view.trusted >= need) {
      const uint64_t length = std::min(want, view.trusted - in_block);
      if (counted_block_ != ticket_block_) {
        env.counters.origin_reads.fetch_add(1, std::memory_order_relaxed);
      }
      counted_block_ = ticket_block_;
      ticket_.MarkServed();
      env.counters.memory_bytes.fetch_add(length, std::memory_order_relaxed);
      position_ += length;
      rounds_ = 0;
      return MemorySlice{view.buffer, view.buffer->span().subspan(in_block, length)};
    }
    if (view.phase == FlightPhase::kStored) {
      ticket_block_.reset();
      return NotYet{};
    }
    // The waker is ours to give away once: it goes into a holder that survives a refusal.
    auto holder = std::make_shared<Waker>(std::move(*wake));
    if (ticket_.Await(need, [holder] { (*holder)(); })) return NotYet{};
    *wake = std::move(*holder);
  }
}

Error RangeReader::CanNotKeep() const {
  return MakeError(Code::kUnavailable, "a block of " + object_->facts().identity.redacted_url +
                                           " was fetched but could not be kept or read back");
}

void RangeReader::Rewind(uint64_t offset) {
  rewinds_ = offset == rewound_to_ ? rewinds_ + 1 : 1;
  rewound_to_ = offset;
  Seek(offset);
  FlightEnv& env = object_->flights().env();
  env.counters.refetched_corrupt.fetch_add(1, std::memory_order_relaxed);
}

void RangeReader::Seek(uint64_t offset) {
  DARTFS_CHECK(offset >= options_.offset && offset <= end_);
  position_ = offset;
  Stop();
}

void RangeReader::SetInterested(bool interested) {
  interested_ = interested;
  if (ticket_) ticket_.SetInterested(interested);
}

void RangeReader::Stop() {
  ticket_ = FlightTicket();
  ticket_block_.reset();
}

}  // namespace dartfs::core
