// Tickets and what readers see of a flight; flight_attempt.cc has the sources' side.
#include <algorithm>

#include "core/engine/flight_impl.h"

namespace dartfs::core {

namespace {
// How long a fetch without a byte is still taken to be on its way when interest in it ends.
constexpr Duration kProgressGrace = std::chrono::milliseconds(500);
// A fetch for reads that nobody seems to wait for any more is tried again now and then, ever more
// seldom, and given up when it gets nowhere for so long: dead readers take no connections for good.
constexpr Duration kUninterestedRetry = std::chrono::seconds(5);
constexpr Duration kMaxUninterestedRetry = std::chrono::seconds(60);
constexpr Duration kUninterestedPatience = std::chrono::seconds(5);

const char* PriorityName(Priority priority) {
  switch (priority) {
    case Priority::kDemand:
      return "demand";
    case Priority::kReadAhead:
      return "read-ahead";
    case Priority::kBackground:
      return "background";
  }
  return "background";
}
}  // namespace

Flight::Flight(std::shared_ptr<FlightTable> table, std::shared_ptr<Object> object, uint64_t block,
               uint64_t length)
    : table_(std::move(table)),
      object_(std::move(object)),
      block_(block),
      length_(length),
      started_at_(table_->env().scheduler.clock().Now()) {
  MutexLock lock(mu_);
  last_progress_ = started_at_;
}

Flight::~Flight() {
  MutexLock lock(mu_);
  if (read_ahead_counted_) env().read_ahead_bytes -= length_;
}

std::optional<uint64_t> Flight::AddTicket(TicketOptions options) {
  std::shared_ptr<BlockFetch> raise;
  uint64_t id = 0;
  Priority priority = options.priority;
  {
    MutexLock lock(mu_);
    if (phase_ == FlightPhase::kFailed || phase_ == FlightPhase::kStored) return std::nullopt;
    const bool paused = phase_ == FlightPhase::kBackoff && !AnyInterested();
    id = next_ticket_++;
    tickets_[id].options = std::move(options);
    CountReadAhead();
    RaiseMemoryWait();
    raise = fetch_;
    if (paused && timer_ != kNoTimer && env().scheduler.Cancel(timer_)) {
      timer_ = kNoTimer;
      env().scheduler.Post([self = shared_from_this()] { self->BeginAttempt(); });
    }
  }
  if (raise != nullptr) raise->Raise(priority);
  return id;
}

void Flight::Leave(uint64_t ticket) {
  std::shared_ptr<BlockFetch> cancel;
  SharedBuffer dropped;
  Ticket gone;
  bool over = false;
  {
    MutexLock lock(mu_);
    const auto it = tickets_.find(ticket);
    if (it == tickets_.end()) return;
    gone = std::move(it->second);
    tickets_.erase(it);
    CountReadAhead();
    const bool idle = phase_ == FlightPhase::kWaiting || phase_ == FlightPhase::kBackoff;
    const bool abandoned = phase_ == FlightPhase::kFetching && !served_ && received_ < length_;
    if (tickets_.empty() && (idle || abandoned)) {
      phase_ = FlightPhase::kFailed;
      error_ = MakeError(Code::kCancelled, "nobody wants the block any more");
      cancel = StopAttempt();
      dropped = std::move(buffer_);
      over = true;
    } else if (phase_ == FlightPhase::kStored && !AnyHolder()) {
      dropped = std::move(buffer_);
    }
  }
  if (cancel != nullptr) cancel->Cancel();
  if (over) LeaveTables();
}

FlightView Flight::Look(uint64_t ticket) const {
  MutexLock lock(mu_);
  FlightView view;
  view.phase = phase_;
  view.buffer = buffer_;
  view.trusted = buffer_ == nullptr ? 0 : trusted_;
  view.error = error_;
  const auto it = tickets_.find(ticket);
  if (it != tickets_.end() && it->second.error) {
    view.phase = FlightPhase::kFailed;
    view.error = it->second.error;
  }
  return view;
}

bool Flight::Ready(const Ticket& ticket) const {
  if (ticket.error) return true;
  switch (phase_) {
    case FlightPhase::kStoring:
      return !ticket.until_over;
    case FlightPhase::kStored:
    case FlightPhase::kUnstored:
    case FlightPhase::kFailed:
      return true;
    default:
      return !ticket.until_over && trusted_ >= std::min(ticket.need, length_);
  }
}

bool Flight::Await(uint64_t ticket, uint64_t need, Waker waker) {
  MutexLock lock(mu_);
  Ticket& mine = tickets_.at(ticket);
  mine.need = std::max<uint64_t>(need, 1);
  mine.until_over = false;
  if (Ready(mine)) return false;
  mine.waker = std::move(waker);
  return true;
}

bool Flight::AwaitOver(uint64_t ticket, Waker waker) {
  MutexLock lock(mu_);
  Ticket& mine = tickets_.at(ticket);
  mine.until_over = true;
  if (Ready(mine)) return false;
  mine.waker = std::move(waker);
  return true;
}

void Flight::Disarm(uint64_t ticket) {
  Waker dropped;
  MutexLock lock(mu_);
  dropped = std::move(tickets_.at(ticket).waker);
}

void Flight::Raise(uint64_t ticket, Priority priority) {
  std::shared_ptr<BlockFetch> raise;
  {
    MutexLock lock(mu_);
    Ticket& mine = tickets_.at(ticket);
    if (mine.options.priority <= priority) return;
    mine.options.priority = priority;
    CountReadAhead();
    RaiseMemoryWait();
    raise = fetch_;
  }
  if (raise != nullptr) raise->Raise(priority);
}

void Flight::SetInterested(uint64_t ticket, bool interested) {
  std::shared_ptr<BlockFetch> raise;
  Priority priority = Priority::kBackground;
  bool begin = false;
  {
    MutexLock lock(mu_);
    tickets_.at(ticket).interested = interested;
    if (interested) {
      pauses_ = 0;
      begin =
          phase_ == FlightPhase::kBackoff && timer_ != kNoTimer && env().scheduler.Cancel(timer_);
      if (begin) timer_ = kNoTimer;
      raise = fetch_;
      priority = BestPriority();
    }
  }
  if (raise != nullptr) raise->Raise(priority);
  if (begin) BeginAttempt();
  if (!interested) PauseUnwanted();
}

void Flight::PauseUnwanted() {
  std::shared_ptr<BlockFetch> cancel;
  Duration delay{};
  {
    MutexLock lock(mu_);
    if (phase_ != FlightPhase::kFetching || tickets_.empty() || AnyInterested()) return;
    const Duration patience = pauses_ == 0 ? kProgressGrace : kUninterestedPatience;
    const TimePoint until = last_progress_ + patience;
    if (env().scheduler.clock().Now() < until) {
      if (std::exchange(watched_, true)) return;
      env().scheduler.At(until, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->LookAtInterest();
      });
      return;
    }
    cancel = StopAttempt();
    delay =
        std::min<Duration>(kUninterestedRetry * (1 << std::min(pauses_, 4)), kMaxUninterestedRetry);
    ++pauses_;
  }
  if (cancel != nullptr) cancel->Cancel();
  Backoff(delay);
}

