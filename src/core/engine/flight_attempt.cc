// The sources' side of a flight: attempts, their bytes, failures, and the way into the store.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/log.h"
#include "core/engine/digest_check.h"
#include "core/engine/flight_impl.h"

namespace dartfs::core {

namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(100);
constexpr Duration kMaxBackoff = std::chrono::seconds(5);
// A throttling origin is asked again soon after it recovers; how long it said to wait is kept by
// the client's queue.
constexpr Duration kMaxThrottleBackoff = std::chrono::seconds(2);
constexpr int kMaxBadResponses = 3;
// Readers hear of so many new bytes at once, or of what there is when no more come for the moment.
constexpr uint64_t kPublishBytes = 256 << 10;

Error GivenUp() { return MakeError(Code::kCancelled, "the attempt was given up"); }

bool SameCredential(const Requester& a, const Requester& b) {
  return a.untrusted_url == b.untrusted_url && a.authorization == b.authorization && a.url == b.url;
}

// Full jitter over the upper half: [d/2, d) with d doubling from the first back-off.
Duration BackoffDelay(int failures, Duration max, Random& random) {
  const int doublings = std::min(failures - 1, 16);
  const Duration full = std::min(kFirstBackoff * (int64_t{1} << doublings), max);
  return std::chrono::duration_cast<Duration>(full * (0.5 + random.NextDouble() / 2));
}

}  // namespace

void Flight::Start() {
  env().counters.flights_started.fetch_add(1, std::memory_order_relaxed);
  if (env().stopped.load(std::memory_order_acquire)) {
    Fail(MakeError(Code::kCancelled, "stopping"));
    return;
  }
  if (object_->superseded()) {
    Fail(MakeError(Code::kStale, Describe() + ": the origin has another version of it now"));
    return;
  }
  const auto& digest = table_->digest();
  if (auto refusal = digest == nullptr ? std::nullopt : digest->Refusal()) {
    Fail(std::move(*refusal));
    return;
  }
  BeginAttempt();
}

void Flight::BeginAttempt() {
  BlockRequest request;
  std::shared_ptr<FlightAttempt> attempt;
  BlockSource& source = env().events.SourceFor(*object_);
  {
    MutexLock lock(mu_);
    timer_ = kNoTimer;
    if (phase_ != FlightPhase::kWaiting && phase_ != FlightPhase::kBackoff) return;
    const auto best =
        std::min_element(tickets_.begin(), tickets_.end(), [](const auto& a, const auto& b) {
          const bool a_out = a.second.error.has_value();
          const bool b_out = b.second.error.has_value();
          if (a_out != b_out) return b_out;
          return a.second.options.priority < b.second.options.priority;
        });
    if (best == tickets_.end()) return;
    phase_ = FlightPhase::kFetching;
    ++attempts_;
    attempt_ = attempt = std::make_shared<FlightAttempt>(shared_from_this());
    attempt_trusted_ = false;
    source_ = source.name();
    requester_ = best->second.options.requester;
    last_progress_ = env().scheduler.clock().Now();
    request.object = object_;
    request.block = block_;
    request.length = length_;
    // Without a validator only the bytes themselves can tell that a second answer is of the same
    // generation as the first: it begins at the block's start, and is compared.
    request.from = object_->facts().meta.volatile_version ? 0 : received_;
    attempt->position = request.from;
    request.requester = requester_;
    request.priority = AnyInterested() ? BestPriority() : Priority::kBackground;
  }
  const std::shared_ptr<BlockFetch> fetch = source.Fetch(std::move(request), attempt);
  Priority priority = Priority::kBackground;
  bool abandoned = false;
  {
    MutexLock lock(mu_);
    abandoned = attempt_ != attempt;
    if (!abandoned) fetch_ = fetch;
    if (AnyInterested()) priority = BestPriority();
  }
  if (abandoned) {
    fetch->Cancel();
    return;
  }
  fetch->Raise(priority);  // somebody may have joined meanwhile
  PauseUnwanted();
}

Status Flight::OnStart(const FlightAttempt* attempt, bool trusted) {
  MutexLock lock(mu_);
  if (attempt_.get() != attempt) return GivenUp();
  const auto& digest = table_->digest();
  attempt_trusted_ = trusted && (digest == nullptr || !digest->verified());
  last_progress_ = env().scheduler.clock().Now();
  return {};
}

// False: no memory now; OnGrant resumes the fetch.
bool Flight::AcquireBuffer() {
  if (buffer_ != nullptr) return true;
  if (grant_wait_ != 0) return false;
  const Priority priority = BestPriority();
  buffer_ = env().memory.TryAcquire(table_->group(), length_, priority);
  if (buffer_ != nullptr) return true;
  grant_wait_ = env().memory.Acquire(
      table_->group(), length_, priority,
      [self = shared_from_this()](SharedBuffer buffer) { self->OnGrant(std::move(buffer)); });
  env().held.ReleaseSoon(table_->group(), length_);
  return false;
}

