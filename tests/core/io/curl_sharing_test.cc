// Many calls at once: order, limits, throttling, one origin's trouble not being another's, and
// ends that come exactly once whatever happens.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fake/seeded_random.h"
#include "http_fixture.h"
#include "raw_server.h"

namespace dartfs::core {
namespace {

using Connection = RawServer::Connection;
using std::chrono::milliseconds;
using std::chrono::seconds;

void ServeHi(Connection& c) {
  while (c.ReadRequest()) c.Write(Ok("hi"));
}
void Silent(Connection& c) {
  while (c.ReadRequest()) continue;
}
std::string PathOf(const std::string& request) {
  return request.substr(4, request.find(' ', 4) - 4);
}

class CurlSharingTest : public HttpClientTest {
 protected:
  static HttpRequest With(const std::string& url, Priority priority) {
    HttpRequest request = Get(url);
    request.priority = priority;
    return request;
  }
  // Answers one request each time the test opens the gate.
  class Gate {
   public:
    void Open(int count) {
      MutexLock lock(mu_);
      open_ += count;
      changed_.NotifyAll();
    }
    void Pass() {
      MutexLock lock(mu_);
      const TimePoint end = RealClock().Now() + seconds(20);
      while (open_ == 0 && RealClock().Now() < end) changed_.WaitFor(mu_, milliseconds(100));
      if (open_ > 0) --open_;
    }

   private:
    Mutex mu_;
    CondVar changed_;
    int open_ GUARDED_BY(mu_) = 0;
  };
};

TEST_F(CurlSharingTest, DemandGoesFirstAndRaisedCallsOvertake) {
  Gate gate;
  RawServer server([&](Connection& c) {
    while (c.ReadRequest()) {
      gate.Pass();
      c.Write(Ok("hi"));
    }
  });
  HttpClientOptions options = Options();
  options.connections_per_origin = 1;
  Make(options);
  std::vector<SinkPtr> sinks;
  sinks.push_back(Start(Get(server.Url("/first"))));
  ASSERT_TRUE(server.WaitForRequests(1));
  sinks.push_back(Start(With(server.Url("/background"), Priority::kBackground)));
  sinks.push_back(Start(With(server.Url("/ahead"), Priority::kReadAhead)));
  std::shared_ptr<HttpCall> raised;
  sinks.push_back(Start(With(server.Url("/raised"), Priority::kBackground), &raised));
  sinks.push_back(Start(Get(server.Url("/demand"))));
  raised->Raise(Priority::kDemand);
  gate.Open(5);
  for (const auto& sink : sinks) ASSERT_TRUE(sink->WaitDone());
  std::vector<std::string> order;
  for (const std::string& request : server.requests()) order.push_back(PathOf(request));
  EXPECT_EQ(order,
            (std::vector<std::string>{"/first", "/raised", "/demand", "/ahead", "/background"}));
}

TEST_F(CurlSharingTest, ReadAheadNeverTakesTheLastTwoConnections) {
  RawServer server([](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      if (PathOf(*request) == "/demand") c.Write(Ok("hi"));
    }
  });
  HttpClientOptions options = Options();
  options.connections_per_origin = 6;
  Make(options);
  std::vector<SinkPtr> ahead;
  for (int i = 0; i < 20; ++i) {
    ahead.push_back(Start(With(server.Url("/ahead"), Priority::kReadAhead)));
  }
  ASSERT_TRUE(server.WaitForRequests(4));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Fetch(server.Url("/demand"))->ok());
  EXPECT_EQ(StatusOf(server.Authority()).active, 4U);
  EXPECT_EQ(StatusOf(server.Authority()).queued, 16U);
  client().Stop();
  for (const auto& sink : ahead) EXPECT_EQ(sink->code(), Code::kCancelled);
}

TEST_F(CurlSharingTest, FullQueueIsBusyAndCounted) {
  RawServer server(Silent);
  HttpClientOptions options = Options();
  options.connections_per_origin = 1;
  options.queue_per_origin = 2;
  Make(options);
  Start(Get(server.Url("/1")));
  ASSERT_TRUE(server.WaitForRequests(1));
  Start(Get(server.Url("/2")));
  Start(Get(server.Url("/3")));
  const SinkPtr refused = Fetch(server.Url("/4"));
  EXPECT_EQ(refused->code(), Code::kBusy);
  const OriginStatus status = StatusOf(server.Authority());
  EXPECT_EQ(status.refused, 1U);
  EXPECT_EQ(status.queued, 2U);
  EXPECT_EQ(status.active, 1U);
}