void Flight::LookAtInterest() {
  {
    MutexLock lock(mu_);
    watched_ = false;
  }
  PauseUnwanted();
}

void Flight::MarkServed() {
  MutexLock lock(mu_);
  served_ = true;
}

void Flight::Abort() {
  std::shared_ptr<BlockFetch> cancel;
  {
    MutexLock lock(mu_);
    if (phase_ != FlightPhase::kWaiting && phase_ != FlightPhase::kFetching &&
        phase_ != FlightPhase::kBackoff) {
      return;
    }
    cancel = StopAttempt();
  }
  if (cancel != nullptr) cancel->Cancel();
  Fail(MakeError(Code::kCancelled, "stopping"));
}

void Flight::ReleaseUnstored() {
  SharedBuffer dropped;
  {
    MutexLock lock(mu_);
    if (phase_ != FlightPhase::kUnstored) return;
    phase_ = FlightPhase::kStored;  // "look in the store": it is not there, and is fetched again
    if (!AnyHolder()) dropped = std::move(buffer_);
  }
  table_->Remove(block_, this);
}

FlightReport Flight::Report() const {
  MutexLock lock(mu_);
  FlightReport report;
  report.url = object_->facts().identity.redacted_url;
  report.block = block_;
  report.received = received_;
  report.length = length_;
  report.age_ms = ToMillis(env().scheduler.clock().Now() - started_at_);
  report.waiters = static_cast<uint32_t>(tickets_.size());
  report.source = phase_ == FlightPhase::kFetching ? source_ : "waiting";
  if (phase_ == FlightPhase::kStoring) report.source = "storing";
  report.priority = PriorityName(BestPriority());
  report.attempt = attempts_;
  return report;
}