void Flight::OnGrant(SharedBuffer buffer) {
  std::shared_ptr<BlockFetch> resume;
  {
    MutexLock lock(mu_);
    grant_wait_ = 0;
    if (phase_ != FlightPhase::kFetching && phase_ != FlightPhase::kBackoff) return;
    if (buffer_ == nullptr) buffer_ = std::move(buffer);
    resume = fetch_;
  }
  if (resume != nullptr) resume->Resume();
}

// Bytes are copied without the flight's lock, and published some at a time: readers ask for many
// more than come in one piece.
Result<BodyVerdict> Flight::OnBytes(FlightAttempt* attempt, std::span<const std::byte> bytes) {
  // An attempt that was given up may still be copying when the next one has bytes.
  MutexLock copying(copy_mu_);
  if (!attempt->current.load(std::memory_order_acquire)) return GivenUp();
  if (bytes.size() > length_ - attempt->position) {
    return MakeError(Code::kBadResponse, Describe() + ": the answer is longer than it said");
  }
  if (attempt->buffer == nullptr) {
    bool paused = false;
    TRY(Prepare(attempt, &paused));
    if (paused) return BodyVerdict::kPause;
  }
  // What lies below the watermark is there already.
  const uint64_t known = std::min<uint64_t>(
      bytes.size(), attempt->known - std::min(attempt->known, attempt->position));
  std::byte* const at = attempt->buffer->data() + attempt->position;
  if (known > 0 && std::memcmp(at, bytes.data(), known) != 0) {
    return MakeError(Code::kStale, Describe() + ": other bytes than before, and no version");
  }
  std::memcpy(at + known, bytes.data() + known, bytes.size() - known);
  attempt->position += bytes.size();
  const bool enough = attempt->position - attempt->published >= kPublishBytes;
  if (enough || attempt->position == length_) TRY(Publish(attempt));
  return BodyVerdict::kTaken;
}

Status Flight::Prepare(FlightAttempt* attempt, bool* paused) {
  MutexLock lock(mu_);
  if (attempt_.get() != attempt) return GivenUp();
  *paused = !AcquireBuffer();
  if (*paused) return {};
  attempt->buffer = buffer_;
  attempt->known = received_;
  attempt->published = attempt->position;
  return {};
}

Status Flight::Publish(FlightAttempt* attempt) {
  Wakers wakers;
  {
    MutexLock lock(mu_);
    if (attempt_.get() != attempt) return GivenUp();
    attempt->published = attempt->position;
    received_ = std::max(received_, attempt->position);
    if (attempt_trusted_) trusted_ = received_;
    last_progress_ = env().scheduler.clock().Now();
    CollectWakers(&wakers);
  }
  PostWakers(std::move(wakers));
  return {};
}

void Flight::OnPiecesEnd(FlightAttempt* attempt) {
  MutexLock copying(copy_mu_);
  if (attempt->position > attempt->published) static_cast<void>(Publish(attempt));
}

void Flight::OnEnd(const FlightAttempt* attempt, Status status) {
  bool complete = false;
  {
    MutexLock lock(mu_);
    if (attempt_.get() != attempt) return;
    EndAttempt();
    fetch_ = nullptr;
    complete =
        attempt->position == length_ && (status || status.error().code != Code::kBadResponse);
  }
  if (complete) {
    status = CheckDigest();
    if (status) {
      Complete();
    } else {
      HandleFailure(std::move(status).error());
    }
    return;
  }
  if (status) {
    status = MakeError(Code::kBadResponse, Describe() + ": the answer was shorter than it said");
  }
  HandleFailure(std::move(status).error());
}

void Flight::HandleFailure(Error error) {
  if (error.code != Code::kCancelled) env().events.OnFetchError(object_, error);
  switch (error.code) {
    case Code::kStale:
      object_->MarkSuperseded();
      env().events.OnStale(object_);
      Fail(std::move(error));
      return;
    case Code::kRangeBlind:
      env().events.OnRangeBlind(object_);
      RetryOrFail(std::move(error));
      return;
    case Code::kUnauthorized:
    case Code::kForbidden:
    case Code::kRefused:
      RefuseRequester(std::move(error));
      return;
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kTooManyRequests:
    case Code::kBadResponse:
    case Code::kBusy:
      RetryOrFail(std::move(error));
      return;
    default:
      Fail(std::move(error));
  }
}

