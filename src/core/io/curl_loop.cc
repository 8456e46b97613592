#include "core/io/curl_loop.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/thread.h"

namespace dartfs::core {
namespace {

// Idle connections kept for all origins of a thread together.
constexpr long kIdleConnections = 256;
// Bounds a sleep in which nothing is due; any event ends it.
constexpr Duration kLongestSleep = std::chrono::seconds(60);

}  // namespace

Result<std::unique_ptr<CurlLoop>> CurlLoop::Create(const std::string& name,
                                                   const HttpClientOptions& options,
                                                   const CurrentOriginPolicy& policy) {
  CURLM* multi = curl_multi_init();
  if (multi == nullptr) return MakeError(Code::kInternal, "libcurl: no multi handle");
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, kIdleConnections);
  curl_multi_setopt(multi, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  std::unique_ptr<CurlLoop> loop(new CurlLoop(multi, options, policy));
  loop->mailbox_->Attach(multi);
  loop->thread_ = StartThread(name, [raw = loop.get()] { raw->Run(); });
  return loop;
}

CurlLoop::CurlLoop(CURLM* multi, const HttpClientOptions& options,
                   const CurrentOriginPolicy& policy)
    : mailbox_(std::make_shared<CurlMailbox>(options)),
      multi_(multi),
      shared_{options, policy,   *mailbox_,
              multi,   sockets_, CurlEasyPool(options, CurlTransfer::Callbacks(sockets_)),
              {},      {}} {}

CurlLoop::~CurlLoop() { Stop(); }

void CurlLoop::Stop() {
  mailbox_->Stop();
  if (thread_.joinable()) thread_.join();
}

void CurlLoop::Run() {
  while (HandleMail(mailbox_->Take())) {
    StartReady();
    int running = 0;
    const CURLMcode rc = curl_multi_perform(multi_.get(), &running);
    if (rc != CURLM_OK) LOG_ERROR("HTTP client: libcurl: {}", curl_multi_strerror(rc));
    EndPieces();
    HandleChanged();
    ReadMessages();
    FireTimers();
    StartReady();
    Sleep();
  }
  CancelAll();
}

bool CurlLoop::HandleMail(CurlMailbox::Mail mail) {
  for (auto& arrival : mail.arrived) Arrive(std::move(arrival));
  for (const auto& call : mail.cancelled) {
    if (CurlTransfer* transfer = Find(call->id)) {
      transfer->Cancel();
      Settle(*transfer);
    }
  }
  for (const auto& call : mail.resumed) {
    if (CurlTransfer* transfer = Find(call->id)) {
      transfer->Resume();
      Settle(*transfer);
    }
  }
  return !mail.stop;
}

void CurlLoop::Arrive(CurlMailbox::Arrival arrival) {
  if (!arrival.admitted) {
    arrival.call->Done(std::move(arrival.admitted));
    return;
  }
  const uint64_t id = arrival.call->id;
  auto transfer = std::make_unique<CurlTransfer>(shared_, std::move(arrival.call));
  CurlTransfer& added = *transfer;
  transfers_.emplace(id, std::move(transfer));
  Settle(added);
}

CurlTransfer* CurlLoop::Find(uint64_t id) {
  const auto found = transfers_.find(id);
  return found == transfers_.end() ? nullptr : found->second.get();
}

void CurlLoop::StartReady() {
  CurlMailbox::Ready ready = mailbox_->TakeReady();
  for (auto& arrival : ready.arrived) Arrive(std::move(arrival));
  for (const uint64_t id : ready.refused) {
    if (CurlTransfer* transfer = Find(id)) {
      transfer->Refuse();
      Settle(*transfer);
    }
  }
  for (const OriginTable::Ready& next : ready.start) {
    CurlTransfer* transfer = Find(next.slot.id);
    DARTFS_CHECK(transfer != nullptr);  // who ends in the queue leaves it first
    transfer->Start(next);
    Settle(*transfer);
  }
  throttle_ends_at_ = ready.wake_at;
}

void CurlLoop::ReadMessages() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    void* owner = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
    auto& transfer = *static_cast<CurlTransfer*>(owner);
    transfer.OnCurlDone(code);
    Settle(transfer);
  }
}

void CurlLoop::EndPieces() {
  for (CurlTransfer* transfer : std::exchange(shared_.fed, {})) transfer->EndPieces();
}

void CurlLoop::HandleChanged() {
  for (CurlTransfer* transfer : std::exchange(shared_.changed, {})) {
    transfer->DeliverEarlyEnd();
    Settle(*transfer);
  }
}

void CurlLoop::FireTimers() {
  const TimePoint now = RealClock().Now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    CurlTransfer& transfer = *timers_.begin()->second;
    transfer.OnTimer(now);
    Settle(transfer);
  }
}

// After every step of a transfer: forgets it when it is over, else sets its timer.
void CurlLoop::Settle(CurlTransfer& transfer) {
  timers_.erase({transfer.armed_at, &transfer});
  if (transfer.over()) {
    std::erase(shared_.changed, &transfer);
    std::erase(shared_.fed, &transfer);
    transfers_.erase(transfer.id());
    return;
  }
  transfer.armed_at = transfer.NextTimer();
  if (transfer.armed_at != kNoDeadline) timers_.insert({transfer.armed_at, &transfer});
}

void CurlLoop::Sleep() {
  TimePoint until = RealClock().Now() + kLongestSleep;
  if (!timers_.empty()) until = std::min(until, timers_.begin()->first);
  if (throttle_ends_at_) until = std::min(until, *throttle_ends_at_);
  const Duration left = std::max(until - RealClock().Now(), Duration::zero());
  // Rounded up, or the last fraction of a millisecond would be spent spinning.
  const int64_t ms = ToMillis(left + std::chrono::microseconds(999));
  const CURLMcode rc = curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(ms), nullptr);
  if (rc != CURLM_OK) LOG_ERROR("HTTP client: libcurl: {}", curl_multi_strerror(rc));
}

void CurlLoop::CancelAll() {
  for (auto& arrival : mailbox_->Close().arrived) Arrive(std::move(arrival));
  while (!transfers_.empty()) {
    CurlTransfer& transfer = *transfers_.begin()->second;
    transfer.Cancel();
    Settle(transfer);
  }
}

}  // namespace dartfs::core
