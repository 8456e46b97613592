// FakeHttpClient: an HttpClient whose answers the test gives by hand, on the test's own thread.
//
//   FakeHttpClient http;                        // or http(&scheduler): cancellations come as tasks
//   ... code under test starts a request ...
//   auto call = http.Take();                    // oldest call not yet taken; CHECKs there is one
//   call->request().headers; call->Header("range");
//   call->Head(206, {{"Content-Range", "bytes 0-3/4"}, {"Content-Length", "4"}});
//   call->Body("abcd");
//   call->Done();                               // or Done(MakeError(Code::kUnavailable, "reset"))
//   call->AnswerRange(object, "\"etag\"");      // all of that, as a good origin would
//
// It keeps the contract of http_client.h: OnDone exactly once and last; an error from the sink ends
// the call with that error; Cancel leads to OnDone(kCancelled), never on Cancel's stack: a task of
// the scheduler, or DeliverCancellations() where there is none. No callback runs under a lock.
// Thread-safe; one thread at a time may answer one call.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/text.h"
#include "core/io/http_client.h"

namespace dartfs::core {

class FakeHttpClient final : public HttpClient {
 public:
  class Call final : public HttpCall, public std::enable_shared_from_this<Call> {
   public:
    Call(HttpRequest request, std::shared_ptr<HttpSink> sink, Scheduler* scheduler)
        : request_(std::move(request)),
          scheduler_(scheduler),
          sink_(std::move(sink)),
          priority_(request_.priority) {}

    // What the code under test sees.
    void Cancel() override {
      {
        MutexLock lock(mu_);
        if (cancelled_ || sink_ == nullptr) return;
        cancelled_ = true;
      }
      if (scheduler_ != nullptr) {
        scheduler_->Post([self = shared_from_this()] { self->DeliverCancellation(); });
      }
    }
    void Resume() override {
      MutexLock lock(mu_);
      ++resumes_;
      paused_ = false;
    }
    void Raise(Priority priority) override {
      MutexLock lock(mu_);
      priority_ = std::min(priority_, priority);
    }

    // What the test looks at.
    const HttpRequest& request() const { return request_; }
    // The request's header of that name, any case; empty when absent.
    std::string Header(std::string_view name) const {
      for (const HttpHeader& header : request_.headers) {
        if (EqualsIgnoreCase(header.name, name)) return header.value;
      }
      return "";
    }
    bool cancelled() const {
      MutexLock lock(mu_);
      return cancelled_;
    }
    bool done() const {
      MutexLock lock(mu_);
      return sink_ == nullptr;
    }
    bool paused() const {
      MutexLock lock(mu_);
      return paused_;
    }
    int resumes() const {
      MutexLock lock(mu_);
      return resumes_;
    }
    Priority priority() const {
      MutexLock lock(mu_);
      return priority_;
    }

    // What the test answers. After the call's end (also by Cancel) these do nothing and say
    // kCancelled. `effective_url` empty: the URL that was asked for.
    Status Head(int status, std::vector<HttpHeader> headers, std::string effective_url = "",
                std::vector<HttpHeader> redirect_headers = {}) {
      std::shared_ptr<HttpSink> sink = Live();
      if (sink == nullptr) return MakeError(Code::kCancelled, "fake call is over");
      HttpHead head;
      head.status = status;
      head.headers = std::move(headers);
      head.effective_url = effective_url.empty() ? request_.url : std::move(effective_url);
      head.redirect_headers = std::move(redirect_headers);
      Status verdict = sink->OnHead(head);
      if (!verdict) Finish(verdict);
      return verdict;
    }
    // kPause: none was taken; give the same bytes again when paused() is false.
    Result<BodyVerdict> Body(std::string_view bytes) {
      std::shared_ptr<HttpSink> sink = Live();
      if (sink == nullptr) return MakeError(Code::kCancelled, "fake call is over");
      {
        // Before the callback: a Resume may come from another thread while OnBody still runs.
        MutexLock lock(mu_);
        paused_ = true;
      }
      Result<BodyVerdict> verdict = sink->OnBody(std::as_bytes(std::span(bytes)));
      sink->OnPiecesEnd();
      if (!verdict) {
        Finish(verdict.error());
      } else if (*verdict == BodyVerdict::kTaken) {
        MutexLock lock(mu_);
        paused_ = false;
      }
      return verdict;
    }
    void Done(Status status = {}) { Finish(std::move(status)); }

