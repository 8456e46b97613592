// What callers' threads and one transfer thread share: the calls themselves, and a mailbox with the
// origins' queues. Outlives the transfer thread as long as anybody holds a call.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/io/http_client.h"
#include "core/io/http_redirect.h"
#include "core/io/origin_table.h"

namespace dartfs::core {

class CurlMailbox;

class CurlCall final : public HttpCall, public std::enable_shared_from_this<CurlCall> {
 public:
  struct Target {
    HttpHop hop;
    std::string authority;
  };
  CurlCall(uint64_t call_id, HttpRequest asked, Target first, std::shared_ptr<HttpSink> sink,
           std::shared_ptr<CurlMailbox> mailbox);

  void Cancel() override;
  void Resume() override;
  void Raise(Priority priority) override;

  const uint64_t id;
  const HttpRequest request;
  const Target target;
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // Of the thread that answers, one at a time: the transfer thread, or who stops the client.
  HttpSink& sink() { return *sink_; }
  void Done(Status status);  // hands OnDone over, and lets go of the sink
  bool done() const { return sink_ == nullptr; }

 private:
  std::shared_ptr<HttpSink> sink_;
  const std::shared_ptr<CurlMailbox> mailbox_;
  std::atomic<bool> cancelled_{false};
};
using CurlCallPtr = std::shared_ptr<CurlCall>;

class CurlMailbox final {
 public:
  using Origin = OriginTable::Origin;
  struct Arrival {
    CurlCallPtr call;
    Status admitted;  // an error: to be told, nothing else
  };
  struct Mail {
    std::vector<Arrival> arrived;
    std::vector<CurlCallPtr> cancelled;
    std::vector<CurlCallPtr> resumed;
    bool stop = false;
  };
  struct Ready {
    std::vector<Arrival> arrived;  // first: `start` may name them
    std::vector<OriginTable::Ready> start;
    std::vector<uint64_t> refused;  // read-ahead that a throttle ended
    std::optional<TimePoint> wake_at;
  };

  explicit CurlMailbox(const HttpClientOptions& options);

  // Any thread. Push is false once closed; `refusal` sends the call straight to its end.
  bool Push(CurlCallPtr call, Status refusal);
  void Cancel(CurlCallPtr call);
  void Resume(CurlCallPtr call);
  void Raise(const CurlCall& call, Priority priority);
  bool Throttled(const std::string& authority);
  std::vector<OriginStatus> Origins();
  void Stop();

  // The transfer thread.
  void Attach(CURLM* multi);  // who is woken; null before that ends
  Mail Take();
  Mail Close();  // the last mail; Push is false from now on
  Ready TakeReady();
  bool Remove(const CurlCall& call);
  void Answered(Origin& origin, const OriginQueue::Slot& slot, const HttpHead& head);
  void AddBytes(Origin& origin, uint64_t bytes);
  // `failure` empty: none worth counting.
  void Release(Origin& origin, const OriginQueue::Slot& slot, const std::string& failure);

 private:
  Status Admit(const CurlCall& call) REQUIRES(mu_);
  void Wake() REQUIRES(mu_);

  Mutex mu_;  // last: no other lock is taken under it
  OriginTable table_ GUARDED_BY(mu_);
  Mail mail_ GUARDED_BY(mu_);
  CURLM* multi_ GUARDED_BY(mu_) = nullptr;
  bool awake_ GUARDED_BY(mu_) = false;  // woken since the last Take
  bool closed_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
