// CONNECT on the wire: what is refused, how the other end is found, and bytes both ways.
#include "httpd/tunnel.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <atomic>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <thread>

#include "httpd/event_loop.h"
#include "httpd/listen.h"
#include "httpd/server.h"
#include "httpd/service.h"
#include "origin/raw_client.h"

namespace dartfs::httpd {
namespace {

using core::Code;
using core::MakeError;
using core::Result;
using origin::RawClient;
using origin::RawResponse;
using std::chrono::milliseconds;

SocketAddress Address(const std::string& ip, uint16_t port) {
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.bytes);
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  inet_pton(AF_INET, ip.c_str(), &v4.sin_addr);
  address.length = sizeof v4;
  return address;
}

std::string Pattern(size_t size, unsigned seed) {
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

TEST_F(TunnelTest, BytesGoBothWays) {
  RawClient client(port());
  client.Send(Text(Target()));
  const RawResponse head = client.ReadHead();
  EXPECT_EQ(head.head.substr(0, head.head.find("\r\n")), "HTTP/1.1 200 Connection established");
  EXPECT_EQ(head.Header("Content-Length"), "");
  EXPECT_EQ(head.Header("Transfer-Encoding"), "");
  EXPECT_EQ(head.Header("Connection"), "");
  End end = upstream_.Accept();
  client.Send("ping");
  EXPECT_EQ(end.Read(4), "ping");
  end.Send("pong!");
  EXPECT_EQ(client.Read(5), "pong!");
  EXPECT_EQ(counts().open.load(), 1U);
  EXPECT_EQ(server_->stats().connections, 1U);
  client.FinishSending();
  EXPECT_TRUE(end.Ended());
  end.Close();
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_EQ(client.state(), RawClient::State::kClosed);
  AwaitOpen(0);
  EXPECT_EQ(counts().total.load(), 1U);
  EXPECT_EQ(counts().up.load(), 4U);
  EXPECT_EQ(counts().down.load(), 5U);
  Stop();
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].status, 200);
  EXPECT_EQ(records_[0].sent, 5U);
  EXPECT_TRUE(records_[0].complete);
}

TEST_F(TunnelTest, AnOldClientIsAnsweredTheSame) {
  RawClient client(port());
  client.Send("CONNECT " + Target() + " HTTP/1.0\r\n\r\n");
  const RawResponse head = client.ReadHead();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Header("Connection"), "");
  End end = upstream_.Accept();
  client.Send("x");
  EXPECT_EQ(end.Read(1), "x");
}

