// Origins that break: which error, what text, and nothing that looks like success.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "http_fixture.h"
#include "raw_server.h"

namespace dartfs::core {
namespace {

using Connection = RawServer::Connection;
using std::chrono::milliseconds;
using std::chrono::seconds;

class CurlFaultTest : public HttpClientTest {
 protected:
  // A server that answers each connection's first request with `bytes` and closes.
  static RawServer::Handler Once(std::string bytes) {
    return [bytes = std::move(bytes)](Connection& c) {
      if (c.ReadRequest()) c.Write(bytes);
    };
  }
  static RawServer::Handler ThenSilence(std::string bytes) {
    return [bytes = std::move(bytes)](Connection& c) {
      if (!c.ReadRequest()) return;
      c.Write(bytes);
      c.WaitClosed();
    };
  }
  void ExpectText(const SinkPtr& sink, const std::string& part) {
    EXPECT_NE(sink->error().context.find(part), std::string::npos) << sink->error().context;
  }
};

TEST_F(CurlFaultTest, BrokenAnswers) {
  struct Case {
    const char* name;
    std::string answer;
    Code code;
  };
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::vector<Case> cases = {
      {"short body", head + "Content-Length: 100\r\n\r\nshort", Code::kUnavailable},
      {"no body at all", head + "Content-Length: 100\r\n\r\n", Code::kUnavailable},
      {"short chunk", head + "Transfer-Encoding: chunked\r\n\r\n10\r\nshort", Code::kUnavailable},
      {"no last chunk", head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
       Code::kUnavailable},
      {"bad chunk size", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
       Code::kUnavailable},
      {"no answer", "", Code::kUnavailable},
      {"half a head", head + "Content-Le", Code::kUnavailable},
      {"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n", Code::kBadResponse},
      {"HTTP/0.9", "<html>hello</html>", Code::kBadResponse},
      {"unlike lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
       Code::kBadResponse},
      {"unlike lengths, larger first", head + "Content-Length: 3\r\nContent-Length: 2\r\n\r\nhi!",
       Code::kBadResponse},
      {"length and chunked",
       head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
       Code::kBadResponse},
      {"negative length", head + "Content-Length: -2\r\n\r\nhi", Code::kBadResponse},
      {"switching protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
       Code::kBadResponse},
      {"head of 100 KiB in small lines",
       head +
           [] {
             std::string lines;
             for (int i = 0; i < 100; ++i) lines += "X: " + std::string(1020, 'x') + "\r\n";
             return lines;
           }() +
           "Content-Length: 0\r\n\r\n",
       Code::kBadResponse},
      {"head of one line of 200 KiB", head + "X: " + std::string(200000, 'x') + "\r\n\r\n",
       Code::kBadResponse},
      {"a NUL in a header", head + std::string("X: a\0b\r\n\r\n", 10), Code::kBadResponse},
      {"no colon", head + "oops\r\n\r\n", Code::kBadResponse},
  };
  for (const Case& c : cases) {
    RawServer server(Once(c.answer));
    const SinkPtr sink = Fetch(server.Url("/x?token=secret"));
    ASSERT_FALSE(sink->ok()) << c.name;
    EXPECT_EQ(sink->code(), c.code) << c.name << ": " << sink->error().context;
    ExpectText(sink, server.HostPort());
    EXPECT_EQ(sink->error().context.find("secret"), std::string::npos) << sink->error().context;
  }
}

TEST_F(CurlFaultTest, EndlessInterimAnswersEnd) {
  RawServer server([](Connection& c) {
    if (!c.ReadRequest()) return;
    while (c.Write("HTTP/1.1 100 Continue\r\n\r\n")) continue;
  });
  const SinkPtr sink = Fetch(server.Url("/x"));
  EXPECT_EQ(sink->code(), Code::kBadResponse) << sink->error().context;
}

TEST_F(CurlFaultTest, ResetInTheMiddleGivesWhatCameAndAnError) {
  const std::string part = Pattern(200000);
  RawServer server([&](Connection& c) {
    if (!c.ReadRequest()) return;
    c.Write("HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n" + part);
    std::this_thread::sleep_for(milliseconds(50));
    c.ResetAtEnd();
  });
  const SinkPtr sink = Fetch(server.Url("/x"));
  EXPECT_EQ(sink->code(), Code::kUnavailable);
  EXPECT_EQ(sink->body(), part.substr(0, sink->body().size()));
  EXPECT_EQ(StatusOf(server.Authority()).failures, 1U);
  EXPECT_NE(StatusOf(server.Authority()).last_error, "");
}

TEST_F(CurlFaultTest, NobodyThere) {
  std::string url;
  {
    RawServer gone([](Connection&) {});
    url = gone.Url("/x");
  }
  const SinkPtr sink = Fetch(url);
  EXPECT_EQ(sink->code(), Code::kUnavailable);
  EXPECT_EQ(sink->error().sys_errno, ECONNREFUSED);
  ExpectText(sink, "127.0.0.1");
}

TEST_F(CurlFaultTest, UnknownHost) {
  const SinkPtr sink = Fetch("http://no-such-host.invalid/x");
  EXPECT_EQ(sink->code(), Code::kUnavailable);
  ExpectText(sink, "no-such-host.invalid");
}

TEST_F(CurlFaultTest, ReusedConnectionThatBreaksInTheAnswerIsNotRetried) {
  RawServer server([](Connection& c) {
    if (c.ReadRequest()) c.Write(Ok("hi"));
    if (c.ReadRequest()) c.Write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
  });
  ASSERT_TRUE(Fetch(server.Url("/1"))->ok());
  EXPECT_EQ(Fetch(server.Url("/2"))->code(), Code::kUnavailable);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(CurlFaultTest, SilenceBeforeTheHead) {
  RawServer server(ThenSilence(""));
  HttpRequest request = Get(server.Url("/x"));
  request.first_byte_timeout = milliseconds(100);
  const SinkPtr sink = Fetch(request);
  EXPECT_EQ(sink->code(), Code::kDeadlineExceeded);
  ExpectText(sink, "no answer within 100 ms");
  EXPECT_TRUE(RawServer::WaitFor([&] { return server.open_connections() == 0; }));
}

TEST_F(CurlFaultTest, AHeadThatDripsIsLateToo) {
  RawServer server([](Connection& c) {
    c.ReadRequest();
    c.Write("HTTP/1.1 200 OK\r\n");
    while (c.Write("X: y\r\n")) std::this_thread::sleep_for(milliseconds(10));
  });
  HttpRequest request = Get(server.Url("/x"));
  request.first_byte_timeout = milliseconds(150);
  EXPECT_EQ(Fetch(request)->code(), Code::kDeadlineExceeded);
}

TEST_F(CurlFaultTest, SilenceInTheBody) {
  RawServer server(ThenSilence("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345"));
  HttpRequest request = Get(server.Url("/x"));
  request.stall_timeout = milliseconds(100);
  const SinkPtr sink = Fetch(request);
  EXPECT_EQ(sink->code(), Code::kDeadlineExceeded);
  EXPECT_EQ(sink->body(), "12345");
  ExpectText(sink, "no byte of the body for 100 ms, after 5 bytes");
}

TEST_F(CurlFaultTest, SlowButSteadyIsNoStall) {
  RawServer server([](Connection& c) {
    c.ReadRequest();
    c.Write("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n");
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(milliseconds(20));
      c.Write("x");
    }
  });
  HttpRequest request = Get(server.Url("/x"));
  request.stall_timeout = milliseconds(300);
  const SinkPtr sink = Fetch(request);
  EXPECT_TRUE(sink->ok()) << sink->error().context;
}

TEST_F(CurlFaultTest, TheWholeCallsDeadline) {
  RawServer server(ThenSilence("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n12345"));
  HttpRequest request = Get(server.Url("/x"));
  request.deadline = RealClock().Now() + milliseconds(100);
  const SinkPtr sink = Fetch(request);
  EXPECT_EQ(sink->code(), Code::kDeadlineExceeded);
  ExpectText(sink, "reading the body");
}

TEST_F(CurlFaultTest, TheDeadlineCountsTheQueue) {
  HttpClientOptions options = Options();
  options.connections_per_origin = 1;
  Make(options);
  RawServer server(ThenSilence(""));
  const SinkPtr first = Start(Get(server.Url("/1")));
  ASSERT_TRUE(server.WaitForRequests(1));
  HttpRequest request = Get(server.Url("/2"));
  request.deadline = RealClock().Now() + milliseconds(100);
  const SinkPtr second = Fetch(request);
  EXPECT_EQ(second->code(), Code::kDeadlineExceeded);
  ExpectText(second, "waiting for its turn");
  EXPECT_FALSE(first->done());
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(StatusOf(server.Authority()).queued, 0U);
}

TEST_F(CurlFaultTest, PastDeadlineEndsAtOnce) {
  RawServer server(ThenSilence(""));
  HttpRequest request = Get(server.Url("/x"));
  request.deadline = RealClock().Now() - seconds(1);
  EXPECT_EQ(Fetch(request)->code(), Code::kDeadlineExceeded);
}

// A listener whose backlog is full drops the SYN: connecting takes for ever.
TEST_F(CurlFaultTest, ConnectTimeout) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::vector<int> fillers;
  for (int i = 0; i < 4; ++i) {
    fillers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    connect(fillers.back(), reinterpret_cast<sockaddr*>(&address), size);
  }
  HttpClientOptions options = Options();
  options.connect_timeout = milliseconds(200);
  Make(options);
  const SinkPtr sink = Fetch("http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/x");
  EXPECT_EQ(sink->code(), Code::kDeadlineExceeded) << sink->error().context;
  ExpectText(sink, "no connection within 200 ms");
  for (const int fd : fillers) close(fd);
  close(listener);
}

TEST_F(CurlFaultTest, BadRequestsEndOffTheCallersStack) {
  for (const char* url : {"", "ftp://h/x", "http://h/a b", "http://u:p@h/", "x"}) {
    const SinkPtr sink = Fetch(url);
    EXPECT_EQ(sink->code(), Code::kInvalidArgument) << url;
  }
}

TEST_F(CurlFaultTest, AddressesAreRefusedBeforeConnecting) {
  for (const char* url :
       {"http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/x", "http://2852039166/",
        "http://[::ffff:169.254.169.254]/", "http://[64:ff9b::a9fe:a9fe]/", "http://0xa9fea9fe/"}) {
    const SinkPtr sink = Fetch(url);
    EXPECT_EQ(sink->code(), Code::kRefused) << url << ": " << sink->error().context;
    ExpectText(sink, "--allow-link-local");
  }
}

TEST_F(CurlFaultTest, RefusedBySink) {
  RawServer server([](Connection& c) {
    while (c.ReadRequest()) c.Write(Ok(Pattern(100000)));
  });
  auto sink = std::make_shared<RecordingSink>();
  sink->on_head = [](const HttpHead&) -> Status { return MakeError(Code::kStale, "another"); };
  client().Start(Get(server.Url("/x")), sink);
  ASSERT_TRUE(sink->WaitDone());
  EXPECT_EQ(sink->code(), Code::kStale);
  EXPECT_EQ(sink->body(), "");

  auto body_sink = std::make_shared<RecordingSink>();
  body_sink->on_body = [](std::span<const std::byte>) -> Result<BodyVerdict> {
    return MakeError(Code::kBadResponse, "unlike bytes");
  };
  client().Start(Get(server.Url("/x")), body_sink);
  ASSERT_TRUE(body_sink->WaitDone());
  EXPECT_EQ(body_sink->code(), Code::kBadResponse);
  EXPECT_EQ(server.connections(), 2U) << "100 KB that nobody wants are not read";
}

// A short body that the sink does not want is read away, so that the connection stays.
TEST_F(CurlFaultTest, SmallRefusedBodiesKeepTheConnection) {
  RawServer server([](Connection& c) {
    while (c.ReadRequest()) {
      c.Write("HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found");
    }
  });
  for (int i = 0; i < 10; ++i) {
    auto sink = std::make_shared<RecordingSink>();
    sink->on_head = [](const HttpHead&) -> Status { return MakeError(Code::kNotFound, "404"); };
    client().Start(Get(server.Url("/x")), sink);
    ASSERT_TRUE(sink->WaitDone());
    EXPECT_EQ(sink->code(), Code::kNotFound);
  }
  EXPECT_EQ(server.connections(), 1U);
}

// ... and its call does not wait for that.
TEST_F(CurlFaultTest, RefusedBodyThatStallsDelaysNobody) {
  HttpClientOptions options = Options();
  options.connections_per_origin = 1;
  Make(options);
  RawServer server([](Connection& c) {
    if (!c.ReadRequest()) return;
    if (c.number > 0) {
      c.Write(Ok("hi"));
      return;
    }
    c.Write("HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nno");
    c.WaitClosed();
  });
  auto sink = std::make_shared<RecordingSink>();
  sink->on_head = [](const HttpHead&) -> Status { return MakeError(Code::kNotFound, "404"); };
  client().Start(Get(server.Url("/x")), sink);
  ASSERT_TRUE(sink->WaitDone());
  EXPECT_EQ(sink->code(), Code::kNotFound);
  EXPECT_EQ(StatusOf(server.Authority()).active, 1U) << "the rest of the body is still waited for";
  EXPECT_TRUE(Fetch(server.Url("/y"))->ok()) << "the slot comes back in the end";
}

}  // namespace
}  // namespace dartfs::core
