#include "core/engine/reader_impl.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "core/engine/digest_check.h"

namespace dartfs::core {

namespace {
ReadAheadOptions AheadOptions(const EngineOptions& options) {
  ReadAheadOptions ahead;
  ahead.block_size = options.grid.block_size;
  ahead.first_window = 2 * options.grid.block_size;
  ahead.max_window = std::max<uint64_t>(
      std::min(options.max_readahead_bytes, options.inflight_bytes / 2), options.grid.block_size);
  return ahead;
}
}  // namespace

ReaderState::ReaderState(FlightEnv& env, HttpClient& http, std::shared_ptr<Object> object,
                         Requester requester)
    : env_(env),
      http_(http),
      object_(std::move(object)),
      requester_(std::make_shared<const Requester>(std::move(requester))),
      read_ahead_(AheadOptions(env.options)) {}

// From the store or a flight, if the bytes are there.
bool ReaderState::CopyBlock(uint64_t block, uint64_t in_block, std::span<std::byte> into) {
  if (CopyAhead(block, in_block, into)) return true;
  const BlockPin pin = env_.store.Pin(object_->stored(), block);
  if (pin) {
    if (!env_.store.TryRead(pin, in_block, into)) return false;
    env_.counters.cache_reads.fetch_add(1, std::memory_order_relaxed);
    env_.counters.cache_bytes.fetch_add(into.size(), std::memory_order_relaxed);
    return true;
  }
  TicketOptions options;
  options.requester = requester_;
  FlightTicket ticket = object_->flights().JoinExisting(block, std::move(options));
  if (!ticket) return false;
  const FlightView view = ticket.Look();
  if (view.buffer == nullptr || view.trusted < in_block + into.size()) return false;
  std::memcpy(into.data(), view.buffer->data() + in_block, into.size());
  ticket.MarkServed();
  env_.counters.origin_reads.fetch_add(1, std::memory_order_relaxed);
  env_.counters.memory_bytes.fetch_add(into.size(), std::memory_order_relaxed);
  return true;
}

std::optional<ReadBytes> ReaderState::FindAhead(uint64_t block, uint64_t in_block, size_t length) {
  std::shared_ptr<const AlignedBuffer> buffer;
  {
    MutexLock lock(mu_);
    const auto found = ahead_.find(block);
    if (found == ahead_.end()) return std::nullopt;
    const FlightView view = found->second.ticket.Look();
    if (view.phase == FlightPhase::kFailed || view.trusted < in_block + length) return std::nullopt;
    found->second.ticket.MarkServed();
    buffer = view.buffer;
  }
  const auto& digest = object_->flights().digest();
  if (buffer == nullptr || (digest != nullptr && digest->Refusal())) return std::nullopt;
  env_.counters.origin_reads.fetch_add(1, std::memory_order_relaxed);
  env_.counters.memory_bytes.fetch_add(length, std::memory_order_relaxed);
  NoteServed(block, length);
  ReadBytes found;
  found.bytes = buffer->span().subspan(in_block, length);
  found.keep = std::move(buffer);
  return found;
}

bool ReaderState::CopyAhead(uint64_t block, uint64_t in_block, std::span<std::byte> into) {
  const auto found = FindAhead(block, in_block, into.size());
  if (found) std::memcpy(into.data(), found->bytes.data(), into.size());
  return found.has_value();
}

void ReaderState::NoteServed(uint64_t block, uint64_t bytes) {
  {
    MutexLock lock(mu_);
    const auto found = ahead_.find(block);
    if (found == ahead_.end()) return;
    found->second.served += bytes;
    if (found->second.served < env_.options.grid.BlockLength(object_->size(), block)) return;
    if (found->second.held == HeldBlocks::kNone) return;  // not complete so far
  }
  DropAhead(block);
}

std::optional<ReadBytes> ReaderState::TryRead(uint64_t offset, std::span<std::byte> into) {
  const Grid& grid = env_.options.grid;
  if (offset > object_->size() || into.size() > object_->size() - offset) return std::nullopt;
  const uint64_t first = grid.BlockOfOffset(offset);
  std::optional<ReadBytes> whole = FindAhead(first, offset - grid.BlockOffset(first), into.size());
  if (!whole && !CopyBlocks(offset, into)) return std::nullopt;
  RestoreInterest();
  Ahead(offset, into.size());
  return whole ? std::move(*whole) : ReadBytes{into, nullptr};
}

bool ReaderState::CopyBlocks(uint64_t offset, std::span<std::byte> into) {
  const Grid& grid = env_.options.grid;
  uint64_t at = offset;
  std::span<std::byte> rest = into;
  while (!rest.empty()) {
    const uint64_t block = grid.BlockOfOffset(at);
    const uint64_t in_block = at - grid.BlockOffset(block);
    const size_t take = std::min<uint64_t>(rest.size(), grid.block_size - in_block);
    if (!CopyBlock(block, in_block, rest.first(take))) return false;
    rest = rest.subspan(take);
    at += take;
  }
  return true;
}

ReadId ReaderState::Read(uint64_t offset, size_t size, TimePoint deadline, ReadDone done) {
  RestoreInterest();
  std::shared_ptr<ReadOp> op;
  ReadId id = 0;
  bool closed = false;
  {
    MutexLock lock(mu_);
    id = next_id_++;
    closed = closed_;
    op = std::make_shared<ReadOp>(shared_from_this(), id, offset, size, deadline, std::move(done));
    if (!closed) ops_.emplace(id, op);
  }
  if (closed) {
    op->Finish(MakeError(Code::kCancelled, "the reader is closed"));
    return id;
  }
  op->Start();
  Ahead(offset, size);
  return id;
}

void ReaderState::Cancel(ReadId id) {
  std::shared_ptr<ReadOp> op;
  {
    MutexLock lock(mu_);
    const auto it = ops_.find(id);
    if (it == ops_.end()) return;
    op = it->second;
  }
  op->Finish(MakeError(Code::kCancelled, "cancelled"));
}

void ReaderState::LowerInterest() {
  std::vector<std::shared_ptr<ReadOp>> ops;
  AheadMap ahead;
  {
    MutexLock lock(mu_);
    if (ops_.empty()) return;
    lowered_ = true;
    for (const auto& entry : ops_) ops.push_back(entry.second);
    ahead.swap(ahead_);
  }
  Drop(std::move(ahead));
  for (const auto& op : ops) op->SetInterested(false);
}

void ReaderState::RestoreInterest() {
  std::vector<std::shared_ptr<ReadOp>> ops;
  {
    MutexLock lock(mu_);
    if (!lowered_) return;
    lowered_ = false;
    for (const auto& entry : ops_) ops.push_back(entry.second);
  }
  for (const auto& op : ops) op->SetInterested(true);
}

void ReaderState::Close() {
  std::vector<std::shared_ptr<ReadOp>> ops;
  AheadMap ahead;
  {
    MutexLock lock(mu_);
    closed_ = true;
    for (const auto& entry : ops_) ops.push_back(entry.second);
    ahead.swap(ahead_);
  }
  Drop(std::move(ahead));
  for (const auto& op : ops) op->Finish(MakeError(Code::kCancelled, "the reader is closed"));
}

void ReaderState::Forget(ReadId id) {
  std::shared_ptr<ReadOp> dropped;
  MutexLock lock(mu_);
  const auto it = ops_.find(id);
  if (it == ops_.end()) return;
  dropped = std::move(it->second);
  ops_.erase(it);
}

void ReaderState::Ahead(uint64_t offset, uint64_t length) {
  const Grid& grid = env_.options.grid;
  BlockRange blocks;
  uint64_t position = 0;
  {
    MutexLock lock(mu_);
    if (closed_ || env_.options.max_readahead_bytes == 0) return;
    const AheadRange range = read_ahead_.OnRead(offset, length, env_.scheduler.clock().Now());
    if (range.empty()) return;
    position = range.begin;
    blocks = grid.BlocksOfRange(object_->size(), range.begin, range.end - range.begin);
  }
  DropPassed(position);
  if (object_->superseded() || object_->spooled()) return;
  if (env_.store.PresentBlocks(*object_->stored()) == grid.BlockCount(object_->size())) return;
  if (http_.Throttled(object_->facts().identity.authority)) return;
  for (uint64_t i = 0; i < blocks.count; ++i) {
    const uint64_t block = blocks.first_index + i;
    const uint64_t bytes = grid.BlockLength(object_->size(), block);
    if (!MayFetchAhead(bytes)) return;
    {
      MutexLock lock(mu_);
      if (closed_ || ahead_.count(block) > 0) continue;
    }
    FetchAhead(block);
  }
}

void ReaderState::FetchAhead(uint64_t block) {
  if (object_->flights().InFlight(block)) return;
  TicketOptions options;
  options.requester = requester_;
  options.priority = Priority::kReadAhead;
  options.hold_buffer = true;
  FlightTable::Joined joined = object_->flights().Join(object_, block, std::move(options));
  if (!joined.ticket) return;
  std::weak_ptr<ReaderState> weak = weak_from_this();
  // The whole block: the ticket is held until it is stored or has failed.
  const bool waiting = joined.ticket.Await(UINT64_MAX, [weak, block] {
    if (const auto self = weak.lock()) self->AheadDone(block);
  });
  if (!waiting) return;
  bool over = false;
  {
    FlightTicket dropped;
    MutexLock lock(mu_);
    if (closed_) {
      dropped = std::move(joined.ticket);
      return;
    }
    FlightTicket& mine = ahead_[block].ticket;
    mine = std::move(joined.ticket);
    const FlightPhase phase = mine.Look().phase;
    over = phase >= FlightPhase::kStoring;
  }
  if (over) AheadDone(block);  // its waker may have run before the ticket was in the table
}

// Complete, or failed.
void ReaderState::AheadDone(uint64_t block) {
  const uint64_t bytes = env_.options.grid.BlockLength(object_->size(), block);
  {
    MutexLock lock(mu_);
    const auto it = ahead_.find(block);
    if (it == ahead_.end() || std::exchange(it->second.done, true)) return;
    const FlightView view = it->second.ticket.Look();
    if (view.phase == FlightPhase::kFailed || it->second.served >= bytes) {
      it->second.served = bytes;
    }
    if (it->second.served >= bytes) {
      AheadBlock dropped = std::move(it->second);
      ahead_.erase(it);
      return;
    }
  }
  const HeldBlocks::Id id =
      env_.held.Add(object_->flights().group(), bytes, [weak = weak_from_this(), block] {
        if (const auto self = weak.lock()) self->DropAhead(block);
      });
  MutexLock lock(mu_);
  const auto it = ahead_.find(block);
  if (it != ahead_.end()) {
    it->second.held = id;
  } else {
    env_.held.Remove(id);
  }
}

bool ReaderState::MayFetchAhead(uint64_t bytes) const {
  const uint64_t taken = env_.read_ahead_bytes.load() + env_.held.bytes();
  return taken == 0 || taken + bytes <= env_.memory.limit_bytes() / 2;
}

void ReaderState::DropAhead(uint64_t block) {
  AheadMap dropped;
  {
    MutexLock lock(mu_);
    const auto it = ahead_.find(block);
    if (it == ahead_.end()) return;
    dropped.insert(ahead_.extract(it));
  }
  Drop(std::move(dropped));
}

// What a stream has left behind unread: it has jumped, or its pages were known to the kernel.
void ReaderState::DropPassed(uint64_t position) {
  constexpr uint64_t kNear = 2, kFar = 16;  // blocks behind; further back may be another stream's
  const uint64_t at = env_.options.grid.BlockOfOffset(position);
  AheadMap dropped;
  {
    MutexLock lock(mu_);
    for (auto it = ahead_.begin(); it != ahead_.end();) {
      const auto next = std::next(it);
      const bool behind = it->first + kNear <= at && it->first + kFar > at;
      if (behind && it->second.held != HeldBlocks::kNone) dropped.insert(ahead_.extract(it));
      it = next;
    }
  }
  Drop(std::move(dropped));
}

void ReaderState::Drop(AheadMap&& blocks) {
  const AheadMap dropped = std::move(blocks);  // the tickets go with this call
  for (const auto& [block, ahead] : dropped) env_.held.Remove(ahead.held);
}

ReadOp::ReadOp(std::shared_ptr<ReaderState> reader, ReadId id, uint64_t offset, size_t size,
               TimePoint deadline, ReadDone done)
    : reader_(std::move(reader)),
      id_(id),
      offset_(offset),
      size_(offset >= reader_->object()->size() ? 0
                                                : static_cast<size_t>(std::min<uint64_t>(
                                                      size, reader_->object()->size() - offset))),
      deadline_(deadline),
      range_(reader_->object(),
             RangeOptions{offset, size_, reader_->requester(), size_, /*hold_buffer=*/true,
                          /*patient=*/deadline == kNoDeadline}),
      done_(std::move(done)) {}

ReadOp::~ReadOp() { reader_->env().read_buffers.Give(std::move(buffer_)); }

void ReadOp::Start() {
  Drive();
  MutexLock lock(mu_);
  if (finished_ || deadline_ == kNoDeadline) return;
  std::weak_ptr<ReadOp> weak = weak_from_this();
  timer_ = reader_->env().scheduler.At(deadline_, [weak] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->Finish(MakeError(Code::kDeadlineExceeded,
                           "reading " + self->reader_->object()->facts().identity.redacted_url +
                               " at " + std::to_string(self->offset_) +
                               ": not answered in time; the origin is slow or stalled"));
  });
}