    // Answers `bytes=a-b`, `bytes=a-` or no Range from `object` as a right origin would (206, 200
    // or 416), in pieces of `step` bytes, then Done. Where the sink pauses, Pump() goes on later.
    void AnswerRange(std::string_view object, const std::string& etag, size_t step = 256 * 1024) {
      const std::string total = std::to_string(object.size());
      std::vector<HttpHeader> headers;
      if (!etag.empty()) headers.push_back({"ETag", etag});
      uint64_t first = 0;
      uint64_t last = object.empty() ? 0 : object.size() - 1;
      const bool ranged = ParseRange(&first, &last);
      if (ranged && first >= object.size()) {
        headers.push_back({"Content-Range", "bytes */" + total});
        headers.push_back({"Content-Length", "0"});
        if (Head(416, headers)) Done();
        return;
      }
      last = std::min<uint64_t>(last, object.empty() ? 0 : object.size() - 1);
      pending_ = std::string(object.substr(first, object.empty() ? 0 : last - first + 1));
      pending_step_ = step;
      if (ranged) {
        headers.push_back({"Content-Range", "bytes " + std::to_string(first) + "-" +
                                                std::to_string(last) + "/" + total});
      }
      headers.push_back({"Content-Length", std::to_string(pending_.size())});
      if (Head(ranged ? 206 : 200, headers)) Pump();
    }
    // Sends what AnswerRange still has to send, up to the next pause. True when the call is over.
    bool Pump() {
      while (!pending_.empty() && !done() && !paused()) {
        Result<BodyVerdict> verdict = Body(std::string_view(pending_).substr(0, pending_step_));
        if (!verdict) return true;
        if (*verdict == BodyVerdict::kPause) continue;
        pending_.erase(0, std::min(pending_step_, pending_.size()));
      }
      if (pending_.empty()) Done();
      return done();
    }

   private:
    friend class FakeHttpClient;

    void DeliverCancellation() {
      if (cancelled()) End(MakeError(Code::kCancelled, "cancelled"));
    }
    void Finish(Status status) {
      if (cancelled()) status = MakeError(Code::kCancelled, "cancelled");
      End(std::move(status));
    }
    void End(Status status) {
      std::shared_ptr<HttpSink> sink;
      {
        MutexLock lock(mu_);
        sink = std::exchange(sink_, nullptr);
      }
      if (sink != nullptr) sink->OnDone(std::move(status));
    }
    // The sink, unless the call is over or cancelled.
    std::shared_ptr<HttpSink> Live() const {
      MutexLock lock(mu_);
      return cancelled_ ? nullptr : sink_;
    }
    bool ParseRange(uint64_t* first, uint64_t* last) const {
      const std::string range = Header("range");
      const std::string_view prefix = "bytes=";
      if (range.compare(0, prefix.size(), prefix) != 0) return false;
      const std::string_view spec = std::string_view(range).substr(prefix.size());
      const size_t dash = spec.find('-');
      DARTFS_CHECK(dash != std::string_view::npos);
      const auto from = ParseUint(spec.substr(0, dash));
      DARTFS_CHECK(from.has_value());
      *first = *from;
      if (dash + 1 < spec.size()) {
        const auto to = ParseUint(spec.substr(dash + 1));
        DARTFS_CHECK(to.has_value());
        *last = *to;
      }
      return true;
    }

    const HttpRequest request_;
    Scheduler* const scheduler_;
    mutable Mutex mu_;  // last: no other lock is taken, no callback made under it
    std::shared_ptr<HttpSink> sink_ GUARDED_BY(mu_);  // null when done
    Priority priority_ GUARDED_BY(mu_);
    bool cancelled_ GUARDED_BY(mu_) = false;
    bool paused_ GUARDED_BY(mu_) = false;
    int resumes_ GUARDED_BY(mu_) = 0;
    // Of the answering thread.
    std::string pending_;
    size_t pending_step_ = 1;
  };

