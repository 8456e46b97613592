// A tunnel that has been made: its bytes, its ends, its limits.
#include "httpd/tunnel_relay.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "httpd/tunnel_fixture.h"

namespace dartfs::httpd {
namespace {

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