TEST_F(CurlSharingTest, StalledOriginDelaysNoOther) {
  RawServer stalled([](Connection& c) {
    if (c.ReadRequest()) c.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    c.WaitClosed();
  });
  RawServer healthy(ServeHi);
  HttpClientOptions options = Options();
  options.threads = 1;  // both on one thread
  options.connections_per_origin = 64;
  Make(options);
  std::vector<SinkPtr> hanging;
  for (int i = 0; i < 64; ++i) {
    HttpRequest request = Get(stalled.Url("/x"));
    request.deadline = RealClock().Now() + milliseconds(700);
    hanging.push_back(Start(request));
  }
  ASSERT_TRUE(stalled.WaitForRequests(64));
  size_t done = 0;
  for (; done < 100; ++done) ASSERT_TRUE(Fetch(healthy.Url("/x"))->ok());
  for (const auto& sink : hanging) {
    ASSERT_TRUE(sink->WaitDone());
    EXPECT_EQ(sink->code(), Code::kDeadlineExceeded);
    EXPECT_EQ(sink->status(), 200);
  }
  EXPECT_TRUE(RawServer::WaitFor([&] { return stalled.open_connections() == 0; }));
}

TEST_F(CurlSharingTest, ThrottleEndsReadAheadAndHoldsDemand) {
  std::atomic<bool> throttling{true};
  RawServer server([&](Connection& c) {
    while (c.ReadRequest()) {
      c.Write(throttling ? "HTTP/1.1 429 Slow Down\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
                         : Ok("hi"));
    }
  });
  EXPECT_FALSE(client().Throttled(server.Authority()));
  const SinkPtr first = Fetch(server.Url("/1"));
  ASSERT_TRUE(first->ok());
  EXPECT_EQ(first->status(), 429);
  EXPECT_TRUE(client().Throttled(server.Authority()));
  EXPECT_GT(StatusOf(server.Authority()).throttled_ms, 0);
  const SinkPtr ahead = Fetch(With(server.Url("/2"), Priority::kReadAhead));
  EXPECT_EQ(ahead->code(), Code::kTooManyRequests);
  EXPECT_GE(ahead->error().retry_after_ms, 0);
  throttling = false;
  const SinkPtr demand = Start(Get(server.Url("/3")));
  EXPECT_FALSE(demand->WaitDone(milliseconds(200))) << "it waits";
  ASSERT_TRUE(demand->WaitDone());
  EXPECT_EQ(demand->body(), "hi");
  EXPECT_FALSE(client().Throttled(server.Authority()));
  EXPECT_TRUE(Fetch(With(server.Url("/4"), Priority::kReadAhead))->ok());
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(CurlSharingTest, QueuedReadAheadEndsWhenAThrottleBegins) {
  Gate gate;
  RawServer server([&](Connection& c) {
    while (c.ReadRequest()) {
      gate.Pass();
      c.Write("HTTP/1.1 503 x\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n");
    }
  });
  HttpClientOptions options = Options();
  options.connections_per_origin = 1;
  Make(options);
  const SinkPtr first = Start(Get(server.Url("/1")));
  ASSERT_TRUE(server.WaitForRequests(1));
  const SinkPtr ahead = Start(With(server.Url("/2"), Priority::kReadAhead));
  std::shared_ptr<HttpCall> waiting_call;
  const SinkPtr waiting = Start(Get(server.Url("/3")), &waiting_call);
  gate.Open(1);
  ASSERT_TRUE(first->WaitDone());
  ASSERT_TRUE(ahead->WaitDone());
  EXPECT_EQ(ahead->code(), Code::kTooManyRequests);
  EXPECT_FALSE(waiting->done());
  waiting_call->Cancel();
  ASSERT_TRUE(waiting->WaitDone());
  EXPECT_EQ(waiting->code(), Code::kCancelled);
}

TEST_F(CurlSharingTest, CancelWhileWaitingRunningPausedAndDone) {
  RawServer server([](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      if (PathOf(*request) == "/ok") c.Write(Ok("hi"));
      if (PathOf(*request) == "/body") c.Write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    }
  });
  HttpClientOptions options = Options();
  options.connections_per_origin = 2;
  Make(options);
  std::shared_ptr<HttpCall> running;
  std::shared_ptr<HttpCall> paused;
  std::shared_ptr<HttpCall> waiting;
  const SinkPtr running_sink = Start(Get(server.Url("/body")), &running);
  auto paused_sink = std::make_shared<RecordingSink>();
  paused_sink->on_body = [](std::span<const std::byte>) { return BodyVerdict::kPause; };
  paused = client().Start(Get(server.Url("/body")), paused_sink);
  ASSERT_TRUE(
      RawServer::WaitFor([&] { return running_sink->has_head() && paused_sink->has_head(); }));
  const SinkPtr waiting_sink = Start(Get(server.Url("/ok")), &waiting);
  for (const auto& call : {waiting, paused, running}) {
    call->Cancel();
    call->Cancel();
  }
  for (const SinkPtr& sink : {waiting_sink, paused_sink, running_sink}) {
    ASSERT_TRUE(sink->WaitDone());
    EXPECT_EQ(sink->code(), Code::kCancelled);
  }
  std::shared_ptr<HttpCall> done;
  const SinkPtr done_sink = Start(Get(server.Url("/ok")), &done);
  ASSERT_TRUE(done_sink->WaitDone());
  done->Cancel();
  done->Resume();
  done->Raise(Priority::kDemand);
  EXPECT_TRUE(Fetch(server.Url("/ok"))->ok());
  EXPECT_TRUE(done_sink->ok());
  EXPECT_EQ(StatusOf(server.Authority()).failures, 0U) << "a cancellation is nobody's failure";
  EXPECT_TRUE(RawServer::WaitFor([&] { return server.open_connections() == 1; }));
}

