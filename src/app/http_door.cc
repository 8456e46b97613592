#include "app/http_door.h"

#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "app/admin_plane.h"
#include "app/registry_mirror.h"
#include "core/base/log.h"
#include "core/base/scheduler.h"
#include "core/base/text.h"
#include "httpd/service.h"
#include "httpd/tunnel.h"

namespace dartfs::app {
namespace {

using core::Result;
using core::Status;
using httpd::Listener;
using httpd::ListenSocket;
using httpd::ServedSocket;

constexpr size_t kMostThreads = 4;

size_t ThreadsOf(const Options& options) {
  if (options.http_threads != 0) return options.http_threads;
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
}

std::vector<std::string> NamesOfThisMachine(const Options& options) {
  std::vector<std::string> names = options.hosts;
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) names.emplace_back(name.data());
  return names;
}

std::string Describe(const ServedSocket& served) {
  std::string planes;
  const auto add = [&planes](bool on, const char* name) {
    if (on) planes += (planes.empty() ? "" : ", ") + std::string(name);
  };
  add(served.listener.client, "client");
  add(served.listener.admin, "admin");
  add(served.listener.peer, "peer");
  return served.socket.address + " (" + planes + ")";
}

// What a socket is for; GivenSocket::name says it of those that were given.
enum class Plane : uint8_t { kClient, kAdmin, kPeer };

Plane PlaneOf(const GivenSocket& socket) {
  if (socket.name == "admin") return Plane::kAdmin;
  return socket.name == "peer" ? Plane::kPeer : Plane::kClient;
}

// The client plane's sockets are the admin plane's too while that has none of its own and nobody
// else's machine can reach them.
ServedSocket Serve(ListenSocket socket, Plane plane, bool own_admin) {
  ServedSocket served;
  served.listener.client = plane == Plane::kClient;
  served.listener.admin =
      plane == Plane::kAdmin || (plane == Plane::kClient && socket.loopback && !own_admin);
  served.listener.peer = plane == Plane::kPeer;
  served.listener.loopback = socket.loopback;
  served.listener.port = socket.port;
  served.socket = std::move(socket);
  return served;
}

Status AddListening(const std::string& where, bool admin, bool own_admin,
                    std::vector<ServedSocket>& sockets) {
  TRY_ASSIGN(const httpd::HostPort host_port, httpd::ParseHostPort(where));
  auto listening = httpd::Listen(host_port);
  if (!listening) {
    core::Error error = std::move(listening).error();
    error.context +=
        admin ? " (--admin HOST:PORT)" : " (--listen HOST:PORT; --listen none for no HTTP at all)";
    return error;
  }
  for (ListenSocket& socket : *listening) {
    sockets.push_back(Serve(std::move(socket), admin ? Plane::kAdmin : Plane::kClient, own_admin));
  }
  return {};
}

Result<std::vector<ServedSocket>> SocketsOf(const Options& options,
                                            std::vector<GivenSocket> given) {
  std::vector<ServedSocket> sockets;
  const auto is_given = [&given](Plane plane) {
    return std::any_of(given.begin(), given.end(),
                       [plane](const auto& socket) { return PlaneOf(socket) == plane; });
  };
  const bool given_admin = is_given(Plane::kAdmin);
  const bool given_client = is_given(Plane::kClient);
  const bool own_admin = given_admin || !options.admin.empty();
  for (const GivenSocket& socket : given) {
    auto adopted = httpd::AdoptListening(core::UniqueFd(socket.fd));
    if (!adopted) {
      return std::move(adopted).error().WithContext("socket '" + core::EscapeForeign(socket.name) +
                                                    "'");
    }
    sockets.push_back(Serve(std::move(*adopted), PlaneOf(socket), own_admin));
  }
  if (!given_client && options.listen != "none") {
    const std::string where = options.listen.empty() ? kDefaultListen : options.listen;
    Status listening = AddListening(where, false, own_admin, sockets);
    // Nobody has asked for it, and a mount is of use without it.
    const bool by_the_way = options.listen.empty() && !options.no_mount;
    if (!listening && by_the_way && listening.error().sys_errno == EADDRINUSE) {
      LOG_WARN("no HTTP: {}", listening.error().context);
    } else if (!listening) {
      return std::move(listening).error();
    }
  }
  if (!given_admin && !options.admin.empty()) TRY(AddListening(options.admin, true, true, sockets));
  return sockets;
}

httpd::UrlHandlerOptions UrlOptionsOf(const Options& options) {
  httpd::UrlHandlerOptions urls;
  urls.prefix = options.prefix;
  urls.origin = options.origin;
  urls.proxy_https = httpd::HostPatterns(options.proxy_https);
  urls.pass_redirects = httpd::HostPatterns(options.pass_redirects);
  urls.ttl = options.ttl;
  urls.immutable = options.immutable;
  if (options.timeout) urls.timeout = *options.timeout;
  return urls;
}

httpd::ServiceOptions ServiceOptionsOf(const Options& options, const NodeCore& core) {
  httpd::ServiceOptions service;
  service.doors.prefix = options.prefix;
  service.doors.fixed_origin = !options.origin.empty();
  service.doors.connect = !options.connect_ports.empty();
  service.doors.registry = !options.registry.empty() || !options.registry_allow.empty();
  service.policy.hosts = NamesOfThisMachine(options);
  service.policy.via_id = core.via_id();
  return service;
}

// Names block whoever asks for them, so that tunnels have threads of their own for it.
struct Tunnels {
  static constexpr size_t kLookups = 4;

  Tunnels(httpd::TunnelOptions options, NodeCore& core)
      : resolvers(core::MakeThreadScheduler("tunnel-names", kLookups, core::RealClock())),
        handler(std::move(options), *resolvers, core.engine().scheduler()) {}

