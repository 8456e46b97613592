#include "core/engine/reader_impl.h"

#include <algorithm>
#include <cstring>
#include <vector>

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

bool ReaderState::TryRead(uint64_t offset, std::span<std::byte> into) {
  const Grid& grid = env_.options.grid;
  if (offset > object_->size() || into.size() > object_->size() - offset) return false;
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
  RestoreInterest();
  Ahead(offset, into.size());
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
  std::unordered_map<uint64_t, FlightTicket> ahead;
  {
    MutexLock lock(mu_);
    if (ops_.empty()) return;
    lowered_ = true;
    for (const auto& entry : ops_) ops.push_back(entry.second);
    ahead.swap(ahead_);
  }
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
  std::unordered_map<uint64_t, FlightTicket> ahead;
  {
    MutexLock lock(mu_);
    closed_ = true;
    for (const auto& entry : ops_) ops.push_back(entry.second);
    ahead.swap(ahead_);
  }
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
  {
    MutexLock lock(mu_);
    if (closed_ || env_.options.max_readahead_bytes == 0) return;
    const AheadRange range = read_ahead_.OnRead(offset, length);
    if (range.empty()) return;
    blocks = grid.BlocksOfRange(object_->size(), range.begin, range.end - range.begin);
  }
  if (object_->superseded() || object_->spooled()) return;
  if (env_.store.PresentBlocks(*object_->stored()) == grid.BlockCount(object_->size())) return;
  if (http_.Throttled(object_->facts().identity.authority)) return;
  for (uint64_t i = 0; i < blocks.count; ++i) {
    const uint64_t block = blocks.first_index + i;
    const uint64_t bytes = grid.BlockLength(object_->size(), block);
    if (env_.read_ahead_bytes.load() + bytes > env_.memory.read_ahead_limit_bytes()) return;
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
    FlightTicket& mine = ahead_[block];
    mine = std::move(joined.ticket);
    const FlightPhase phase = mine.Look().phase;
    over = phase >= FlightPhase::kStoring;
  }
  if (over) AheadDone(block);  // its waker may have run before the ticket was in the table
}

void ReaderState::AheadDone(uint64_t block) {
  FlightTicket dropped;
  MutexLock lock(mu_);
  const auto it = ahead_.find(block);
  if (it == ahead_.end()) return;
  dropped = std::move(it->second);
  ahead_.erase(it);
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
    done(std::move(status).error());
    return;
  }
  ReadBytes bytes;
  if (direct_) {
    bytes = std::move(*direct_);
  } else {
    bytes.bytes = std::as_const(buffer_).span();
    bytes.keep = self;
  }
  done(std::move(bytes));
}

void ReadOp::SetInterested(bool interested) {
  MutexLock lock(mu_);
  if (!finished_) range_.SetInterested(interested);
}

std::span<std::byte> ReadOp::Target(uint64_t at, size_t length) {
  if (buffer_.empty()) buffer_ = AlignedBuffer::Allocate(size_);
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
  uint64_t at = 0;
  {
    MutexLock lock(mu_);
    at = range_.position() - slice.length;
  }
  const std::span<std::byte> target = Target(at, length);
  Store& store = reader_->env().store;
  if (store.TryRead(slice.pin, slice.offset, target)) return true;
  store.Read(
      std::move(slice.pin), slice.offset, target,
      [self = shared_from_this(), at](const Status& status) { self->OnFileRead(at, status); });
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
