#include "core/io/curl_mailbox.h"
#include "core/base/log.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/random.h"
#include "core/io/curl_error.h"
#include "core/io/http_head.h"

namespace dartfs::core {
namespace {

OriginQueue::Limits LimitsOf(const HttpClientOptions& options) {
  OriginQueue::Limits limits;
  limits.connections = std::max<size_t>(options.connections_per_origin, 1);
  limits.queue = std::max<size_t>(options.queue_per_origin, 1);
  limits.max_throttle = options.max_throttle;
  return limits;
}

size_t TableSizeOf(const HttpClientOptions& options) {
  const size_t threads = std::max<size_t>(options.threads, 1);
  return (options.max_origins + threads - 1) / threads;
}

int64_t UnixSeconds(const Clock& clock) {
  const auto since = clock.WallNow().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

}  // namespace

CurlCall::CurlCall(uint64_t call_id, HttpRequest asked, Target first,
                   std::shared_ptr<HttpSink> sink, std::shared_ptr<CurlMailbox> mailbox)
    : id(call_id),
      request(std::move(asked)),
      target(std::move(first)),
      sink_(std::move(sink)),
      mailbox_(std::move(mailbox)) {}

void CurlCall::Cancel() {
  if (!cancelled_.exchange(true, std::memory_order_relaxed)) mailbox_->Cancel(shared_from_this());
}

void CurlCall::Resume() { mailbox_->Resume(shared_from_this()); }

void CurlCall::Raise(Priority priority) { mailbox_->Raise(*this, priority); }

void CurlCall::Done(Status status) {
  if (std::shared_ptr<HttpSink> sink = std::exchange(sink_, nullptr)) {
    sink->OnDone(std::move(status));
  }
}

CurlMailbox::CurlMailbox(const HttpClientOptions& options)
    : table_(LimitsOf(options), TableSizeOf(options)) {}

bool CurlMailbox::Push(CurlCallPtr call, Status refusal) {
  MutexLock lock(mu_);
  if (closed_) return false;
  if (refusal) refusal = Admit(*call);
  mail_.arrived.push_back({std::move(call), std::move(refusal)});
  Wake();
  return true;
}

Status CurlMailbox::Admit(const CurlCall& call) {
  const TimePoint now = RealClock().Now();
  const std::string& authority = call.target.authority;
  Origin* origin = table_.FindOrAdd(authority, now);
  if (origin == nullptr) {
    return MakeError(Code::kBusy, "too many origins at once; " + authority + " was not asked");
  }
  ++origin->status.calls;
  switch (origin->queue.Push(call.id, call.request.priority, now)) {
    case OriginQueue::Admission::kQueued:
      table_.Touch(*origin, now);
      return {};
    case OriginQueue::Admission::kFull:
      ++origin->status.refused;
      return MakeError(Code::kBusy, authority + " has " + std::to_string(origin->queue.queued()) +
                                        " requests waiting already, no more are taken");
    case OriginQueue::Admission::kThrottled:
      break;
  }
  ++origin->status.refused;
  const Duration left = origin->queue.ThrottleLeft(now);
  Error error =
      MakeError(Code::kTooManyRequests,
                authority + " asked for fewer requests; read-ahead waits " + HumanDuration(left));
  error.retry_after_ms = ToMillis(left);
  return error;
}

void CurlMailbox::Cancel(CurlCallPtr call) {
  MutexLock lock(mu_);
  if (closed_) return;
  mail_.cancelled.push_back(std::move(call));
  Wake();
}

void CurlMailbox::Resume(CurlCallPtr call) {
  MutexLock lock(mu_);
  if (closed_) return;
  mail_.resumed.push_back(std::move(call));
  Wake();
}

void CurlMailbox::Raise(const CurlCall& call, Priority priority) {
  MutexLock lock(mu_);
  Origin* origin = table_.Find(call.target.authority);
  if (origin == nullptr || !origin->queue.Raise(call.id, priority)) return;
  table_.Touch(*origin, RealClock().Now());
  Wake();
}

bool CurlMailbox::Throttled(const std::string& authority) {
  MutexLock lock(mu_);
  const Origin* origin = table_.Find(authority);
  return origin != nullptr && origin->queue.Throttled(RealClock().Now());
}

std::vector<OriginStatus> CurlMailbox::Origins() {
  MutexLock lock(mu_);
  return table_.Snapshot(RealClock().Now());
}

void CurlMailbox::Stop() {
  MutexLock lock(mu_);
  mail_.stop = true;
  Wake();
}

void CurlMailbox::Attach(CURLM* multi) {
  MutexLock lock(mu_);
  multi_ = multi;
}

// One byte into a socket pair at most per Take, and never blocking: no wait under the lock.
void CurlMailbox::Wake() {
  if (awake_ || multi_ == nullptr) return;
  awake_ = true;
  curl_multi_wakeup(multi_);
}

CurlMailbox::Mail CurlMailbox::Take() {
  MutexLock lock(mu_);
  awake_ = false;
  Mail mail = std::exchange(mail_, Mail{});
  mail_.stop = mail.stop;
  return mail;
}

CurlMailbox::Mail CurlMailbox::Close() {
  MutexLock lock(mu_);
  closed_ = true;
  multi_ = nullptr;
  return std::exchange(mail_, Mail{});
}

CurlMailbox::Ready CurlMailbox::TakeReady() {
  MutexLock lock(mu_);
  Ready ready;
  ready.arrived.swap(mail_.arrived);
  table_.TakeReady(RealClock().Now(), &ready.start, &ready.refused);
  ready.wake_at = table_.WakeAt();
  return ready;
}

bool CurlMailbox::Remove(const CurlCall& call) {
  MutexLock lock(mu_);
  Origin* origin = table_.Find(call.target.authority);
  return origin != nullptr && origin->queue.Remove(call.id);
}

void CurlMailbox::Answered(Origin& origin, const OriginQueue::Slot& slot, const HttpHead& head) {
  std::optional<Duration> retry_after;
  if (head.status == 429 || head.status == 503) {
    if (const auto value = head.Find("retry-after")) {
      retry_after = ParseRetryAfter(*value, UnixSeconds(RealClock()));
    }
  }
  std::string authority;
  bool trouble = false;
  bool recovered = false;
  {
    MutexLock lock(mu_);
    const TimePoint now = RealClock().Now();
    origin.queue.OnAnswer(slot, head.status, retry_after, now, RealRandom());
    if (head.status >= 500) {
      trouble = table_.RecordError(origin, "answered " + std::to_string(head.status), now);
    } else {
      recovered = table_.RecordRecovery(origin);
    }
    if (trouble || recovered) authority = origin.status.authority;
    table_.Touch(origin, now);
  }
  if (trouble) LOG_WARN("{} answered {}; it is tried again", authority, head.status);
  if (recovered) LOG_INFO("{} answers again", authority);
}

void CurlMailbox::AddBytes(Origin& origin, uint64_t bytes) {
  MutexLock lock(mu_);
  origin.status.bytes += bytes;
}

void CurlMailbox::Release(Origin& origin, const OriginQueue::Slot& slot,
                          const std::string& failure) {
  std::string trouble;
  {
    MutexLock lock(mu_);
    const TimePoint now = RealClock().Now();
    if (!failure.empty() && table_.RecordError(origin, failure, now)) {
      trouble = origin.status.authority + " is out of reach: " + failure;
    }
    origin.queue.Release(slot);
    table_.Touch(origin, now);
  }
  if (!trouble.empty()) LOG_WARN("{}", trouble);
}

}  // namespace dartfs::core