TEST_F(CurlSharingTest, CancelFromInsideTheSink) {
  RawServer server([](Connection& c) {
    while (c.ReadRequest()) c.Write(Ok(Pattern(1 << 20)));
  });
  auto sink = std::make_shared<RecordingSink>();
  std::shared_ptr<HttpCall> call;
  std::atomic<bool> known{false};
  sink->on_body = [&](std::span<const std::byte>) -> Result<BodyVerdict> {
    while (!known) std::this_thread::yield();
    call->Cancel();
    return BodyVerdict::kTaken;
  };
  call = client().Start(Get(server.Url("/x")), sink);
  known = true;
  ASSERT_TRUE(sink->WaitDone());
  EXPECT_EQ(sink->code(), Code::kCancelled);
  EXPECT_LT(sink->body().size(), size_t{1} << 20);
}

TEST_F(CurlSharingTest, StopEndsEverythingAndLaterCallsToo) {
  RawServer server(Silent);
  HttpClientOptions options = Options();
  options.connections_per_origin = 2;
  Make(options);
  std::vector<SinkPtr> sinks;
  std::vector<std::shared_ptr<HttpCall>> calls(10);
  for (auto& call : calls) sinks.push_back(Start(Get(server.Url("/x")), &call));
  ASSERT_TRUE(server.WaitForRequests(2));
  client().Stop();
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->done()) << "Stop waits";
    EXPECT_EQ(sink->code(), Code::kCancelled);
  }
  client().Stop();
  const SinkPtr late = Fetch(server.Url("/x"));
  EXPECT_EQ(late->code(), Code::kCancelled);
  EXPECT_EQ(Fetch("not a URL")->code(), Code::kCancelled);
  client_.reset();
  for (auto& call : calls) {  // a call outlives its client
    call->Cancel();
    call->Resume();
    call->Raise(Priority::kDemand);
  }
}

