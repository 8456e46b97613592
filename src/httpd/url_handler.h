// UrlHandler: the doors that lead to any URL: the prefix API, a fixed origin, the forward proxy.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/engine.h"
#include "httpd/door.h"
#include "httpd/exchange.h"
#include "httpd/object_answer.h"
#include "httpd/requester_memo.h"

namespace dartfs::httpd {

// Hosts by name: "host", "host:port", "*.domain". Pure.
class HostPatterns {
 public:
  explicit HostPatterns(std::vector<std::string> patterns = {}) : patterns_(std::move(patterns)) {}
  bool Match(const core::Url& url) const;
  bool empty() const { return patterns_.empty(); }

 private:
  std::vector<std::string> patterns_;
};

struct UrlHandlerOptions {
  std::string prefix = "dart";  // of Door::kPrefix, for redirects that are passed on
  std::string origin;        // of Door::kFixedOrigin: an absolute URL; its path stands before all
  HostPatterns proxy_https;  // plain-text proxy requests of them are asked for by https
  HostPatterns pass_redirects;  // their redirects are the client's to follow
  core::Duration ttl = std::chrono::seconds(60);
  bool immutable = false;
  core::Duration timeout = std::chrono::seconds(60);  // until an object is known
};

// Counts of what was relayed as it is, for metrics.
struct RelayCounts {
  std::atomic<uint64_t> range_blind{0};  // answers
  std::atomic<uint64_t> bytes{0};        // of those
};

class UrlHandler {
 public:
  // All outlive it.
  UrlHandler(core::Engine& engine, UrlHandlerOptions options, RelayCounts& counts);

  // `knock.door` is one of the three. On an event thread.
  void Handle(ExchangePtr exchange, const Knock& knock) const;

 private:
  struct Asked;
  core::Result<core::Url> UrlOf(const Knock& knock) const;
  core::Result<std::shared_ptr<const core::Requester>> RequesterOf(const Request& request,
                                                                   const Knock& knock) const;
  void Open(Asked asked) const;
  void OnOpened(Asked asked, core::Result<std::shared_ptr<core::Object>> result) const;
  void Relay(Asked asked, bool follow_redirects) const;

  core::Engine& engine_;
  const UrlHandlerOptions options_;
  RelayCounts& counts_;
  mutable RequesterMemo memo_;
};

}  // namespace dartfs::httpd
