#include "httpd/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <unordered_map>
#include <utility>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/text.h"
#include "core/io/address_policy.h"
#include "httpd/connection.h"
#include "httpd/event_loop.h"

namespace dartfs::httpd {
namespace {

using core::Result;

// Beyond a listener's limit so many more are told so; the rest is closed without a word.
constexpr size_t kRefusedAtOnce = 256;
constexpr int kAcceptsAtOnce = 64;
constexpr core::Duration kNoDescriptorPause = std::chrono::milliseconds(200);

struct Counters {
  std::atomic<uint64_t> connections{0}, accepted{0}, refused{0}, cut_off{0}, sent{0};
  std::array<std::atomic<uint64_t>, 6> answers{};
};

// One listening socket's share of it all.
struct Door {
  ServedSocket served;
  std::shared_ptr<std::atomic<size_t>> open = std::make_shared<std::atomic<size_t>>(0);
  std::unique_ptr<FdWatch> watch;
};

// An event thread and its connections.
class Shard final : public ConnectionEvents {
 public:
  Shard(std::shared_ptr<EventLoop> loop, const ServerOptions& options, Handler& handler,
        Counters& counters)
      : loop_(std::move(loop)), options_(options), handler_(handler), counters_(counters) {
    loop_->Post([this] { loop_->SetTick([this] { OnTick(); }); });
  }

  size_t load() const { return load_.load(std::memory_order_relaxed); }
  EventLoop& loop() { return *loop_; }

  void Add(core::UniqueFd socket, ConnectionOptions options,
           std::shared_ptr<std::atomic<size_t>> open) {
    load_.fetch_add(1, std::memory_order_relaxed);
    loop_->Post([this, socket = std::move(socket), options = std::move(options),
                 open = std::move(open)]() mutable {
      auto made = std::make_shared<Connection>(loop_, std::move(socket), std::move(options), *this);
      Connection* const raw = made.get();
      connections_.emplace(raw, Held{std::move(made), std::move(open)});
      raw->Start();
      if (draining_) raw->Drain();
    });
  }
  void Drain() {
    loop_->Post([this] {
      draining_ = true;
      for (const auto& held : Snapshot()) held->Drain();
    });
  }
  void Cut() {
    loop_->Post([this] {
      for (const auto& held : Snapshot()) held->Close();
    });
  }

  void OnRequest(ExchangePtr exchange) override { handler_.Handle(std::move(exchange)); }
  bool ServesWhenFull(const Request& request, const Listener& listener) const override {
    return handler_.ServesWhenFull(request, listener);
  }
  void OnAnswered(const AccessRecord& record) override {
    const auto digit = static_cast<size_t>(std::clamp(record.status / 100, 0, 5));
    counters_.answers[digit].fetch_add(1, std::memory_order_relaxed);
    counters_.sent.fetch_add(record.sent, std::memory_order_relaxed);
    if (!record.complete) counters_.cut_off.fetch_add(1, std::memory_order_relaxed);
    if (options_.on_answered) options_.on_answered(record);
  }
  void OnClosed(Connection& connection) override {
    const auto it = connections_.find(&connection);
    if (it == connections_.end()) return;
    it->second.open->fetch_sub(1, std::memory_order_relaxed);
    counters_.connections.fetch_sub(1, std::memory_order_relaxed);
    load_.fetch_sub(1, std::memory_order_relaxed);
    connections_.erase(it);
  }

 private:
  struct Held {
    std::shared_ptr<Connection> connection;
    std::shared_ptr<std::atomic<size_t>> open;
  };
  void OnTick() {
    for (const auto& [raw, held] : connections_) raw->Tick();
  }
  // Closing takes connections away only later, by a task; but a snapshot costs nothing here.
  std::vector<std::shared_ptr<Connection>> Snapshot() const {
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(connections_.size());
    for (const auto& [raw, held] : connections_) all.push_back(held.connection);
    return all;
  }

  const std::shared_ptr<EventLoop> loop_;
  const ServerOptions& options_;
  Handler& handler_;
  Counters& counters_;
  std::atomic<size_t> load_{0};
  bool draining_ = false;                              // the loop's thread alone
  std::unordered_map<Connection*, Held> connections_;  // the loop's thread alone
};

std::string AddressOf(const sockaddr_storage& address) {
  const auto& plain = reinterpret_cast<const sockaddr&>(address);
  const auto ip = core::FromSockaddr(plain);
  if (!ip) return "unix";
  const bool v6 = address.ss_family == AF_INET6;
  const uint16_t port = ntohs(v6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                 : reinterpret_cast<const sockaddr_in&>(address).sin_port);
  const std::string text = ip->ToString();
  return (v6 ? "[" + text + "]:" : text + ":") + std::to_string(port);
}

}  // namespace

struct Server::Impl {
  Impl(ServerOptions o, Handler& h) : options(std::move(o)), handler(h) {}

  core::Status Start(std::vector<ServedSocket> sockets);
  void Accept(Door& door);
  bool AcceptOne(Door& door);
  void Pause();
  Shard& LeastLoaded();
  void StopAccepting();
  void AwaitExchanges();

