#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/io/curl_easy.h"
#include "core/io/curl_loop.h"
#include "core/io/curl_mailbox.h"
#include "core/io/http_client.h"
#include "core/io/http_redirect.h"
#include "core/io/origin_policy.h"

namespace dartfs::core {
namespace {

// Ends the calls that come after Stop, when no transfer thread is left to do it.
class LateEnds final {
 public:
  ~LateEnds() {
    {
      MutexLock lock(mu_);
      over_ = true;
      changed_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }
  void Push(CurlCallPtr call) {
    MutexLock lock(mu_);
    if (!thread_.joinable()) thread_ = StartThread("http-late", [this] { Run(); });
    calls_.push_back(std::move(call));
    changed_.NotifyAll();
  }

 private:
  void Run() {
    while (true) {
      std::vector<CurlCallPtr> calls;
      {
        MutexLock lock(mu_);
        while (calls_.empty() && !over_) changed_.Wait(mu_);
        if (calls_.empty()) return;
        calls.swap(calls_);
      }
      for (const auto& call : calls) {
        call->Done(MakeError(Code::kCancelled, "the HTTP client has stopped"));
      }
    }
  }

  Mutex mu_;
  CondVar changed_;
  bool over_ GUARDED_BY(mu_) = false;
  std::vector<CurlCallPtr> calls_ GUARDED_BY(mu_);
  std::thread thread_;  // set under mu_, joined by the destructor
};

OriginPolicy WithOptions(OriginPolicy policy, const HttpClientOptions& options) {
  policy.allow_link_local = options.allow_link_local;
  return policy;
}

class CurlClient final : public HttpClient {
 public:
  explicit CurlClient(HttpClientOptions options)
      : options_(std::move(options)), policy_(WithOptions(options_.origin_policy, options_)) {}
  ~CurlClient() override { Stop(); }

  Status Init() {
    TRY(CurlGlobalInit());
    if (!options_.ca_file.empty() && access(options_.ca_file.c_str(), R_OK) != 0) {
      return ErrnoError(errno, "certificates " + options_.ca_file);
    }
    for (size_t i = 0; i < std::max<size_t>(options_.threads, 1); ++i) {
      TRY_ASSIGN(auto loop, CurlLoop::Create("http-" + std::to_string(i), options_, policy_));
      loops_.push_back(std::move(loop));
    }
    return {};
  }

  std::shared_ptr<HttpCall> Start(HttpRequest request, std::shared_ptr<HttpSink> sink) override {
    CurlCall::Target target;
    Status refusal;
    if (Result<HttpHop> hop = FirstHop(request)) {
      target.hop = std::move(hop).value();
      target.authority = target.hop.url.Authority();
    } else {
      refusal = std::move(hop).error();
    }
    const auto& mailbox = LoopFor(target.authority).mailbox();
    auto call =
        std::make_shared<CurlCall>(next_id_.fetch_add(1, std::memory_order_relaxed),
                                   std::move(request), std::move(target), std::move(sink), mailbox);
    if (!mailbox->Push(call, std::move(refusal))) late_.Push(call);
    return call;
  }

  bool Throttled(const std::string& authority) override {
    return LoopFor(authority).mailbox()->Throttled(authority);
  }

  std::vector<OriginStatus> Origins() override {
    std::vector<OriginStatus> all;
    for (const auto& loop : loops_) {
      auto some = loop->mailbox()->Origins();
      std::move(some.begin(), some.end(), std::back_inserter(all));
    }
    return all;
  }

  void SetOriginPolicy(OriginPolicy policy) override {
    policy_.Set(WithOptions(std::move(policy), options_));
  }

  void Stop() override {
    MutexLock lock(stop_mu_);
    for (const auto& loop : loops_) loop->mailbox()->Stop();
    for (const auto& loop : loops_) loop->Stop();
  }

 private:
  CurlLoop& LoopFor(const std::string& authority) {
    return *loops_[std::hash<std::string>{}(authority) % loops_.size()];
  }

  const HttpClientOptions options_;
  CurrentOriginPolicy policy_;
  LateEnds late_;
  std::vector<std::unique_ptr<CurlLoop>> loops_;  // fixed after Init
  std::atomic<uint64_t> next_id_{1};
  Mutex stop_mu_;  // one stopper at a time; held over the join, nobody else takes it
};

}  // namespace

Result<std::unique_ptr<HttpClient>> MakeHttpClient(HttpClientOptions options) {
  auto client = std::make_unique<CurlClient>(std::move(options));
  TRY(client->Init());
  return std::unique_ptr<HttpClient>(std::move(client));
}

}  // namespace dartfs::core