void Flight::RetryOrFail(Error error) {
  Duration delay{};
  {
    MutexLock lock(mu_);
    if (received_ > received_at_failure_) failures_ = 0;
    received_at_failure_ = received_;
    ++failures_;
    const bool throttled = error.code == Code::kTooManyRequests;
    const int limit = error.code == Code::kBadResponse || error.code == Code::kRangeBlind
                          ? kMaxBadResponses
                          : env().options.max_attempts;
    const bool out_of_reach =
        throttled || error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded;
    const bool wanted = BestPriority() == Priority::kDemand;
    const bool patient = throttled || (out_of_reach && AnyPatient());
    if (wanted && (patient || failures_ < limit)) {
      delay = BackoffDelay(failures_, throttled ? kMaxThrottleBackoff : kMaxBackoff, env().random);
      if (!AnyInterested()) delay = std::max<Duration>(delay, kMaxBackoff);
    }
  }
  if (delay == Duration{}) {
    Fail(std::move(error));
    return;
  }
  env().counters.retries.fetch_add(1, std::memory_order_relaxed);
  Backoff(delay);
}

void Flight::Backoff(Duration delay) {
  MutexLock lock(mu_);
  if (phase_ != FlightPhase::kFetching) return;
  phase_ = FlightPhase::kBackoff;
  timer_ = env().scheduler.After(delay, [self = shared_from_this()] { self->BeginAttempt(); });
}

// 401 and 403 are answers to one credential: only who holds it is refused.
void Flight::RefuseRequester(Error error) {
  Wakers wakers;
  bool others = false;
  {
    MutexLock lock(mu_);
    for (auto& [id, ticket] : tickets_) {
      if (ticket.error) continue;
      if (SameCredential(*ticket.options.requester, *requester_)) {
        ticket.error = error;
      } else {
        others = true;
      }
    }
    if (others) {
      phase_ = FlightPhase::kWaiting;
      CollectWakers(&wakers);
    }
  }
  if (!others) {
    Fail(std::move(error));
    return;
  }
  PostWakers(std::move(wakers));
  BeginAttempt();
}

Status Flight::CheckDigest() {
  const auto& digest = table_->digest();
  if (digest == nullptr) return {};
  SharedBuffer buffer;
  {
    MutexLock lock(mu_);
    buffer = buffer_;
  }
  Status admitted = digest->Admit(block_, buffer, object_->facts().identity);
  if (admitted) return {};
  MutexLock lock(mu_);
  received_ = trusted_ = 0;
  return admitted;
}

void Flight::CountFetch() {
  EngineCounters& counters = env().counters;
  const bool by_peer = std::string_view(source_) == "peer";
  LatencyHistogram& histogram = by_peer ? counters.peer_fetches : counters.origin_fetches;
  histogram.Add(env().scheduler.clock().Now() - started_at_);
}

void Flight::Complete() {
  Wakers wakers;
  SharedBuffer buffer;
  {
    MutexLock lock(mu_);
    if (phase_ != FlightPhase::kFetching) return;
    phase_ = FlightPhase::kStoring;
    trusted_ = received_;
    CountFetch();
    CountReadAhead();
    buffer = buffer_;
    CollectWakers(&wakers);
  }
  PostWakers(std::move(wakers));
  env().store.Write(table_->stored(), block_, std::move(buffer),
                    [self = shared_from_this()](const Status& status) { self->OnStored(status); });
}

void Flight::OnStored(const Status& status) {
  Wakers wakers;
  SharedBuffer dropped;
  const bool stored = status.has_value();
  {
    MutexLock lock(mu_);
    phase_ = stored ? FlightPhase::kStored : FlightPhase::kUnstored;
    if (stored && !AnyHolder()) dropped = std::move(buffer_);
    CollectWakers(&wakers);
  }
  if (stored) {
    LeaveTables();
    if (table_->digest() != nullptr) table_->digest()->Wake();
  } else {
    LOG_DEBUG("{} is not kept: {}", Describe(), status.error().ToString());
    env().registry.Remove(this);
    env().unstored.Add(shared_from_this(), length_);
  }
  PostWakers(std::move(wakers));
}

void Flight::Fail(Error error) {
  Wakers wakers;
  SharedBuffer dropped;
  {
    MutexLock lock(mu_);
    if (phase_ == FlightPhase::kFailed) return;
    phase_ = FlightPhase::kFailed;
    if (error.code != Code::kCancelled) {
      env().counters.flights_failed.fetch_add(1, std::memory_order_relaxed);
    }
    error_ = std::move(error);
    CountReadAhead();
    dropped = std::move(buffer_);
    CollectWakers(&wakers);
  }
  LeaveTables();
  PostWakers(std::move(wakers));
}

}  // namespace dartfs::core
