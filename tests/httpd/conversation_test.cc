// Conversations on the wire: what RFC 9112 and CLIENTS.md say of connections, byte for byte.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "httpd/door_fixture.h"

namespace dartfs::httpd {
namespace {

using core::Pattern;
using std::chrono::milliseconds;

class ConversationTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    bytes_ = Pattern(3 * kBlock, 1);
    origin().AddFile("/a", bytes_);
  }
  std::string GetText(const std::string& headers = "", const std::string& version = "HTTP/1.1") {
    return "GET " + Target("/a") + " " + version + "\r\nHost: 127.0.0.1\r\n" + headers + "\r\n";
  }
  std::string bytes_;
};

TEST_F(ConversationTest, AConnectionIsKeptAsTheClientSays) {
  const struct {
    std::string version, connection;
    bool kept;
    std::string said;
  } kRows[] = {
      {"HTTP/1.1", "", true, ""},
      {"HTTP/1.1", "Connection: keep-alive\r\n", true, ""},
      {"HTTP/1.1", "Connection: close\r\n", false, "close"},
      {"HTTP/1.0", "", false, "close"},
      {"HTTP/1.0", "Connection: Keep-Alive\r\n", true, "keep-alive"},
  };
  for (const auto& row : kRows) {
    RawClient client(port());
    for (int round = 0; round < 2; ++round) {
      client.Send(GetText(row.connection + Range("bytes=0-9"), row.version));
      const RawResponse answer = client.ReadResponse();
      EXPECT_EQ(answer.body, bytes_.substr(0, 10)) << row.version << row.connection;
      EXPECT_EQ(answer.Header("Connection"), row.said);
      if (!row.kept) break;
    }
    if (!row.kept) {
      EXPECT_EQ(client.ReadToEnd(), "");
      EXPECT_EQ(client.state(), RawClient::State::kClosed);
    }
  }
}

TEST_F(ConversationTest, PipelinedRequestsAreAnsweredInOrder) {
  std::string requests;
  constexpr int kRequests = 300;
  for (int i = 0; i < kRequests; ++i) {
    requests += GetText(Range("bytes=" + std::to_string(i * 7) + "-" + std::to_string(i * 7 + 6)));
  }
  RawClient client(port());
  std::thread sender([&] { client.Send(requests); });
  for (int i = 0; i < kRequests; ++i) {
    const RawResponse answer = client.ReadResponse();
    ASSERT_EQ(answer.status, 206) << i;
    ASSERT_EQ(answer.body, bytes_.substr(static_cast<size_t>(i) * 7, 7)) << i;
  }
  sender.join();
}

