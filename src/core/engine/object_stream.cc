#include "core/engine/object_stream.h"

#include <algorithm>
#include <utility>

#include "core/engine/flight_env.h"

namespace dartfs::core {
namespace {

// What is taken within the first blocks may lie in the sockets yet, and be all that is wanted: only
// then does the window grow.
constexpr uint64_t kSteadyBlocks = 2;

uint64_t EndOf(const Object& object, const StreamOptions& options) {
  const uint64_t start = std::min(options.offset, object.size());
  return start + std::min(options.length, object.size() - start);
}

RangeOptions OptionsOfRange(const StreamOptions& options) {
  RangeOptions range;
  range.offset = options.offset;
  range.length = options.length;
  range.requester = options.requester;
  range.wake_bytes = options.wake_bytes;
  range.hold_buffer = true;  // Rest gives it back
  return range;
}

}  // namespace

ObjectStream::ObjectStream(std::shared_ptr<Object> object, StreamOptions options)
    : object_(std::move(object)),
      options_(std::move(options)),
      end_(EndOf(*object_, options_)),
      reader_(object_, OptionsOfRange(options_)),
      next_ahead_(object_->flights().env().options.grid.BlockOfOffset(options_.offset) + 1) {}

RangeStep ObjectStream::Next(uint64_t max, Waker&& wake) {
  RangeStep step = reader_.Next(max, std::move(wake));
  fetched_ =
      fetched_ || std::holds_alternative<MemorySlice>(step) || std::holds_alternative<NotYet>(step);
  if (std::holds_alternative<Error>(step) || std::holds_alternative<EndOfRange>(step)) {
    ahead_.clear();
  } else {
    FetchAhead();
  }
  return step;
}

void ObjectStream::Rewind(uint64_t offset) { reader_.Rewind(offset); }

void ObjectStream::Rest(uint64_t position) {
  DARTFS_CHECK(position <= reader_.position());
  reader_.Seek(position);
  ahead_.clear();
  next_ahead_ = object_->flights().env().options.grid.BlockOfOffset(reader_.position()) + 1;
}

void ObjectStream::GiveBack(uint64_t bytes) {
  DARTFS_CHECK(bytes <= reader_.position() - options_.offset);
  object_->flights().env().counters.cache_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  reader_.Seek(reader_.position() - bytes);
}

// Blocks from the range's first on.
uint64_t ObjectStream::AllowedBlocks() const {
  const FlightEnv& env = object_->flights().env();
  const uint64_t block_size = env.options.grid.block_size;
  const uint64_t taken = (reader_.position() - options_.offset) / block_size;
  if (taken < kSteadyBlocks) return options_.first_blocks;
  return taken +
         std::min(options_.first_blocks + taken, 1 + env.options.max_readahead_bytes / block_size);
}

bool ObjectStream::HasRoom(uint64_t bytes) const {
  const FlightEnv& env = object_->flights().env();
  const uint64_t taken = env.read_ahead_bytes.load() + env.held.bytes();
  return taken == 0 || taken + bytes <= env.memory.limit_bytes() / 2;
}

void ObjectStream::FetchAhead() {
  FlightEnv& env = object_->flights().env();
  const Grid& grid = env.options.grid;
  if (end_ == 0 || object_->spooled() || env.options.max_readahead_bytes == 0) return;
  const uint64_t current = grid.BlockOfOffset(reader_.position());
  const auto behind = std::find_if(ahead_.begin(), ahead_.end(),
                                   [&](const AheadBlock& each) { return each.block >= current; });
  ahead_.erase(ahead_.begin(), behind);
  const uint64_t last = grid.BlockOfOffset(end_ - 1);
  const uint64_t first = grid.BlockOfOffset(options_.offset);
  next_ahead_ = std::max(next_ahead_, current + 1);
  for (; next_ahead_ <= last && next_ahead_ < first + AllowedBlocks(); ++next_ahead_) {
    if (!HasRoom(grid.BlockLength(object_->size(), next_ahead_))) return;
    TicketOptions ticket;
    ticket.requester = options_.requester;
    ticket.priority = Priority::kReadAhead;
    ticket.hold_buffer = true;
    FlightTable::Joined joined = object_->flights().Join(object_, next_ahead_, std::move(ticket));
    if (joined.ticket) ahead_.push_back({next_ahead_, std::move(joined.ticket)});
  }
}

}  // namespace dartfs::core
