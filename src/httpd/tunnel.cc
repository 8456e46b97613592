#include "httpd/tunnel.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/text.h"
#include "core/base/url.h"
#include "httpd/event_loop.h"

namespace dartfs::httpd {
namespace {

using core::Code;
using core::Error;
using core::MakeError;
using core::Result;

constexpr size_t kHostBytes = 255;
constexpr size_t kAddresses = 16;  // of one name that are looked at
// However many there are, one that does not answer is given so long.
constexpr core::Duration kLeastConnectTime = std::chrono::milliseconds(500);

Error BadAuthority(std::string_view target) {
  return MakeError(Code::kInvalidArgument, "CONNECT " + core::EscapeForeign(target, kHostBytes) +
                                               ": write host:port, such as origin.example:443");
}

// "host:port" (RFC 9112 section 3.2.3), as a URL whose host and port those are.
Result<core::Url> ParseAuthority(std::string_view target) {
  const size_t colon = target.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon > kHostBytes) {
    return BadAuthority(target);
  }
  auto url = core::ParseUrl("https://" + std::string(target) + "/");
  if (!url || url->port.empty() || url->path != "/" || url->query) return BadAuthority(target);
  if (url->host.size() + 1 + url->port.size() != target.size()) return BadAuthority(target);
  return url;
}

std::string PlaceOf(const core::Url& url) {
  return url.host + ":" + std::to_string(url.EffectivePort());
}

std::string Listed(const std::vector<uint16_t>& ports) {
  std::string text;
  for (const uint16_t port : ports) text += (text.empty() ? "" : ", ") + std::to_string(port);
  return text;
}

std::string WithoutBrackets(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

// Connecting, or connected already; an errno.
Result<core::UniqueFd> BeginConnect(const SocketAddress& address) {
  const auto& plain = reinterpret_cast<const sockaddr&>(address.bytes);
  core::UniqueFd fd(
      socket(plain.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!fd.valid()) return core::ErrnoError(errno, "connecting");
  const int one = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  if (connect(fd.get(), &plain, address.length) != 0 && errno != EINPROGRESS) {
    return core::ErrnoError(errno, "connecting");
  }
  return fd;
}

}  // namespace

Result<std::vector<SocketAddress>> ResolveByHost(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) {
    return MakeError(Code::kUnavailable,
                     std::string("the name is not resolved: ") + gai_strerror(failed));
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    SocketAddress address;
    if (at->ai_addrlen > sizeof address.bytes) continue;
    std::memcpy(&address.bytes, at->ai_addr, at->ai_addrlen);
    address.length = at->ai_addrlen;
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  return addresses;
}

// Those under way, which it keeps alive. Any thread.
class TunnelHandler::Attempts {
 public:
  // False: none is begun any more.
  bool Add(std::shared_ptr<Attempt> attempt) {
    core::MutexLock lock(mu_);
    if (!stopped_) all_.insert(std::move(attempt));
    return !stopped_;
  }
  void Remove(const std::shared_ptr<Attempt>& attempt) {
    core::MutexLock lock(mu_);
    all_.erase(attempt);
  }
  std::unordered_set<std::shared_ptr<Attempt>> Stop() {
    core::MutexLock lock(mu_);
    stopped_ = true;
    return std::exchange(all_, {});
  }

 private:
  core::Mutex mu_;  // leaf
  std::unordered_set<std::shared_ptr<Attempt>> all_ GUARDED_BY(mu_);
  bool stopped_ GUARDED_BY(mu_) = false;
};

// One request on its way to a connection: the name, then its addresses one after another. Its
// loop's thread alone, but for Cancel.
class TunnelHandler::Attempt final : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(const TunnelHandler& handler, std::shared_ptr<const core::OriginPolicy> policy,
          ExchangePtr exchange, core::Url url, std::unique_ptr<TunnelPlace> place)
      : options_(handler.options_),
        policy_(std::move(policy)),
        attempts_(handler.attempts_),
        timers_(handler.timers_),
        loop_(exchange->loop()),
        exchange_(std::move(exchange)),
        url_(std::move(url)),
        place_(std::move(place)) {}

  void Begin(core::Scheduler& resolvers) {
    if (!attempts_->Add(shared_from_this())) return Fail(Stopping());
    Await(options_->resolve_time);
    resolvers.Post([self = shared_from_this(), host = WithoutBrackets(url_.host),
                    port = url_.EffectivePort()] {
      self->loop_->Post([self, found = self->options_->resolve(host, port)]() mutable {
        self->OnResolved(std::move(found));
      });
    });
  }
  void Cancel() {
    loop_->Post([self = shared_from_this()] { self->Fail(Stopping()); });
  }

 private:
  static Error Stopping() { return MakeError(Code::kCancelled, "this node is stopping"); }

  // Another step begins: what still comes of the one before means nothing.
  void Await(core::Duration time) {
    timers_.Cancel(timer_);
    const auto late = [weak = weak_from_this(), loop = loop_, step = ++step_] {
      loop->Post([weak, step] {
        if (const auto self = weak.lock(); self && self->step_ == step) self->OnLate();
      });
    };
    timer_ = timers_.After(time, late);
  }
  void OnLate() {
    if (!resolved_) {
      return Fail(MakeError(Code::kDeadlineExceeded, "the name was not resolved in time"));
    }
    failure_ = MakeError(Code::kDeadlineExceeded, "connecting: no answer in time");
    TryNext();
  }

  void OnResolved(Result<std::vector<SocketAddress>> found) {
    if (exchange_ == nullptr) return;
    if (!found) return Fail(std::move(found).error());
    resolved_ = true;
    std::optional<Error> refusal;
    for (const SocketAddress& address : *found) {
      const auto ip = core::FromSockaddr(reinterpret_cast<const sockaddr&>(address.bytes));
      if (!ip || addresses_.size() == kAddresses) continue;
      core::Status allowed = policy_->CheckAddress(url_, *ip);
      if (allowed) {
        addresses_.push_back(address);
      } else {
        refusal = std::move(allowed).error();
      }
    }
    if (addresses_.empty() && refusal) return Fail(*refusal);
    until_ = timers_.clock().Now() + options_->connect_time;
    TryNext();
  }

  void TryNext() {
    watch_.reset();
    socket_.Reset();
    const core::Duration left = until_ - timers_.clock().Now();
    for (; next_ < addresses_.size() && left > core::Duration::zero();) {
      const auto still = static_cast<int64_t>(addresses_.size() - next_);
      auto begun = BeginConnect(addresses_[next_++]);
      if (!begun) {
        failure_ = MakeError(Code::kUnavailable, begun.error().context);
        continue;
      }
      socket_ = std::move(*begun);
      Await(std::min(left, std::max(kLeastConnectTime, left / still)));
      return AwaitConnected();
    }
    Fail(failure_);
  }
  void AwaitConnected() {
    watch_ = std::make_unique<FdWatch>(*loop_, socket_.get(), [this](bool, bool) {
      watch_->Want(false, false);
      loop_->Post([weak = weak_from_this(), step = step_] {
        if (const auto self = weak.lock(); self && self->step_ == step) self->OnConnected();
      });
    });
    watch_->Want(false, true);
  }
  void OnConnected() {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      failure_ = MakeError(Code::kUnavailable, core::ErrnoError(error, "connecting").context);
      return TryNext();
    }
    watch_.reset();
    ResponseHead head;
    head.reason = "Connection established";
    Finish()->HandOver(std::move(head),
                       std::make_unique<TunnelRelay>(loop_, std::move(socket_), options_->limits,
                                                     std::move(place_)));
  }