  std::unique_ptr<core::Scheduler> resolvers;
  httpd::TunnelHandler handler;
};

// nullptr: the options allow none.
Result<std::unique_ptr<Tunnels>> MakeTunnels(const Options& options, NodeCore& core) {
  if (options.connect_ports.empty()) return std::unique_ptr<Tunnels>();
  httpd::TunnelOptions tunnels;
  tunnels.ports = options.connect_ports;
  TRY_ASSIGN(tunnels.policy, OriginPolicyOf(options));
  return std::make_unique<Tunnels>(std::move(tunnels), core);
}

}  // namespace

std::vector<GivenSocket> TakeGivenSockets() {
  std::vector<GivenSocket> given;
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  for (int i = 0; i < count; ++i) {
    given.push_back({SD_LISTEN_FDS_START + i, names != nullptr ? names[i] : ""});
  }
  for (int i = 0; names != nullptr && i < count; ++i) free(names[i]);  // NOLINT: libsystemd's
  free(names);                                                         // NOLINT: libsystemd's
  return given;
}

// Who answers, in the order of being made.
struct HttpDoor::Parts {
  Parts(const Options& options, NodeCore& core, std::unique_ptr<RegistryMirror> mirror,
        std::unique_ptr<Tunnels> connect)
      : registry(std::move(mirror)),
        tunnels(std::move(connect)),
        urls(core.engine(), UrlOptionsOf(options), relayed),
        service_options(ServiceOptionsOf(options, core)) {}

  Status AddPlane(const Options& options, NodeCore& core, std::function<NodeFacts()> node) {
    AdminPlaneOptions plane;
    plane.access_log = options.access_log;
    plane.facts = [this, node = std::move(node)] {
      AdminFacts facts;
      facts.node = node();
      if (const auto* running = server.load(std::memory_order_acquire)) {
        facts.server = running->stats();
      }
      facts.passed_answers = relayed.range_blind.load(std::memory_order_relaxed);
      facts.passed_bytes = relayed.bytes.load(std::memory_order_relaxed);
      if (tunnels != nullptr) facts.tunnels = httpd::Totals(tunnels->handler.counts());
      if (registry != nullptr) facts.tokens = registry->tokens.Stats();
      return facts;
    };
    TRY_ASSIGN(admin, AdminPlane::Create(std::move(plane), core.engine()));
    service.emplace(std::move(service_options), HandlersOf());
    return {};
  }

  httpd::ServiceHandlers HandlersOf() {
    httpd::ServiceHandlers handlers;
    handlers.urls = &urls;
    if (registry != nullptr) handlers.registry = &registry->handler;
    handlers.admin = &admin->handler();
    if (tunnels != nullptr) handlers.connect = &tunnels->handler;
    return handlers;
  }

  std::unique_ptr<RegistryMirror> registry;
  std::unique_ptr<Tunnels> tunnels;
  httpd::RelayCounts relayed;
  httpd::UrlHandler urls;
  httpd::ServiceOptions service_options;
  std::unique_ptr<AdminPlane> admin;
  std::optional<httpd::Service> service;
  std::atomic<httpd::Server*> server{nullptr};  // once it runs
};

HttpDoor::HttpDoor() = default;

Result<std::unique_ptr<HttpDoor>> HttpDoor::Open(const Options& options, NodeCore& core,
                                                 std::vector<GivenSocket> given,
                                                 std::function<NodeFacts()> facts) {
  TRY_ASSIGN(auto mirror, RegistryMirror::Make(options, core));
  TRY_ASSIGN(auto tunnels, MakeTunnels(options, core));
  TRY_ASSIGN(auto sockets, SocketsOf(options, std::move(given)));
  if (sockets.empty()) return std::unique_ptr<HttpDoor>();
  std::unique_ptr<HttpDoor> door(new HttpDoor());
  for (const ServedSocket& served : sockets) {
    door->addresses_.push_back(Describe(served));
    LOG_INFO("HTTP on {}", door->addresses_.back());
  }
  door->parts_ = std::make_unique<Parts>(options, core, std::move(mirror), std::move(tunnels));
  TRY(door->parts_->AddPlane(options, core, std::move(facts)));
  httpd::ServerOptions server;
  server.threads = ThreadsOf(options);
  server.limits.connections = options.max_connections;
  if (options.timeout) server.limits.body_time = *options.timeout;
  server.on_answered = [plane = door->parts_->admin.get()](const httpd::AccessRecord& record) {
    plane->OnAnswered(record);
  };
  TRY_ASSIGN(door->server_,
             httpd::Server::Start(server, std::move(sockets), *door->parts_->service));
  door->parts_->server.store(door->server_.get(), std::memory_order_release);
  return door;
}

HttpDoor::~HttpDoor() { Stop(); }

void HttpDoor::ReopenLog() { parts_->admin->ReopenLog(); }

void HttpDoor::Drain() {
  if (server_ == nullptr) return;
  parts_->admin->SetDraining();
  server_->Drain();
}

void HttpDoor::Stop() {
  // The plane holds requests, and looks at the server.
  if (parts_ != nullptr && parts_->admin != nullptr) parts_->admin->Stop();
  if (server_ == nullptr) return;
  server_->Drain();
  if (parts_->tunnels != nullptr) parts_->tunnels->handler.Stop();
  server_->Stop();
}

void HttpDoor::SetOriginPolicy(const core::OriginPolicy& policy) {
  if (parts_->tunnels != nullptr) parts_->tunnels->handler.SetPolicy(policy);
}

Status HttpDoor::Reload(const Options& options) {
  return parts_->registry == nullptr ? Status() : parts_->registry->Reload(options);
}

}  // namespace dartfs::app
