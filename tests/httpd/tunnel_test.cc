// CONNECT on the wire: what is refused, and how the other end is found.
#include "httpd/tunnel.h"

#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <string>

#include "httpd/tunnel_fixture.h"

namespace dartfs::httpd {
namespace {

// Else a fast sender and a slow receiver would fill the memory.
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

TEST_F(TunnelTest, WithoutPortsOneIsToldOfTheOption) {
  Start();
  Service shut({}, {});
  auto sockets = Listen({"127.0.0.1", 0});
  ASSERT_TRUE(sockets);
  const uint16_t other = sockets->front().port;
  std::vector<ServedSocket> served;
  served.push_back({std::move(sockets->front()), Listener{}});
  auto server = Server::Start(server_options_, std::move(served), shut);
  ASSERT_TRUE(server);
  RawClient client(other);
  client.Send(Text(Target()));
  const RawResponse answer = client.ReadResponse();
  EXPECT_EQ(answer.status, 403);
  EXPECT_NE(answer.body.find("--connect"), std::string::npos);
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

}  // namespace
}  // namespace dartfs::httpd