  const ServerOptions options;
  Handler& handler;
  Counters counters;
  const std::shared_ptr<std::atomic<size_t>> exchanges = std::make_shared<std::atomic<size_t>>(0);
  std::vector<std::unique_ptr<Shard>> shards;
  std::vector<std::shared_ptr<EventLoop>> loops;
  std::shared_ptr<EventLoop> acceptor;
  std::vector<std::unique_ptr<Door>> doors;  // the acceptor's thread alone, once it runs
  core::TimePoint paused_until{};
  bool said_no_descriptor = false;
  bool drained = false;
  bool stopped = false;
};

core::Status Server::Impl::Start(std::vector<ServedSocket> sockets) {
  for (size_t i = 0; i < std::max<size_t>(1, options.threads); ++i) {
    TRY_ASSIGN(std::shared_ptr<EventLoop> loop,
               EventLoop::Start("dartfs-http-" + std::to_string(i)));
    loops.push_back(loop);
    shards.push_back(std::make_unique<Shard>(std::move(loop), options, handler, counters));
  }
  TRY_ASSIGN(acceptor, EventLoop::Start("dartfs-accept"));
  for (ServedSocket& socket : sockets) {
    auto door = std::make_unique<Door>();
    door->served = std::move(socket);
    doors.push_back(std::move(door));
  }
  acceptor->Post([this] {
    acceptor->SetTick([this] {
      if (paused_until == core::TimePoint{} || acceptor->now() < paused_until) return;
      paused_until = {};
      for (const auto& door : doors) door->watch->Want(true, false);
    });
    for (const auto& door : doors) {
      Door* const raw = door.get();
      door->watch = std::make_unique<FdWatch>(*acceptor, raw->served.socket.fd.get(),
                                              [this, raw](bool, bool) { Accept(*raw); });
      door->watch->Want(true, false);
    }
  });
  return {};
}

void Server::Impl::Accept(Door& door) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    if (!AcceptOne(door)) return;
  }
}

bool Server::Impl::AcceptOne(Door& door) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  core::UniqueFd socket(accept4(door.served.socket.fd.get(), reinterpret_cast<sockaddr*>(&address),
                                &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) {
    if (errno == ECONNABORTED || errno == EINTR) return true;
    if (errno != EAGAIN) Pause();
    return false;
  }
  counters.accepted.fetch_add(1, std::memory_order_relaxed);
  const size_t open = door.open->fetch_add(1, std::memory_order_relaxed);
  const bool refuse = open >= options.limits.connections;
  if (refuse) counters.refused.fetch_add(1, std::memory_order_relaxed);
  if (open >= options.limits.connections + kRefusedAtOnce) {
    door.open->fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  counters.connections.fetch_add(1, std::memory_order_relaxed);
  const int one = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
  LeastLoaded().Add(std::move(socket),
                    {door.served.listener, AddressOf(address), options.limits, exchanges, refuse},
                    door.open);
  return true;
}

// There is no descriptor, or no memory, for another connection: those that wait in the kernel have
// their turn when some have ended.
void Server::Impl::Pause() {
  if (!std::exchange(said_no_descriptor, true)) {
    LOG_WARN("{} (said once)",
             core::ErrnoError(errno, "no connection can be accepted at present").context);
  }
  for (const auto& door : doors) door->watch->Want(false, false);
  paused_until = acceptor->now() + kNoDescriptorPause;
}

Shard& Server::Impl::LeastLoaded() {
  const auto it = std::min_element(shards.begin(), shards.end(), [](const auto& a, const auto& b) {
    return a->load() < b->load();
  });
  return **it;
}

void Server::Impl::AwaitExchanges() {
  constexpr core::Duration kLook = std::chrono::milliseconds(1);
  constexpr core::Duration kPatience = std::chrono::seconds(5);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (exchanges->load(std::memory_order_acquire) > 0) {
    if (std::chrono::steady_clock::now() > until) {
      LOG_ERROR("{} requests were never answered", exchanges->load());
      return;
    }
    std::this_thread::sleep_for(kLook);
  }
}

void Server::Impl::StopAccepting() {
  if (!acceptor) return;
  acceptor->Post([this] {
    for (const auto& door : doors) door->watch.reset();
  });
  acceptor->Stop();
  doors.clear();
}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options,
                                              std::vector<ServedSocket> sockets, Handler& handler) {
  auto impl = std::make_unique<Impl>(std::move(options), handler);
  TRY(impl->Start(std::move(sockets)));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { Stop(); }

ServerStats Server::stats() const {
  const Counters& from = impl_->counters;
  ServerStats stats;
  stats.connections = from.connections.load(std::memory_order_relaxed);
  stats.accepted = from.accepted.load(std::memory_order_relaxed);
  stats.exchanges = impl_->exchanges->load(std::memory_order_relaxed);
  stats.refused = from.refused.load(std::memory_order_relaxed);
  stats.cut_off = from.cut_off.load(std::memory_order_relaxed);
  stats.sent = from.sent.load(std::memory_order_relaxed);
  for (size_t i = 0; i < stats.answers.size(); ++i) {
    stats.answers[i] = from.answers[i].load(std::memory_order_relaxed);
  }
  return stats;
}

void Server::Drain() {
  if (std::exchange(impl_->drained, true)) return;
  impl_->StopAccepting();
  for (const auto& shard : impl_->shards) shard->Drain();
  constexpr core::Duration kLook = std::chrono::milliseconds(5);
  const auto until = std::chrono::steady_clock::now() + impl_->options.limits.drain_time;
  const auto open = [this] { return impl_->counters.connections.load(); };
  while (open() > 0 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kLook);
  if (open() > 0) LOG_INFO("{} connections are cut off, as they did not end in time", open());
  for (const auto& shard : impl_->shards) shard->Cut();
  constexpr core::Duration kCutting = std::chrono::seconds(2);
  const auto cut = std::chrono::steady_clock::now() + kCutting;
  while (open() > 0 && std::chrono::steady_clock::now() < cut) std::this_thread::sleep_for(kLook);
}

void Server::Stop() {
  if (std::exchange(impl_->stopped, true)) return;
  Drain();
  impl_->AwaitExchanges();
  for (const auto& loop : impl_->loops) loop->Stop();
  impl_->shards.clear();
}

}  // namespace dartfs::httpd