void ReadOp::Finish(Status status) {
  ReadDone done;
  {
    MutexLock lock(mu_);
    if (finished_) return;
    finished_ = true;
    done = std::move(done_);
    done_ = nullptr;
    if (timer_ != kNoTimer) reader_->env().scheduler.Cancel(timer_);
    range_.Stop();
  }
  const auto self = shared_from_this();
  reader_->Forget(id_);
  if (!status) {
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.Move): it takes the assignment for a move away
    done(std::move(status).error());
    return;
  }
  ReadBytes bytes;
  if (direct_) {
    bytes = std::move(*direct_);
  } else {
    bytes.bytes = std::as_const(buffer_).span().first(size_);
    bytes.keep = self;
  }
  done(std::move(bytes));
}

void ReadOp::SetInterested(bool interested) {
  MutexLock lock(mu_);
  if (!finished_) range_.SetInterested(interested);
}

std::span<std::byte> ReadOp::Target(uint64_t at, size_t length) {
  if (buffer_.empty()) buffer_ = reader_->env().read_buffers.Take(size_);
  return buffer_.span().subspan(static_cast<size_t>(at - offset_), length);
}

void ReadOp::Drive() {
  bool again = true;
  while (again) {
    again = false;
    if (!Step(&again)) return;
  }
}