  // With `scheduler`, a Cancel is delivered by a task of it; it must outlive the fake's use.
  explicit FakeHttpClient(Scheduler* scheduler = nullptr) : scheduler_(scheduler) {}

  std::shared_ptr<HttpCall> Start(HttpRequest request, std::shared_ptr<HttpSink> sink) override {
    auto call = std::make_shared<Call>(std::move(request), std::move(sink), scheduler_);
    bool stopped = false;
    {
      MutexLock lock(mu_);
      all_.push_back(call);
      stopped = stopped_;
      if (!stopped) waiting_.push_back(call);
      arrived_.NotifyAll();
    }
    if (stopped) call->Cancel();
    return call;
  }
  bool Throttled(const std::string& authority) override {
    MutexLock lock(mu_);
    return throttled_.count(authority) > 0;
  }
  std::vector<OriginStatus> Origins() override {
    MutexLock lock(mu_);
    return origins_;
  }
  void SetOriginPolicy(OriginPolicy) override {}
  void Stop() override {
    std::vector<std::shared_ptr<Call>> all;
    {
      MutexLock lock(mu_);
      stopped_ = true;
      all = all_;
      waiting_.clear();
    }
    for (const auto& call : all) {
      call->Cancel();
      call->DeliverCancellation();
    }
  }

  // The oldest call that was not taken yet; CHECKs that there is one.
  std::shared_ptr<Call> Take() {
    std::shared_ptr<Call> call = TryTake();
    DARTFS_CHECK(call != nullptr);
    return call;
  }
  std::shared_ptr<Call> TryTake() {
    MutexLock lock(mu_);
    return PopLocked();
  }
  // Waits for one (code under test on other threads); null after `timeout`.
  std::shared_ptr<Call> WaitTake(Duration timeout = std::chrono::seconds(10)) {
    const TimePoint end = RealClock().Now() + timeout;
    MutexLock lock(mu_);
    while (waiting_.empty()) {
      const Duration left = end - RealClock().Now();
      if (left <= Duration::zero()) return nullptr;
      arrived_.WaitFor(mu_, left);
    }
    return PopLocked();
  }
  size_t waiting() const {
    MutexLock lock(mu_);
    return waiting_.size();
  }
  // Every call ever started, in order.
  std::vector<std::shared_ptr<Call>> all() const {
    MutexLock lock(mu_);
    return all_;
  }
  size_t started() const { return all().size(); }

  // OnDone(kCancelled) for all cancelled calls; returns how many there were.
  size_t DeliverCancellations() {
    size_t delivered = 0;
    for (const auto& call : all()) {
      if (call->done() || !call->cancelled()) continue;
      call->DeliverCancellation();
      ++delivered;
    }
    return delivered;
  }
  void SetThrottled(const std::string& authority, bool throttled) {
    MutexLock lock(mu_);
    if (throttled) {
      throttled_.insert(authority);
    } else {
      throttled_.erase(authority);
    }
  }
  void SetOrigins(std::vector<OriginStatus> origins) {
    MutexLock lock(mu_);
    origins_ = std::move(origins);
  }

 private:
  std::shared_ptr<Call> PopLocked() REQUIRES(mu_) {
    if (waiting_.empty()) return nullptr;
    std::shared_ptr<Call> call = waiting_.front();
    waiting_.pop_front();
    return call;
  }

  Scheduler* const scheduler_;
  mutable Mutex mu_;  // before Call::mu_
  CondVar arrived_;
  std::vector<std::shared_ptr<Call>> all_ GUARDED_BY(mu_);
  std::deque<std::shared_ptr<Call>> waiting_ GUARDED_BY(mu_);
  std::set<std::string> throttled_ GUARDED_BY(mu_);
  std::vector<OriginStatus> origins_ GUARDED_BY(mu_);
  bool stopped_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