TEST_F(ConversationTest, AHeadThatComesByteByByte) {
  RawClient client(port());
  for (const char c : GetText(Range("bytes=0-9"))) {
    ASSERT_TRUE(client.Send(std::string(1, c)));
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(client.ReadResponse().body, bytes_.substr(0, 10));
}

TEST_F(ConversationTest, AHalfClosedClientIsServed) {
  for (int round = 0; round < 2; ++round) {
    RawClient client(port());
    client.Send(GetText());
    client.FinishSending();
    EXPECT_TRUE(client.ReadResponse().body == bytes_);
    EXPECT_EQ(client.ReadToEnd(), "");
    EXPECT_EQ(client.state(), RawClient::State::kClosed);
  }
}

TEST_F(ConversationTest, WhatIsNoRequestIsRefusedAndTheConnectionEnds) {
  const std::string target = Target("/a");
  const struct {
    std::string request;
    int status;
  } kRows[] = {
      {"GET " + target + " HTTP/1.1\r\n\r\n", 400},  // no Host
      {"GET " + target + " HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"GET " + target +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
           "Content-Length: 1\r\n\r\nx",
       400},
      {"GET " + target +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"GET " + target + " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
       501},
      {"GET " + target +
           " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       400},
      {"GET " + target + " HTTP/2.0\r\nHost: localhost\r\n\r\n", 505},
      {"GET  " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET " + target + " HTTP/1.1\nHost: localhost\n\n", 400},
      {"GET " + target + " HTTP/1.1\r\nHost: localhost\r\nA : b\r\n\r\n", 400},
      {"GET " + target + " HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n", 400},
      {"GET /dart/http://h/\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET /dart/http://h/\xc3\xa4 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET /" + std::string(30'000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(100'000, 'a') + "\r\n\r\n", 431},
      {"\x16\x03\x01 hello\r\n\r\n", 400},
      // A body is 400 for a reading method, and nobody reads it as the next request.
      {"GET " + target +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 33\r\n\r\n"
           "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
       400},
      {"HEAD " + target +
           " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
           "0\r\n\r\n",
       400},
      {"PUT " + target +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n"
           "Expect: 100-continue\r\n\r\n",
       405},
  };
  for (const auto& row : kRows) {
    RawClient client(port());
    client.Send(row.request);
    const RawResponse answer = client.ReadResponse(row.request.rfind("HEAD", 0) == 0);
    EXPECT_EQ(answer.status, row.status) << row.request.substr(0, 200);
    EXPECT_EQ(answer.Header("Connection"), "close") << row.request.substr(0, 200);
    EXPECT_EQ(client.ReadToEnd(), "") << row.request.substr(0, 200);
  }
  EXPECT_TRUE(origin().Log().empty());
}

TEST_F(ConversationTest, WhatIsNoHttpIsToldAtItsFirstBytes) {
  for (const std::string& bytes :
       {std::string("\x16"), std::string("\x16\x03\x01\x02"), std::string("\0\1\2", 3),
        std::string("SSH-2.0-x\r\n"), std::string("GET\r\n"), std::string(40, 'A')}) {
    RawClient client(port());
    const auto begun = std::chrono::steady_clock::now();
    client.Send(bytes);
    EXPECT_EQ(client.ReadResponse().status, 400);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  }
}

TEST_F(ConversationTest, OtherMethodsAreNotAllowed) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"}) {
    const RawResponse answer = Ask(method, "/a");
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.Header("Allow"), "GET, HEAD") << method;
  }
  RawClient client(port());
  client.Send("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.ReadResponse().status, 200);
  EXPECT_TRUE(origin().Log().empty());
}

TEST_F(ConversationTest, AnAnswerThatCanNotBeFinishedIsCutOff) {
  origin().AddFile("/b", Pattern(6 * kBlock, 2));
  origin::FaultRule rule;
  rule.path = "/b";
  rule.fault = origin::Fault::kStatus;
  rule.status = 404;
  rule.min_offset = 3 * kBlock;
  origin().AddFault(rule);
  RawClient client(port());
  client.Send("GET " + Target("/b") + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const RawResponse answer = client.ReadResponse();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body == Pattern(6 * kBlock, 2).substr(0, 3 * kBlock)) << answer.body.size();
  EXPECT_NE(client.state(), RawClient::State::kOpen);
  EXPECT_EQ(server_->stats().cut_off, 1u);
}

TEST_F(ConversationTest, SlowHeadsAndIdleConnectionsEnd) {
  server_options_.limits.head_time = milliseconds(300);
  server_options_.limits.idle_time = milliseconds(600);
  RawClient slow(port());
  RawClient idle(port());
  slow.Send("GET / HTT");
  const RawResponse late = slow.ReadResponse();
  EXPECT_EQ(late.status, 408);
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_EQ(idle.state(), RawClient::State::kClosed);
  // Activity of another kind does not count: a byte now and then is no request.
  RawClient dripping(port());
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 100 && dripping.Send("G"); ++i) {
    std::this_thread::sleep_for(milliseconds(50));
    if (!dripping.SilentFor(milliseconds(1))) break;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(3));
}

TEST_F(ConversationTest, AClientThatTakesNothingIsCutOffAndHoldsNoMemoryUntilThen) {
  server_options_.limits.send_time = milliseconds(1500);
  server_options_.limits.rest_after = milliseconds(100);
  const std::string large = Pattern(400 * kBlock, 3);  // more than sockets hold
  origin().AddFile("/large", large);
  const std::string request = "GET " + Target("/large") + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawClient client(port());
  client.Send(request);
  std::this_thread::sleep_for(milliseconds(900));
  EXPECT_EQ(engine_->Stats().inflight_bytes, 0u);
  RawClient reads_later(port());
  reads_later.Send(request);
  std::this_thread::sleep_for(milliseconds(900));
  EXPECT_TRUE(reads_later.ReadResponse().body == large);
  for (int i = 0; i < 50 && server_->stats().cut_off == 0; ++i) {
    std::this_thread::sleep_for(milliseconds(100));
  }
  EXPECT_EQ(server_->stats().cut_off, 1u);
}

