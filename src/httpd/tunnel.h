// TunnelHandler: CONNECT (RFC 9110 section 9.3.6): bytes between a client and a port that the
// operator has named, through whatever keeps the client from connecting by itself. Nothing of them
// is looked at or kept.
//
// Where to is judged like any origin, by the name that was asked for and by each address it leads
// to, and the address that was judged is the one connected to. A proxy of the environment
// (https_proxy) is for this node's own requests: tunnels connect directly.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/base/time.h"
#include "core/io/origin_policy.h"
#include "httpd/exchange.h"
#include "httpd/tunnel_relay.h"

namespace dartfs::httpd {

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t length = 0;
};

// The addresses of a name, in the order they are to be tried; an IPv6 address stands without
// brackets. Blocks. kUnavailable: there are none.
using ResolveName =
    std::function<core::Result<std::vector<SocketAddress>>(const std::string& host, uint16_t port)>;
// By getaddrinfo.
core::Result<std::vector<SocketAddress>> ResolveByHost(const std::string& host, uint16_t port);

struct TunnelOptions {
  std::vector<uint16_t> ports;  // that may be connected to
  core::OriginPolicy policy;
  size_t tunnels = 256;  // at once, with those being made; more are answered 503
  core::Duration resolve_time = std::chrono::seconds(10);
  core::Duration connect_time = std::chrono::seconds(5);  // for all addresses together
  TunnelLimits limits;
  ResolveName resolve = ResolveByHost;
};

class TunnelHandler final : public Handler {
 public:
  // `resolvers` runs as many lookups at once as it has threads, which block in them; nothing else
  // may need it. `timers` is an ordinary one. Both outlive it.
  TunnelHandler(TunnelOptions options, core::Scheduler& resolvers, core::Scheduler& timers);
  ~TunnelHandler() override;  // Stop; no lookup runs any more

  // 200 and a tunnel; 400: no authority-form; 403: the port, the name or all its addresses are
  // refused; 502: none could be connected to; 503: too many; 504: not in time.
  void Handle(ExchangePtr exchange) override;
  const TunnelCounts& counts() const { return *counts_; }
  // For requests from now on; tunnels that are open stay. Any thread.
  void SetPolicy(core::OriginPolicy policy);
  // Gives up what is being connected, and takes none any more; tunnels end with their server. After
  // Server::Drain, before Server::Stop. Twice is fine.
  void Stop();

 private:
  class Attempt;
  class Attempts;

  std::shared_ptr<const core::OriginPolicy> policy() const;

  const std::shared_ptr<const TunnelOptions> options_;
  mutable core::Mutex mu_;  // leaf
  std::shared_ptr<const core::OriginPolicy> policy_ GUARDED_BY(mu_);
  core::Scheduler& resolvers_;
  core::Scheduler& timers_;
  const std::shared_ptr<TunnelCounts> counts_ = std::make_shared<TunnelCounts>();
  const std::shared_ptr<Attempts> attempts_;
};

}  // namespace dartfs::httpd