bool ReadOp::Step(bool* again) {
  RangeStep step = NotYet{};
  uint64_t at = 0;
  {
    MutexLock lock(mu_);
    if (finished_) return false;
    at = range_.position();
    step = range_.Next(size_, [self = shared_from_this()] { self->Drive(); });
  }
  if (std::holds_alternative<NotYet>(step)) return false;
  if (auto* error = std::get_if<Error>(&step)) {
    Finish(std::move(*error));
    return false;
  }
  if (std::holds_alternative<EndOfRange>(step)) {
    Finish({});
    return false;
  }
  if (auto* memory = std::get_if<MemorySlice>(&step)) {
    reader_->NoteServed(reader_->env().options.grid.BlockOfOffset(at), memory->bytes.size());
    if (memory->bytes.size() == size_) {
      direct_ = ReadBytes{memory->bytes, memory->keep};
    } else {
      const auto target = Target(at, memory->bytes.size());
      std::memcpy(target.data(), memory->bytes.data(), target.size());
    }
    *again = true;
    return true;
  }
  *again = ReadFile(std::move(std::get<FileSlice>(step)));
  return *again;
}

// True: read on the spot.
bool ReadOp::ReadFile(FileSlice slice) {
  const auto length = static_cast<size_t>(slice.length);
  if (buffer_.empty() && !TakeBuffer(&slice)) return false;
  uint64_t at = 0;
  {
    MutexLock lock(mu_);
    at = range_.position() - slice.length;
  }
  const std::span<std::byte> target = Target(at, length);
  if (reader_->CopyAhead(slice.pin.block(), slice.offset, target)) return true;
  Store& store = reader_->env().store;
  if (store.TryRead(slice.pin, slice.offset, target)) return true;
  store.Read(
      std::move(slice.pin), slice.offset, target,
      [self = shared_from_this(), at](const Status& status) { self->OnFileRead(at, status); });
  return false;
}

// False: OnBuffer will go on with the slice.
bool ReadOp::TakeBuffer(FileSlice* slice) {
  ReadBuffers& buffers = reader_->env().read_buffers;
  if (auto buffer = buffers.TryTake(size_)) {
    buffer_ = std::move(*buffer);
    return true;
  }
  buffers.Wait(size_, [weak = weak_from_this(), &buffers,
                       waiting = std::move(*slice)](AlignedBuffer buffer) mutable {
    const auto self = weak.lock();
    if (self == nullptr) return buffers.Give(std::move(buffer));
    self->buffer_ = std::move(buffer);
    if (self->ReadFile(std::move(waiting))) self->Drive();
  });
  return false;
}

// A block that can't be read back is a miss: the store has dropped it, it is fetched again.
void ReadOp::OnFileRead(uint64_t at, const Status& status) {
  if (!status) {
    MutexLock lock(mu_);
    if (!finished_) range_.Rewind(at);
  }
  // Off the disk's thread: what follows may start fetches and answers the reader.
  reader_->env().scheduler.Post([self = shared_from_this()] { self->Drive(); });
}

}  // namespace dartfs::core