TEST_F(ConversationTest, BeyondTheLimitClientsAreToldToComeBack) {
  server_options_.limits.connections = 3;
  std::vector<std::unique_ptr<RawClient>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::make_unique<RawClient>(port()));
    held.back()->Send(GetText(Range("bytes=0-0")));
    ASSERT_EQ(held.back()->ReadResponse().status, 206);
  }
  const RawResponse refused = Get("/a");
  EXPECT_EQ(refused.status, 503);
  EXPECT_FALSE(refused.Header("Retry-After").empty());
  EXPECT_NE(refused.body.find("--max-connections"), std::string::npos);
  held.pop_back();
  int status = 0;  // of the first that is let in: its connection counts a moment longer
  for (int i = 0; i < 50 && status != 200; ++i) {
    std::this_thread::sleep_for(milliseconds(20));
    status = Get("/a").status;
  }
  EXPECT_EQ(status, 200);
}

TEST_F(ConversationTest, BeyondTheLimitTheOperatorIsLetIn) {
  class Healthy final : public Handler {
    void Handle(ExchangePtr exchange) override { exchange->RespondText(200, "ok\n"); }
  } healthy;
  admin_ = &healthy;
  server_options_.limits.connections = 1;
  RawClient held(port());
  held.Send(GetText(Range("bytes=0-0")));
  ASSERT_EQ(held.ReadResponse().status, 206);
  const RawResponse answer = origin::Get(port(), "/healthz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_EQ(Get("/a").status, 503);
  StopDoor();
}

TEST_F(ConversationTest, ADrainLetsAnswersEndAndNoNewOnesBegin) {
  server_options_.limits.drain_time = std::chrono::seconds(8);
  origin::Behaviour slow = origin().behaviour();
  slow.delay_ms = 700;
  ASSERT_EQ(Get("/a", Range("bytes=0-0")).status, 206);
  origin().SetBehaviour(slow);
  RawClient idle(port());
  idle.Send(GetText(Range("bytes=0-0")));
  ASSERT_EQ(idle.ReadResponse().status, 206);
  RawClient busy(port());
  busy.Send(GetText(Range("bytes=100000-100009")));
  std::this_thread::sleep_for(milliseconds(200));
  std::thread stop([&] { server_->Drain(); });
  const RawResponse answer = busy.ReadResponse();
  EXPECT_EQ(answer.body, bytes_.substr(100000, 10));
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_EQ(idle.ReadToEnd(), "");
  stop.join();
  EXPECT_FALSE(RawClient(port()).connected());
  EXPECT_EQ(server_->stats().connections, 0u);
}

TEST_F(ConversationTest, WhoHasJustConnectedIsAnsweredInADrain) {
  ASSERT_EQ(Get("/a").status, 200);
  RawClient client(port()), silent(port());
  while (server_->stats().connections < 2) std::this_thread::sleep_for(milliseconds(1));
  std::thread stop([&] { server_->Drain(); });
  std::this_thread::sleep_for(milliseconds(100));
  client.Send(GetText(Range("bytes=0-9")));
  EXPECT_EQ(client.ReadResponse().body, bytes_.substr(0, 10));
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_EQ(silent.state(), RawClient::State::kClosed);
  stop.join();
  EXPECT_EQ(server_->stats().connections, 0u);
}

TEST_F(ConversationTest, ADrainEndsThoughAClientTakesNothing) {
  server_options_.limits.drain_time = milliseconds(500);
  origin().AddFile("/large", Pattern(400 * kBlock, 3));
  RawClient client(port());
  client.Send("GET " + Target("/large") + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::this_thread::sleep_for(milliseconds(300));
  const auto begun = std::chrono::steady_clock::now();
  server_->Drain();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(3));
  EXPECT_EQ(server_->stats().connections, 0u);
}

TEST_F(ConversationTest, AStalledOriginHoldsUpNobodyElse) {
  server_options_.threads = 1;
  ASSERT_EQ(Get("/a").body.size(), bytes_.size());
  origin::FaultRule rule;
  rule.path = "/stalled";
  rule.fault = origin::Fault::kStallHead;
  origin().AddFault(rule);
  origin().AddFile("/stalled", bytes_);
  std::vector<std::unique_ptr<RawClient>> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(std::make_unique<RawClient>(port()));
    waiting.back()->Send("GET " + Target("/stalled") + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(Get("/a").body == bytes_);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(1));
}

}  // namespace
}  // namespace dartfs::httpd
