// A server that makes tunnels, and what they lead to.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "httpd/event_loop.h"
#include "httpd/listen.h"
#include "httpd/server.h"
#include "httpd/service.h"
#include "httpd/tunnel.h"
#include "origin/raw_client.h"

namespace dartfs::httpd {

using core::Result;
using origin::RawClient;
using origin::RawResponse;
using std::chrono::milliseconds;

inline SocketAddress Address(const std::string& ip, uint16_t port) {
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.bytes);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  inet_pton(AF_INET, ip.c_str(), &v4.sin_addr);
  address.length = sizeof v4;
  return address;
}

inline std::string Pattern(size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

// A blocking end of a connection; reads end after ten seconds.
class End {
 public:
  explicit End(int fd) : fd_(fd) {
    const timeval ten{10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &ten, sizeof ten);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &ten, sizeof ten);
  }
  int fd() const { return fd_.get(); }
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // So many bytes; fewer where the other side ended or was reset.
  std::string Read(size_t size) {
    std::string bytes(size, '\0');
    size_t have = 0;
    while (have < size) {
      const ssize_t got = recv(fd_.get(), bytes.data() + have, size - have, 0);
      error_ = got < 0 ? errno : 0;
      ended_ = got == 0;
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    return bytes.substr(0, have);
  }
  bool Ended() { return Read(1).empty() && ended_; }
  bool WasReset() { return Read(1).empty() && error_ == ECONNRESET; }
  void FinishSending() { shutdown(fd_.get(), SHUT_WR); }
  void Close() { fd_.Reset(); }

 private:
  core::UniqueFd fd_;
  bool ended_ = false;
  int error_ = 0;
};

// What tunnels lead to.
class Upstream {
 public:
  explicit Upstream(const std::string& ip = "127.0.0.1", uint16_t port = 0, int backlog = 16)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    SocketAddress name = Address(ip, port);
    auto* const plain = reinterpret_cast<sockaddr*>(&name.bytes);
    EXPECT_EQ(bind(fd_.get(), plain, name.length), 0);
    EXPECT_EQ(listen(fd_.get(), backlog), 0);
    getsockname(fd_.get(), plain, &name.length);
    port_ = ntohs(reinterpret_cast<sockaddr_in&>(name.bytes).sin_port);
    const timeval ten{10, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &ten, sizeof ten);
  }
  uint16_t port() const { return port_; }
  void ReceiveLittle() {
    const int bytes = 16 * 1024;
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }
  End Accept() { return End(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  // From now on nothing that connects is answered at all.
  void Fall() {
    for (int i = 0; i < 3; ++i) {
      RawConnect();
    }
  }

 private:
  void RawConnect() {
    core::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&name), &length);
    connect(fd.get(), reinterpret_cast<sockaddr*>(&name), length);
    fill_.push_back(std::move(fd));
  }
  core::UniqueFd fd_;
  uint16_t port_ = 0;
  std::vector<core::UniqueFd> fill_;
};

class TunnelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.ports = {upstream_.port()};
    options_.resolve = [this](const std::string& host, uint16_t port) {
      ++lookups_;
      const auto it = names_.find(host);
      if (it == names_.end()) return ResolveByHost(host, port);
      std::vector<SocketAddress> addresses;
      for (const std::string& ip : it->second) addresses.push_back(Address(ip, port));
      return Result<std::vector<SocketAddress>>(std::move(addresses));
    };
    server_options_.on_answered = [this](const AccessRecord& record) {
      const std::lock_guard lock(mu_);
      records_.push_back({record.status, record.sent, record.complete});
    };
    server_options_.limits.drain_time = milliseconds(100);
  }
  void TearDown() override { Stop(); }
  void Start() {
    resolvers_ = core::MakeThreadScheduler("names", 1, core::RealClock());
    timers_ = core::MakeThreadScheduler("timers", 1, core::RealClock());
    tunnels_ = std::make_unique<TunnelHandler>(options_, *resolvers_, *timers_);
    ServiceOptions service;
    service.doors.connect = true;
    ServiceHandlers handlers;
    handlers.connect = tunnels_.get();
    service_ = std::make_unique<Service>(service, handlers);
    auto sockets = Listen({"127.0.0.1", 0});
    ASSERT_TRUE(sockets) << sockets.error().ToString();
    port_ = sockets->front().port;
    std::vector<ServedSocket> served;
    served.push_back({std::move(sockets->front()), Listener{}});
    auto server = Server::Start(server_options_, std::move(served), *service_);
    ASSERT_TRUE(server) << server.error().ToString();
    server_ = std::move(*server);
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Drain();
    tunnels_->Stop();
    server_->Stop();
    EXPECT_EQ(server_->stats().exchanges, 0U);
    EXPECT_EQ(server_->stats().connections, 0U);
    EXPECT_EQ(counts().open.load(), 0U);
    server_.reset();
  }
  uint16_t port() {
    if (server_ == nullptr) Start();
    return port_;
  }
  const TunnelCounts& counts() { return tunnels_->counts(); }
  std::string Target(const std::string& host = "127.0.0.1") {
    return host + ":" + std::to_string(upstream_.port());
  }
  static std::string Text(const std::string& target) {
    return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n";
  }
  RawResponse Ask(const std::string& target) {
    RawClient client(port());
    client.Send(Text(target));
    return client.ReadResponse();
  }
  // A tunnel that has been made.
  std::unique_ptr<RawClient> Open(const std::string& target) {
    auto client = std::make_unique<RawClient>(port());
    client->Send(Text(target));
    EXPECT_EQ(client->ReadHead().status, 200);
    return client;
  }
  void AwaitOpen(uint64_t count) {
    for (int i = 0; i < 1000 && counts().open.load() != count; ++i) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    EXPECT_EQ(counts().open.load(), count);
  }

  struct Record {
    int status;
    uint64_t sent;
    bool complete;
  };
  Upstream upstream_;
  TunnelOptions options_;
  ServerOptions server_options_;
  std::map<std::string, std::vector<std::string>> names_;
  std::atomic<int> lookups_{0};
  std::mutex mu_;
  std::vector<Record> records_;
  std::unique_ptr<core::Scheduler> resolvers_, timers_;
  std::unique_ptr<TunnelHandler> tunnels_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
};

}  // namespace dartfs::httpd