  void Fail(Error error) {
    if (exchange_ == nullptr) return;
    const bool refused = error.code == Code::kRefused;
    TunnelCounts& counts = place_->counts();
    (refused ? counts.refused : counts.failed).fetch_add(1, std::memory_order_relaxed);
    watch_.reset();
    socket_.Reset();
    place_.reset();
    if (!refused) error = std::move(error).WithContext("no tunnel to " + PlaceOf(url_));
    Finish()->RespondError(error);
  }
  // Nothing that still comes finds an exchange.
  ExchangePtr Finish() {
    ++step_;
    timers_.Cancel(timer_);
    attempts_->Remove(shared_from_this());
    return std::move(exchange_);
  }

  const std::shared_ptr<const TunnelOptions> options_;
  const std::shared_ptr<const core::OriginPolicy> policy_;
  const std::shared_ptr<Attempts> attempts_;
  core::Scheduler& timers_;
  const std::shared_ptr<EventLoop> loop_;
  ExchangePtr exchange_;  // nullptr: it is over
  const core::Url url_;
  std::unique_ptr<TunnelPlace> place_;
  core::TimerId timer_ = core::kNoTimer;
  uint64_t step_ = 0;
  bool resolved_ = false;
  std::vector<SocketAddress> addresses_;
  size_t next_ = 0;
  core::TimePoint until_{};
  Error failure_ = MakeError(Code::kUnavailable, "the name has no address");
  core::UniqueFd socket_;
  std::unique_ptr<FdWatch> watch_;
};