TEST_F(TunnelTest, BytesThatComeWithTheRequestGoFirst) {
  const std::string early = Pattern(20'000, 1);
  RawClient client(port());
  client.Send(Text(Target()) + early);
  End end = upstream_.Accept();
  client.Send("behind");
  EXPECT_TRUE(end.Read(early.size()) == early);
  EXPECT_EQ(end.Read(6), "behind");
}

TEST_F(TunnelTest, MuchBothWaysAtOnce) {
  const std::string up = Pattern(24 << 20, 1), down = Pattern(24 << 20, 2);
  auto client = Open(Target());
  End end = upstream_.Accept();
  std::thread client_sends([&] {
    client->Send(up);
    client->FinishSending();
  });
  std::thread upstream_sends([&] {
    end.Send(down);
    end.FinishSending();
  });
  std::string got_up;
  std::thread upstream_reads([&] { got_up = end.Read(up.size()); });
  const std::string got_down = client->Read(down.size());
  for (auto* thread : {&client_sends, &upstream_sends, &upstream_reads}) thread->join();
  EXPECT_TRUE(got_up == up);
  EXPECT_TRUE(got_down == down);
  EXPECT_TRUE(end.Ended());
  EXPECT_EQ(client->ReadToEnd(), "");
  AwaitOpen(0);
  EXPECT_EQ(counts().up.load(), up.size());
  EXPECT_EQ(counts().down.load(), down.size());
}

TEST_F(TunnelTest, TheClientsEndIsHandedOn) {
  auto client = Open(Target());
  End end = upstream_.Accept();
  client->Send("question");
  client->FinishSending();
  EXPECT_EQ(end.Read(8), "question");
  EXPECT_TRUE(end.Ended());
  const std::string answer = Pattern(1 << 20, 3);
  end.Send(answer);
  EXPECT_TRUE(client->Read(answer.size()) == answer);
  end.Close();
  EXPECT_EQ(client->ReadToEnd(), "");
  EXPECT_EQ(client->state(), RawClient::State::kClosed);
  AwaitOpen(0);
}

TEST_F(TunnelTest, TheUpstreamsEndIsHandedOn) {
  auto client = Open(Target());
  End end = upstream_.Accept();
  end.Send("hello");
  end.FinishSending();
  EXPECT_EQ(client->ReadToEnd(), "hello");
  EXPECT_EQ(client->state(), RawClient::State::kClosed);
  const std::string more = Pattern(1 << 20, 4);
  client->Send(more);
  EXPECT_TRUE(end.Read(more.size()) == more);
  client->FinishSending();
  EXPECT_TRUE(end.Ended());
  AwaitOpen(0);
}

TEST_F(TunnelTest, AResetIsHandedOn) {
  auto client = Open(Target());
  End end = upstream_.Accept();
  end.Send("half of it");
  EXPECT_EQ(client->Read(10), "half of it");
  const linger now{1, 0};
  setsockopt(end.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  end.Close();
  EXPECT_EQ(client->ReadToEnd(), "");
  EXPECT_EQ(client->state(), RawClient::State::kReset);
  AwaitOpen(0);
  Stop();
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_FALSE(records_[0].complete);
  EXPECT_EQ(records_[0].sent, 10U);
}

// Else a fast sender and a slow receiver would fill the memory.
TEST_F(TunnelTest, ASenderWaitsForTheReceiver) {
  constexpr size_t kOffered = 64 << 20;
  upstream_.ReceiveLittle();
  auto client = Open(Target());
  End end = upstream_.Accept();
  const std::string bytes = Pattern(kOffered, 5);
  std::atomic<bool> all_sent{false};
  std::thread sender([&] {
    client->Send(bytes);
    all_sent = true;
  });
  uint64_t moved = 0;  // until it does not grow any more
  do {
    moved = counts().up.load();
    std::this_thread::sleep_for(milliseconds(200));
  } while (counts().up.load() != moved || moved == 0);
  EXPECT_LT(moved, kOffered / 2);
  EXPECT_FALSE(all_sent.load());
  EXPECT_TRUE(end.Read(kOffered) == bytes);
  sender.join();
}

TEST_F(TunnelTest, WhatIsNoHostAndPortIsSaidSo) {
  Start();
  const std::string port = std::to_string(upstream_.port());
  const std::string kRows[] = {
      "127.0.0.1",
      "127.0.0.1:",
      ":" + port,
      "127.0.0.1:0",
      "127.0.0.1:65536",
      "127.0.0.1:+80",
      "127.0.0.1:x",
      "a@127.0.0.1:" + port,
      "127.0.0.1/:" + port,
      "http://127.0.0.1:" + port,

      "127.0.0.1:" + port + "/",
      "::1:" + port,
      "[::1:" + port,
      "127.0.0.1:" + port + "?x",
      "127.0.0.1:" + port + "#x",
      "*",
      "a%00b:" + port,
      std::string(300, 'a') + ":" + port,
  };
  for (const std::string& target : kRows) {
    const RawResponse answer = Ask(target);
    EXPECT_EQ(answer.status, 400) << target << answer.body;
    EXPECT_NE(answer.body.find("host:port"), std::string::npos) << target;
  }
  EXPECT_EQ(lookups_.load(), 0);
}

TEST_F(TunnelTest, PlacesThatARuleRefuses) {
  names_["meta.example"] = {"169.254.169.254"};
  names_["denied.example"] = {"127.0.0.1"};
  names_["inside.example"] = {"127.0.0.9"};
  options_.policy.deny.push_back(*core::ParseOriginRule("denied.example"));
  options_.policy.deny.push_back(*core::ParseOriginRule("127.0.0.9/32"));
  Start();
  const struct {
    std::string target, word;
  } kRows[] = {
      {"127.0.0.1:1", "--connect"},
      {Target("169.254.169.254"), "169.254.169.254"},
      {Target("[::ffff:169.254.169.254]"), "169.254.169.254"},
      {Target("[::ffff:a9fe:a9fe]"), "169.254.169.254"},
      {Target("2852039166"), "169.254.169.254"},
      {Target("[fe80::1]"), "fe80::1"},
      {Target("meta.example"), "169.254.169.254"},
      {Target("META.example"), "169.254.169.254"},
      {Target("denied.example"), "--origin-deny"},
      {Target("denied.example."), "--origin-deny"},
      {Target("inside.example"), "--origin-deny"},
  };
  for (const auto& row : kRows) {
    const RawResponse answer = Ask(row.target);
    EXPECT_EQ(answer.status, 403) << row.target << answer.body;
    EXPECT_NE(answer.body.find(row.word), std::string::npos) << row.target << ": " << answer.body;
  }
  EXPECT_EQ(counts().refused.load(), std::size(kRows));
  EXPECT_EQ(lookups_.load(), 3) << "only names that no rule refuses are looked up";
}

TEST_F(TunnelTest, OnlyAllowedOriginsWhereThereAreAny) {
  names_["good.example"] = names_["other.example"] = {"127.0.0.1"};
  options_.policy.allow.push_back(*core::ParseOriginRule("good.example"));
  EXPECT_EQ(Ask(Target("other.example")).status, 403);
  Open(Target("good.example"));
}

// Else a client's first bytes for somebody else would be requests of ours.
TEST_F(TunnelTest, BehindARefusedRequestNothingIsARequest) {
  RawClient client(port());
  client.Send(Text("127.0.0.1:1") + Text(Target()));
  EXPECT_EQ(client.ReadResponse().status, 403);
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_EQ(counts().total.load(), 0U);
}

TEST_F(TunnelTest, ABodyIsNone) {
  RawClient client(port());
  client.Send("CONNECT " + Target() + " HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(client.ReadResponse().status, 400);
}

TEST_F(TunnelTest, AddressesAreTriedInTheirOrder) {
  Upstream silent("127.0.0.3", upstream_.port(), 0);
  silent.Fall();
  names_["some.example"] = {"127.0.0.2", "169.254.169.254", "127.0.0.3", "127.0.0.1"};
  options_.connect_time = std::chrono::seconds(2);
  auto client = Open(Target("some.example"));
  End end = upstream_.Accept();
  client->Send("x");
  EXPECT_EQ(end.Read(1), "x");
}

TEST_F(TunnelTest, NoConnectionComesAbout) {
  Upstream silent("127.0.0.3", upstream_.port(), 0);
  silent.Fall();
  names_["closed.example"] = {"127.0.0.2", "127.0.0.4"};
  names_["silent.example"] = {"127.0.0.3"};
  names_["empty.example"] = {};
  options_.connect_time = milliseconds(300);
  Start();
  const struct {
    std::string host;
    int status;
    std::string word;
  } kRows[] = {
      {"closed.example", 502, "Connection refused"},
      {"silent.example", 504, "in time"},
      {"empty.example", 502, "no address"},
      {"no-such-name.invalid", 502, "not resolved"},
  };
  for (const auto& row : kRows) {
    const RawResponse answer = Ask(Target(row.host));
    EXPECT_EQ(answer.status, row.status) << row.host;
    EXPECT_NE(answer.body.find(Target(row.host)), std::string::npos) << answer.body;
    EXPECT_NE(answer.body.find(row.word), std::string::npos) << answer.body;
  }
  EXPECT_EQ(counts().failed.load(), std::size(kRows));
  EXPECT_EQ(counts().open.load(), 0U);
}

// A resolver that answers only when it is told to.
class SlowNamesTest : public TunnelTest {
 protected:
  void SetUp() override {
    TunnelTest::SetUp();
    options_.resolve = [this](const std::string&, uint16_t port) {
      go_on_.wait();
      return Result<std::vector<SocketAddress>>({Address("127.0.0.1", port)});
    };
  }
  void TearDown() override {
    go_on_.count_down();
    resolvers_->Stop();
    TunnelTest::TearDown();
  }
  std::latch go_on_{1};
};

TEST_F(SlowNamesTest, ALookupHasItsTime) {
  options_.resolve_time = milliseconds(100);
  const RawResponse answer = Ask(Target("some.example"));
  EXPECT_EQ(answer.status, 504);
  EXPECT_EQ(counts().open.load(), 0U);
}

TEST_F(SlowNamesTest, AStopDoesNotWaitForOne) {
  RawClient client(port());
  client.Send(Text(Target("some.example")));
  AwaitOpen(1);
  Stop();
}

TEST_F(TunnelTest, BeyondTheLimitOneIsToldSo) {
  options_.tunnels = 2;
  auto first = Open(Target()), second = Open(Target());
  const RawResponse answer = Ask(Target());
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.Header("Retry-After"), "");
  EXPECT_EQ(counts().refused.load(), 1U);
  End end = upstream_.Accept();
  first.reset();
  EXPECT_TRUE(end.Ended());
  end.Close();
  AwaitOpen(1);
  Open(Target());
}

TEST_F(TunnelTest, AnIdleOneEnds) {
  options_.limits.idle_time = milliseconds(700);
  auto client = Open(Target());
  End end = upstream_.Accept();
  for (int i = 0; i < 5; ++i) {  // longer than that, but not idle
    std::this_thread::sleep_for(milliseconds(250));
    end.Send("x");
    ASSERT_EQ(client->Read(1), "x");
  }
  EXPECT_EQ(client->ReadToEnd(), "");
  EXPECT_EQ(client->state(), RawClient::State::kReset);
  EXPECT_TRUE(end.WasReset());
  AwaitOpen(0);
}

TEST_F(TunnelTest, OneThatHasMovedTooMuchIsCutOff) {
  options_.limits.bytes = 1 << 20;
  auto client = Open(Target());
  End end = upstream_.Accept();
  const std::string bytes = Pattern(1 << 19, 6);
  end.Send(bytes);
  EXPECT_TRUE(client->Read(bytes.size()) == bytes);
  client->Send(bytes);
  EXPECT_TRUE(end.Read(bytes.size()) == bytes);
  end.Send("x");
  EXPECT_LE(client->ReadToEnd().size(), 1U);
  AwaitOpen(0);
}

TEST_F(TunnelTest, AStopCutsThemOff) {
  auto client = Open(Target());
  End end = upstream_.Accept();
  // One that is being made.
  Upstream silent("127.0.0.3", upstream_.port(), 0);
  silent.Fall();
  names_["silent.example"] = {"127.0.0.3"};
  RawClient waiting(port());
  waiting.Send(Text(Target("silent.example")));
  AwaitOpen(2);
  const auto begun = std::chrono::steady_clock::now();
  std::future<void> stopped = std::async(std::launch::async, [this] { Stop(); });
  // Not before its time: what goes on in the meantime gets through.
  client->Send("still");
  EXPECT_EQ(end.Read(5), "still");
  stopped.get();
  EXPECT_GE(std::chrono::steady_clock::now() - begun, server_options_.limits.drain_time);
  EXPECT_TRUE(end.WasReset());
  EXPECT_EQ(client->ReadToEnd(), "");
  EXPECT_EQ(client->state(), RawClient::State::kReset);
}

}  // namespace
}  // namespace dartfs::httpd