Priority Flight::BestPriority() const {
  Priority best = Priority::kBackground;
  for (const auto& [id, ticket] : tickets_) best = std::min(best, ticket.options.priority);
  return best;
}

bool Flight::AnyInterested() const {
  return std::any_of(tickets_.begin(), tickets_.end(),
                     [](const auto& entry) { return entry.second.interested; });
}

bool Flight::AnyHolder() const {
  return std::any_of(tickets_.begin(), tickets_.end(),
                     [](const auto& entry) { return entry.second.options.hold_buffer; });
}

bool Flight::AnyPatient() const {
  return std::any_of(tickets_.begin(), tickets_.end(), [](const auto& entry) {
    return entry.second.options.patient && !entry.second.error;
  });
}

// A flight counts as read-ahead while nobody waits for it.
void Flight::CountReadAhead() {
  const bool running = phase_ == FlightPhase::kWaiting || phase_ == FlightPhase::kFetching ||
                       phase_ == FlightPhase::kBackoff;
  const bool counts = running && !tickets_.empty() && BestPriority() != Priority::kDemand;
  if (counts == read_ahead_counted_) return;
  read_ahead_counted_ = counts;
  if (counts) {
    env().read_ahead_bytes += length_;
  } else {
    env().read_ahead_bytes -= length_;
  }
}

// It may wait for memory as the read-ahead it once was.
void Flight::RaiseMemoryWait() {
  if (grant_wait_ != 0) env().memory.RaiseWait(grant_wait_, BestPriority());
}

void Flight::CollectWakers(Wakers* out) {
  for (auto& [id, ticket] : tickets_) {
    if (!ticket.waker || !Ready(ticket)) continue;
    out->push_back(std::move(ticket.waker));
    ticket.waker = nullptr;
  }
}

void Flight::PostWakers(Wakers wakers) {
  for (Waker& waker : wakers) env().scheduler.Post(std::move(waker));
}

void Flight::LeaveTables() {
  table_->Remove(block_, this);
  env().registry.Remove(this);
}

// The attempt no longer speaks for the flight; the caller cancels what is returned, without the
// lock.
std::shared_ptr<BlockFetch> Flight::StopAttempt() {
  if (timer_ != kNoTimer) env().scheduler.Cancel(timer_);
  timer_ = kNoTimer;
  if (grant_wait_ != 0) env().memory.CancelWait(grant_wait_);
  grant_wait_ = 0;
  EndAttempt();
  return std::exchange(fetch_, nullptr);
}

// What it still brings is refused.
void Flight::EndAttempt() {
  if (attempt_ != nullptr) attempt_->current.store(false, std::memory_order_release);
  attempt_ = nullptr;
}

std::string Flight::Describe() const {
  return "block " + std::to_string(block_) + " of " + object_->facts().identity.redacted_url;
}

FlightTicket::FlightTicket(FlightTicket&& other) noexcept
    : flight_(std::move(other.flight_)), id_(std::exchange(other.id_, 0)) {}

FlightTicket& FlightTicket::operator=(FlightTicket&& other) noexcept {
  if (this != &other) {
    Leave();
    flight_ = std::move(other.flight_);
    id_ = std::exchange(other.id_, 0);
  }
  return *this;
}

FlightTicket::~FlightTicket() { Leave(); }

void FlightTicket::Leave() {
  if (auto flight = std::move(flight_)) flight->Leave(id_);
  flight_ = nullptr;
}

FlightView FlightTicket::Look() const { return flight_->Look(id_); }
bool FlightTicket::Await(uint64_t need, Waker waker) {
  return flight_->Await(id_, need, std::move(waker));
}
bool FlightTicket::AwaitOver(Waker waker) { return flight_->AwaitOver(id_, std::move(waker)); }
void FlightTicket::Disarm() { flight_->Disarm(id_); }
void FlightTicket::Raise(Priority priority) { flight_->Raise(id_, priority); }
void FlightTicket::MarkServed() { flight_->MarkServed(); }
void FlightTicket::SetInterested(bool interested) { flight_->SetInterested(id_, interested); }

}  // namespace dartfs::core