// Calls begin, are cancelled, resumed and raised from many threads while origins answer, break and
// stall: every sink ends exactly once (RecordingSink checks), and nothing hangs or races.
TEST_F(CurlSharingTest, Storm) {
  const uint64_t seed = TestSeed();
  const auto handler = [](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      const std::string path = PathOf(*request);
      if (path == "/reset") return c.ResetAtEnd();
      if (path == "/hangup") return;
      if (path == "/silent") return c.WaitClosed();
      if (path == "/redirect")
        c.Write("HTTP/1.1 302 x\r\nLocation: /ok\r\nContent-Length: 0\r\n\r\n");
      if (path == "/short") {
        c.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
        return;
      }
      if (path == "/busy") c.Write("HTTP/1.1 404 x\r\nContent-Length: 5\r\n\r\nno no");
      if (path == "/ok") c.Write(Ok(Pattern(70000)));
    }
  };
  RawServer a(handler);
  RawServer b(handler);
  HttpClientOptions options = Options();
  options.connections_per_origin = 6;
  options.queue_per_origin = 50;
  Make(options);
  constexpr int kThreads = 4;
  constexpr int kCalls = 150;
  std::vector<std::vector<SinkPtr>> sinks(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      SeededRandom random(seed + static_cast<uint64_t>(t));
      constexpr const char* kPaths[] = {"/ok",     "/ok",       "/reset", "/hangup",
                                        "/silent", "/redirect", "/short", "/busy"};
      for (int i = 0; i < kCalls; ++i) {
        RawServer& server = random.Below(2) == 0 ? a : b;
        HttpRequest request = Get(server.Url(kPaths[random.Below(8)]));
        request.priority = static_cast<Priority>(random.Below(3));
        request.stall_timeout = milliseconds(200);
        request.first_byte_timeout = milliseconds(50 + random.Below(100));
        auto sink = std::make_shared<RecordingSink>();
        const uint64_t kind = random.Below(6);
        if (kind == 0) {
          sink->on_head = [](const HttpHead&) -> Status { return MakeError(Code::kStale, "x"); };
        }
        auto pauses = std::make_shared<std::atomic<int>>(kind == 1 ? 2 : 0);
        sink->on_body = [pauses](std::span<const std::byte>) -> Result<BodyVerdict> {
          return pauses->fetch_sub(1) > 0 ? BodyVerdict::kPause : BodyVerdict::kTaken;
        };
        auto call = client().Start(request, sink);
        sinks[static_cast<size_t>(t)].push_back(sink);
        if (random.Below(3) == 0) std::this_thread::sleep_for(milliseconds(random.Below(4)));
        if (random.Below(3) == 0) call->Cancel();
        if (random.Below(3) == 0) call->Raise(Priority::kDemand);
        call->Resume();
        if (kind == 1 && random.Below(2) == 0) call->Cancel();
        while (kind == 1 && !sink->done()) {
          call->Resume();
          std::this_thread::yield();
        }
        if (random.Below(16) == 0) client().Origins();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<Code, int> codes;
  int good = 0;
  for (const auto& list : sinks) {
    for (const SinkPtr& sink : list) {
      ASSERT_TRUE(sink->WaitDone());
      if (!sink->ok()) {
        ++codes[sink->code()];
      } else if (sink->status() == 200) {
        ++good;
        EXPECT_TRUE(sink->body() == Pattern(70000));
      }
    }
  }
  EXPECT_GT(good, 0);
  EXPECT_EQ(codes[Code::kInternal], 0);
  for (const auto& status : client().Origins()) {
    EXPECT_EQ(status.queued, 0U);
    EXPECT_TRUE(RawServer::WaitFor([&] { return StatusOf(status.authority).active == 0; }));
  }
}

// Stop, in the middle of it all.
TEST_F(CurlSharingTest, StopDuringAStorm) {
  for (int round = 0; round < 5; ++round) {
    RawServer server([](Connection& c) {
      while (c.ReadRequest()) c.Write(Ok(Pattern(50000)));
    });
    Make(Options());
    std::atomic<bool> stop{false};
    std::vector<SinkPtr> sinks;
    std::thread starter([&] {
      while (!stop && sinks.size() < 3000) {
        auto sink = std::make_shared<RecordingSink>();
        sinks.push_back(sink);
        auto call = client_->Start(Get(server.Url("/x")), sink);
        if (sinks.size() % 3 == 0) call->Cancel();
      }
    });
    ASSERT_TRUE(server.WaitForRequests(5));
    client_->Stop();
    stop = true;
    starter.join();
    for (const SinkPtr& sink : sinks) ASSERT_TRUE(sink->WaitDone());
  }
}

}  // namespace
}  // namespace dartfs::core
