// What the tests of the HTTP client share: a sink that records, and a client with short timeouts.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/time.h"
#include "core/io/http_client.h"
#include "raw_server.h"

namespace dartfs::core {

class RecordingSink final : public HttpSink {
 public:
  // Set before the call starts.
  std::function<Status(const HttpHead&)> on_head;
  std::function<Result<BodyVerdict>(std::span<const std::byte>)> on_body;

  Status OnHead(const HttpHead& head) override {
    {
      MutexLock lock(mu_);
      EXPECT_FALSE(done_.has_value()) << "OnHead after OnDone";
      EXPECT_FALSE(head_.has_value()) << "OnHead twice";
      head_ = head;
    }
    return on_head ? on_head(head) : Status();
  }
  Result<BodyVerdict> OnBody(std::span<const std::byte> bytes) override {
    {
      MutexLock lock(mu_);
      EXPECT_FALSE(done_.has_value()) << "OnBody after OnDone";
      EXPECT_TRUE(head_.has_value()) << "OnBody before OnHead";
    }
    Result<BodyVerdict> verdict = on_body ? on_body(bytes) : BodyVerdict::kTaken;
    if (verdict && *verdict == BodyVerdict::kTaken) {
      MutexLock lock(mu_);
      body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    return verdict;
  }
  void OnDone(Status status) override {
    MutexLock lock(mu_);
    EXPECT_FALSE(done_.has_value()) << "OnDone twice";
    done_ = std::move(status);
    changed_.NotifyAll();
  }

  bool WaitDone(Duration timeout = std::chrono::seconds(20)) {
    const TimePoint end = RealClock().Now() + timeout;
    MutexLock lock(mu_);
    while (!done_) {
      const Duration left = end - RealClock().Now();
      if (left <= Duration::zero()) return false;
      changed_.WaitFor(mu_, left);
    }
    return true;
  }
  bool done() const {
    MutexLock lock(mu_);
    return done_.has_value();
  }
  bool has_head() const {
    MutexLock lock(mu_);
    return head_.has_value();
  }
  // After WaitDone.
  bool ok() const {
    MutexLock lock(mu_);
    return done_ && done_->has_value();
  }
  Error error() const {
    MutexLock lock(mu_);
    if (!done_ || *done_) return MakeError(Code::kInternal, "no error");
    return done_->error();
  }
  Code code() const { return error().code; }
  int status() const {
    MutexLock lock(mu_);
    return head_ ? head_->status : 0;
  }
  HttpHead head() const {
    MutexLock lock(mu_);
    return head_.value_or(HttpHead{});
  }
  std::string body() const {
    MutexLock lock(mu_);
    return body_;
  }

 private:
  mutable Mutex mu_;
  CondVar changed_;
  std::optional<HttpHead> head_ GUARDED_BY(mu_);
  std::string body_ GUARDED_BY(mu_);
  std::optional<Status> done_ GUARDED_BY(mu_);
};
using SinkPtr = std::shared_ptr<RecordingSink>;

class HttpClientTest : public ::testing::Test {
 protected:
  static HttpClientOptions Options() {
    HttpClientOptions options;
    options.use_environment_proxies = false;
    options.connect_timeout = std::chrono::seconds(5);
    return options;
  }
  void Make(HttpClientOptions options) {
    auto made = MakeHttpClient(std::move(options));
    ASSERT_TRUE(made) << made.error().context;
    client_ = std::move(made).value();
  }
  HttpClient& client() {
    if (client_ == nullptr) Make(Options());
    return *client_;
  }

  static HttpRequest Get(const std::string& url) {
    HttpRequest request;
    request.url = url;
    return request;
  }
  SinkPtr Start(HttpRequest request, std::shared_ptr<HttpCall>* call = nullptr) {
    auto sink = std::make_shared<RecordingSink>();
    auto started = client().Start(std::move(request), sink);
    if (call != nullptr) *call = started;
    return sink;
  }
  // Runs a call to its end.
  SinkPtr Fetch(HttpRequest request) {
    SinkPtr sink = Start(std::move(request));
    EXPECT_TRUE(sink->WaitDone());
    return sink;
  }
  SinkPtr Fetch(const std::string& url) { return Fetch(Get(url)); }

  OriginStatus StatusOf(const std::string& authority) {
    for (const OriginStatus& status : client().Origins()) {
      if (status.authority == authority) return status;
    }
    return {};
  }

  std::unique_ptr<HttpClient> client_;
};

inline std::string Ok(std::string_view body, std::string_view more_headers = "") {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(more_headers) + "\r\n" + std::string(body);
}
// Bytes whose every place can be told from the others.
inline std::string Pattern(size_t size, uint32_t seed = 1) {
  std::string bytes(size, '\0');
  uint32_t x = seed * 2654435761U + 1;
  for (char& c : bytes) {
    x = x * 1664525U + 1013904223U;
    c = static_cast<char>(x >> 24);
  }
  return bytes;
}

}  // namespace dartfs::core