TunnelHandler::TunnelHandler(TunnelOptions options, core::Scheduler& resolvers,
                             core::Scheduler& timers)
    : options_(std::make_shared<const TunnelOptions>(std::move(options))),
      policy_(std::make_shared<const core::OriginPolicy>(options_->policy)),
      resolvers_(resolvers),
      timers_(timers),
      attempts_(std::make_shared<Attempts>()) {}

TunnelHandler::~TunnelHandler() { Stop(); }

void TunnelHandler::SetPolicy(core::OriginPolicy policy) {
  auto fresh = std::make_shared<const core::OriginPolicy>(std::move(policy));
  core::MutexLock lock(mu_);
  policy_.swap(fresh);
}

std::shared_ptr<const core::OriginPolicy> TunnelHandler::policy() const {
  core::MutexLock lock(mu_);
  return policy_;
}

void TunnelHandler::Stop() {
  for (const auto& attempt : attempts_->Stop()) attempt->Cancel();
}

void TunnelHandler::Handle(ExchangePtr exchange) {
  const auto refuse = [&](const Error& error) {
    counts_->refused.fetch_add(1, std::memory_order_relaxed);
    exchange->RespondError(error);
  };
  auto url = ParseAuthority(exchange->request().target);
  if (!url) return exchange->RespondError(url.error());
  if (exchange->request().has_body()) {
    return exchange->RespondError(MakeError(
        Code::kInvalidArgument, "a CONNECT has no body: what follows it is the tunnel's"));
  }
  const auto& ports = options_->ports;
  if (std::find(ports.begin(), ports.end(), url->EffectivePort()) == ports.end()) {
    return refuse(MakeError(Code::kRefused, "no tunnel to " + PlaceOf(*url) +
                                                ": tunnels are made to port " + Listed(ports) +
                                                " (--connect)"));
  }
  auto policy = this->policy();
  if (const core::Status allowed = policy->CheckUrl(*url); !allowed) {
    return refuse(allowed.error());
  }
  if (counts_->open.fetch_add(1, std::memory_order_relaxed) >= options_->tunnels) {
    counts_->open.fetch_sub(1, std::memory_order_relaxed);
    return refuse(MakeError(Code::kBusy, "too many tunnels are open: try again later"));
  }
  std::make_shared<Attempt>(*this, std::move(policy), std::move(exchange), std::move(*url),
                            std::make_unique<TunnelPlace>(counts_))
      ->Begin(resolvers_);
}

}  // namespace dartfs::httpd
