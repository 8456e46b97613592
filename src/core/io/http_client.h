// HttpClient: GETs and HEADs from origins (and peers), many at once, each a stream of bytes into a
// sink. Redirects, per-origin limits and the address policy live behind it; retries do not (a
// flight knows at which byte to go on).
//
// Life of a call: Start -> queued by origin and priority -> a connection -> head (final response:
// interim 1xx skipped, redirects followed where asked to) -> body -> done. Everything the sink
// hears comes from one transfer thread, in order; calls to one authority share that thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/io/origin_policy.h"

namespace dartfs::core {

// What somebody waits for goes before what somebody may want.
enum class Priority : uint8_t { kDemand = 0, kReadAhead = 1, kBackground = 2 };

struct HttpHeader {
  std::string name;
  std::string value;
  bool operator==(const HttpHeader&) const = default;
};

struct HttpRequest {
  std::string url;                  // as Url::ToString: http or https, no userinfo, no fragment
  std::string method = "GET";       // or HEAD: then no body comes, whatever the head says of one
  std::vector<HttpHeader> headers;  // beyond Host, User-Agent, Accept-Encoding: identity
  // Value of Authorization, or empty. Sent to the URL's own authority only: a redirect to another
  // one drops it, and every configured header with it.
  std::string authorization;
  Priority priority = Priority::kDemand;
  TimePoint deadline = kNoDeadline;  // of the whole call, its time in the queue included
  Duration first_byte_timeout = std::chrono::seconds(15);  // connected -> head, for each hop
  Duration stall_timeout = std::chrono::seconds(10);  // no body byte for so long: kDeadlineExceeded
  bool follow_redirects = true;                       // false: a redirect is an answer as any other
  int max_redirects = 10;
  // Of the program that a request is made for: sent before ours in User-Agent, cut to 1 KiB. Empty:
  // ours alone.
  std::string user_agent;
  // A client of the network has named the URL, nobody of this node: see
  // OriginPolicy::CheckUrlByProxy.
  bool untrusted_url = false;
};

struct HttpHead {
  int status = 0;
  std::vector<HttpHeader> headers;  // in order, names as sent
  std::string effective_url;        // after redirects; carries signatures: never log it as it is
  // What the redirects that were followed said of the object, which its last answer may not know
  // (huggingface.co sends one to a bucket): see NoteRedirect.
  std::vector<HttpHeader> redirect_headers;
  // The value of the only header of that name (any case); nullopt when absent or repeated with
  // unlike values.
  std::optional<std::string_view> Find(std::string_view name) const;
};

enum class BodyVerdict : uint8_t {
  kTaken,  // all bytes taken
  kPause,  // none taken; the same bytes come again after HttpCall::Resume
};

// Implementations must not block and must not call back into the HttpClient except through
// HttpCall.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // Once at most. An error ends the call with that error and closes the connection if body is due.
  virtual Status OnHead(const HttpHead& head) = 0;
  // `bytes` are valid during the call. An error ends the call.
  virtual Result<BodyVerdict> OnBody(std::span<const std::byte> bytes) = 0;
  // After the pieces that came at once: nothing follows for the moment. What OnBody took may be
  // passed on by now at the latest. Not after OnDone.
  virtual void OnPiecesEnd() {}
  // Exactly once, last. Success: the body was complete as framed (Content-Length, chunked, or
  // close-delimited). Also when cancelled (kCancelled) and when never started. May come from the
  // thread that calls HttpClient::Stop, else from a transfer thread; never on Start's stack.
  virtual void OnDone(Status status) = 0;
};

// A running call. Dropping it does not cancel. Any thread.
class HttpCall {
 public:
  virtual ~HttpCall() = default;
  virtual void Cancel() = 0;  // OnDone follows soon with kCancelled, unless it is done already
  virtual void Resume() = 0;  // after BodyVerdict::kPause
  virtual void Raise(Priority priority) = 0;  // while queued; never lowers
};

// For `dartfsctl status` and logs.
struct OriginStatus {
  std::string authority;  // scheme://host:port
  uint32_t active = 0;    // calls that hold a connection
  uint32_t queued = 0;
  int64_t throttled_ms = 0;  // how long 429/503 still holds us back, 0 when not
  uint64_t calls = 0;        // since start
  uint64_t failures = 0;     // transport errors and 5xx
  uint64_t bytes = 0;        // of bodies received
  std::string last_error;    // text for people, empty when there was none
  int64_t last_error_age_ms = -1;
  uint64_t refused = 0;  // calls not let in: queue full, or read-ahead while throttled
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Does not block. A queue that is full, a URL or address refused by policy, a host that does not
  // resolve: OnDone with kBusy, kRefused, kUnavailable. HTTP statuses are not errors here.
  // While an origin throttles (429, or 503 with Retry-After), calls of kReadAhead and kBackground
  // to it end with kTooManyRequests at once; kDemand calls wait until it may be asked again.
  virtual std::shared_ptr<HttpCall> Start(HttpRequest request, std::shared_ptr<HttpSink> sink) = 0;
  // True while read-ahead to this authority would be refused.
  virtual bool Throttled(const std::string& authority) = 0;
  virtual std::vector<OriginStatus> Origins() = 0;
  // For all requests from now on, also over connections that are there already. What runs goes on.
  virtual void SetOriginPolicy(OriginPolicy policy) = 0;
  // Cancels all, waits for the transfer threads. Twice is fine; Start afterwards gives kCancelled.
  virtual void Stop() = 0;
};

struct HttpClientOptions {
  size_t threads = 2;
  // By the authority of the call's first URL; a redirected call keeps its place there, wherever it
  // went, and what it is answered counts there too. Read-ahead leaves two of them to demand.
  size_t connections_per_origin = 16;
  size_t queue_per_origin = 4096;
  size_t max_origins = 1024;  // table size; idle ones are forgotten first
  Duration connect_timeout = std::chrono::seconds(5);
  Duration idle_timeout = std::chrono::seconds(60);  // of kept-alive connections
  Duration max_throttle = std::chrono::seconds(60);  // a longer Retry-After is cut to this
  std::string user_agent = "dartfs/" DARTFS_VERSION;
  std::string via;                      // value of Via, so that a loop of proxies is seen; or empty
  std::string ca_file;                  // empty: the system's
  bool use_environment_proxies = true;  // http_proxy, https_proxy, no_proxy
  OriginPolicy origin_policy;
  // Lifts the address policy's default refusals. They are about the address connected to, which
  // with a proxy is the proxy's: the origin's is judged then only where the URL's host is one.
  bool allow_link_local = false;
};

// The libcurl client (curl_client.cc).
Result<std::unique_ptr<HttpClient>> MakeHttpClient(HttpClientOptions options);

}  // namespace dartfs::core
