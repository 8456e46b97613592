// What goes over the wire, byte for byte, and what a good answer becomes.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "http_fixture.h"
#include "raw_server.h"

namespace dartfs::core {
namespace {

using Connection = RawServer::Connection;

void ServeHi(Connection& c) {
  while (c.ReadRequest()) c.Write(Ok("hi"));
}
std::string FirstLine(const std::string& request) { return request.substr(0, request.find('\r')); }
bool HasLine(const std::string& request, const std::string& line) {
  return request.find("\r\n" + line + "\r\n") != std::string::npos;
}
size_t Count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

class CurlClientTest : public HttpClientTest {};

TEST_F(CurlClientTest, GetsBytesStatusAndHeaders) {
  const std::string object = Pattern(3 << 20);
  RawServer server([&](Connection& c) {
    while (c.ReadRequest()) c.Write(Ok(object, "ETag: \"v\"\r\nX-Other: a\r\nX-Other: b\r\n"));
  });
  const SinkPtr sink = Fetch(server.Url("/x?q=1"));
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  EXPECT_EQ(sink->status(), 200);
  EXPECT_TRUE(sink->body() == object);
  EXPECT_EQ(sink->head().Find("etag"), "\"v\"");
  EXPECT_EQ(sink->head().Find("x-other"), std::nullopt);
  EXPECT_EQ(sink->head().effective_url, server.Url("/x?q=1"));
  const OriginStatus status = StatusOf(server.Authority());
  EXPECT_EQ(status.calls, 1U);
  EXPECT_EQ(status.bytes, object.size());
  EXPECT_EQ(status.failures, 0U);
  EXPECT_EQ(status.active, 0U);
}

TEST_F(CurlClientTest, SendsExactlyTheUrlsBytes) {
  RawServer server(ServeHi);
  for (const std::string target :
       {"/", "/a//b/../c%2F%3f", "/./a/../../b", "/%41%7e%2e%2E/", "/x?", "/x?a=%20+b&c=/../d?e",
        "/a:b;c,d@e!$&'()*+=", "/a\"b<c>d[e]f{g}h|i\\j^k`l", "/%ff%FE", "//x", "/a/."}) {
    const SinkPtr sink = Fetch(server.Url(target));
    ASSERT_TRUE(sink->ok()) << target << ": " << sink->error().context;
    EXPECT_EQ(FirstLine(server.requests().back()), "GET " + target + " HTTP/1.1");
    EXPECT_TRUE(HasLine(server.requests().back(), "Host: " + server.HostPort()));
  }
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(CurlClientTest, SendsHeadersAsAsked) {
  RawServer server(ServeHi);
  HttpRequest request = Get(server.Url("/x"));
  request.headers = {{"Range", "bytes=0-9"}, {"X-Empty", ""}, {"If-Match", "\"v\""}};
  request.authorization = "Bearer abc";
  ASSERT_TRUE(Fetch(request)->ok());
  const std::string sent = server.requests().back();
  EXPECT_TRUE(HasLine(sent, "Range: bytes=0-9")) << sent;
  EXPECT_TRUE(HasLine(sent, "X-Empty:")) << sent;
  EXPECT_TRUE(HasLine(sent, "If-Match: \"v\"")) << sent;
  EXPECT_TRUE(HasLine(sent, "Authorization: Bearer abc")) << sent;
  EXPECT_TRUE(HasLine(sent, "Accept-Encoding: identity")) << sent;
  EXPECT_NE(sent.find("User-Agent: dartfs/"), std::string::npos) << sent;

  // Nothing of it is left in the next request of the same handle.
  ASSERT_TRUE(Fetch(server.Url("/y"))->ok());
  const std::string next = server.requests().back();
  for (const char* name : {"Range", "X-Empty", "If-Match", "Authorization"}) {
    EXPECT_EQ(next.find(name), std::string::npos) << next;
  }

  request.headers = {{"User-Agent", "curl/8 dartfs/1"}, {"accept-encoding", "zstd"}};
  ASSERT_TRUE(Fetch(request)->ok());
  const std::string own = server.requests().back();
  EXPECT_EQ(Count(own, "User-Agent:"), 1U) << own;
  EXPECT_EQ(own.find("identity"), std::string::npos) << own;
}

TEST_F(CurlClientTest, KeepsConnectionsAlive) {
  RawServer server(ServeHi);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Fetch(server.Url("/x"))->ok());
  EXPECT_EQ(server.connections(), 1U);
  EXPECT_EQ(server.requests().size(), 20U);
}

TEST_F(CurlClientTest, ConcurrentCallsUseTheLimitAndReuseIt) {
  RawServer server([](Connection& c) {
    while (c.ReadRequest()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      c.Write(Ok("hi"));
    }
  });
  HttpClientOptions options = Options();
  options.connections_per_origin = 4;
  Make(options);
  std::vector<SinkPtr> sinks;
  for (int i = 0; i < 100; ++i) sinks.push_back(Start(Get(server.Url("/x"))));
  for (const auto& sink : sinks) {
    ASSERT_TRUE(sink->WaitDone());
    EXPECT_TRUE(sink->ok()) << sink->error().context;
  }
  EXPECT_EQ(server.connections(), 4U);
}

// A kept-alive connection that the server closed is no error: the request goes out again.
TEST_F(CurlClientTest, StaleConnectionIsRetriedOnce) {
  RawServer server([](Connection& c) {
    if (!c.ReadRequest()) return;
    c.Write(Ok("hi"));
    // The next request arrives at a server that closes without a byte; only the first connection
    // does so.
    if (!c.ReadRequest()) return;
    if (c.number == 0) return;
    c.Write(Ok("again"));
  });
  ASSERT_TRUE(Fetch(server.Url("/1"))->ok());
  const SinkPtr sink = Fetch(server.Url("/2"));
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  EXPECT_EQ(sink->body(), "hi");
  EXPECT_EQ(server.connections(), 2U);
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(CurlClientTest, ConnectionClosedWhileIdleIsNotUsed) {
  RawServer server([](Connection& c) {
    if (c.ReadRequest()) c.Write(Ok("hi"));
  });
  for (int i = 0; i < 5; ++i) {
    const SinkPtr sink = Fetch(server.Url("/x"));
    ASSERT_TRUE(sink->ok()) << sink->error().context;
    ASSERT_TRUE(RawServer::WaitFor([&] { return server.open_connections() == 0; }));
  }
  EXPECT_EQ(server.connections(), 5U);
}

TEST_F(CurlClientTest, InterimAnswersAreSkipped) {
  RawServer server([](Connection& c) {
    c.ReadRequest();
    c.Write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" +
            Ok("hi", "X-Real: 1\r\n"));
    c.WaitClosed();
  });
  const SinkPtr sink = Fetch(server.Url("/x"));
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  EXPECT_EQ(sink->status(), 200);
  EXPECT_EQ(sink->head().Find("x-real"), "1");
  EXPECT_EQ(sink->head().Find("link"), std::nullopt);
}

TEST_F(CurlClientTest, EveryFramingOfABody) {
  const std::string chunked =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"
      "5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nX-Trailer: late\r\n\r\n";
  RawServer server([&](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      if (request->find("/chunked") != std::string::npos) c.Write(chunked);
      if (request->find("/length") != std::string::npos) c.Write(Ok("hello world"));
      if (request->find("/empty") != std::string::npos) c.Write(Ok(""));
      if (request->find("/204") != std::string::npos) c.Write("HTTP/1.1 204 No Content\r\n\r\n");
      if (request->find("/304") != std::string::npos) {
        c.Write("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n");
      }
      if (request->find("/close") != std::string::npos) {
        c.Write("HTTP/1.1 200 OK\r\n\r\nhello world");
        return;
      }
    }
  });
  for (const auto& [path, body] :
       std::vector<std::pair<std::string, std::string>>{{"/chunked", "hello world"},
                                                        {"/length", "hello world"},
                                                        {"/empty", ""},
                                                        {"/204", ""},
                                                        {"/304", ""},
                                                        {"/close", "hello world"}}) {
    const SinkPtr sink = Fetch(server.Url(path));
    ASSERT_TRUE(sink->ok()) << path << ": " << sink->error().context;
    EXPECT_EQ(sink->body(), body) << path;
    EXPECT_EQ(sink->head().Find("x-trailer"), std::nullopt);
  }
  EXPECT_EQ(server.connections(), 1U);
}

// Only what Content-Length covers is the body; the rest is nobody's answer, whenever it comes.
TEST_F(CurlClientTest, BytesAfterTheBodyAreNotBody) {
  const std::string evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
  for (const bool late : {false, true}) {
    std::atomic<int> poisoned{0};
    RawServer server([&](Connection& c) {
      if (!c.ReadRequest()) return;
      c.Write(late ? Ok("hi") : Ok("hi") + evil);
      if (late) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        c.Write(evil);
      }
      ++poisoned;
      c.WaitClosed();
    });
    for (int i = 0; i < 3; ++i) {
      const SinkPtr sink = Fetch(server.Url("/x"));
      ASSERT_TRUE(sink->ok()) << sink->error().context;
      EXPECT_EQ(sink->body(), "hi");
      ASSERT_TRUE(RawServer::WaitFor([&] { return poisoned == i + 1; }));
    }
    EXPECT_EQ(server.connections(), 3U);
  }
}

TEST_F(CurlClientTest, CodedBodiesComeAsTheyAre) {
  RawServer server([](Connection& c) {
    c.ReadRequest();
    c.Write(Ok("not really gzip", "Content-Encoding: gzip\r\n"));
  });
  const SinkPtr sink = Fetch(server.Url("/x"));
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  EXPECT_EQ(sink->body(), "not really gzip");
  EXPECT_EQ(sink->head().Find("content-encoding"), "gzip");
}

TEST_F(CurlClientTest, HttpStatusesAreNoErrors) {
  int status = 0;
  RawServer server([&](Connection& c) {
    while (c.ReadRequest()) {
      c.Write("HTTP/1.1 " + std::to_string(status) + " x\r\nContent-Length: 2\r\n\r\nno");
    }
  });
  for (const int s : {300, 401, 403, 404, 410, 412, 416, 500, 502, 504}) {
    status = s;
    const SinkPtr sink = Fetch(server.Url("/x"));
    ASSERT_TRUE(sink->ok()) << s << ": " << sink->error().context;
    EXPECT_EQ(sink->status(), s);
    EXPECT_EQ(sink->body(), "no");
  }
  EXPECT_EQ(StatusOf(server.Authority()).failures, 3U) << "5xx only";
  EXPECT_EQ(server.connections(), 1U);
}

// A sink may take nothing now and all of it later, at any place.
TEST_F(CurlClientTest, PauseAndResumeGiveTheSameBytes) {
  const std::string object = Pattern(5 << 20, 3);
  std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (size_t at = 0; at < object.size(); at += 100000) {
    const std::string piece = object.substr(at, 100000);
    char size[32];
    snprintf(size, sizeof(size), "%zx\r\n", piece.size());
    chunked += size + piece + "\r\n";
  }
  chunked += "0\r\n\r\n";
  RawServer server([&](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      c.Write(request->find("/chunked") == std::string::npos ? Ok(object) : chunked);
    }
  });
  for (const std::string path : {"/length", "/chunked"}) {
    auto sink = std::make_shared<RecordingSink>();
    std::atomic<int> pauses{0};
    std::atomic<bool> paused{false};
    int calls = 0;
    sink->on_body = [&](std::span<const std::byte>) -> Result<BodyVerdict> {
      // Every third time, twice in a row now and then.
      if (++calls % 3 == 0 || calls % 7 == 0) {
        ++pauses;
        paused = true;
        return BodyVerdict::kPause;
      }
      return BodyVerdict::kTaken;
    };
    auto call = client().Start(Get(server.Url(path)), sink);
    while (!sink->done()) {
      if (paused.exchange(false)) call->Resume();
      std::this_thread::yield();
    }
    ASSERT_TRUE(sink->ok()) << sink->error().context;
    EXPECT_TRUE(sink->body() == object) << path;
    EXPECT_GT(pauses.load(), 50);
  }
}

TEST_F(CurlClientTest, PausedCallDoesNotStall) {
  RawServer server([](Connection& c) {
    while (c.ReadRequest()) c.Write(Ok(Pattern(100000)));
  });
  auto sink = std::make_shared<RecordingSink>();
  std::atomic<bool> open{false};
  sink->on_body = [&](std::span<const std::byte>) -> Result<BodyVerdict> {
    return open ? BodyVerdict::kTaken : BodyVerdict::kPause;
  };
  HttpRequest request = Get(server.Url("/x"));
  request.stall_timeout = std::chrono::milliseconds(50);
  auto call = client().Start(request, sink);
  EXPECT_FALSE(sink->WaitDone(std::chrono::milliseconds(200)));
  open = true;
  call->Resume();
  ASSERT_TRUE(sink->WaitDone());
  EXPECT_TRUE(sink->ok()) << sink->error().context;
  EXPECT_EQ(sink->body(), Pattern(100000));
}

TEST_F(CurlClientTest, UsesTheEnvironmentsProxy) {
  RawServer proxy(ServeHi);
  setenv("http_proxy", proxy.Authority().c_str(), 1);
  setenv("no_proxy", "direct.invalid", 1);
  HttpClientOptions options = Options();
  options.use_environment_proxies = true;
  Make(options);
  const SinkPtr sink = Fetch("http://origin.invalid:8080/a//b/../c%2f?q=%20");
  const SinkPtr direct = Fetch("http://direct.invalid/x");
  const SinkPtr refused = Fetch("http://169.254.169.254/latest/");
  const SinkPtr numeric = Fetch("http://2852039166/latest/");
  unsetenv("http_proxy");
  unsetenv("no_proxy");
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  EXPECT_EQ(FirstLine(proxy.requests().front()),
            "GET http://origin.invalid:8080/a//b/../c%2f?q=%20 HTTP/1.1");
  EXPECT_EQ(direct->code(), Code::kUnavailable);
  EXPECT_EQ(refused->code(), Code::kRefused) << "a literal address is judged also through a proxy";
  EXPECT_EQ(numeric->code(), Code::kRefused);
  EXPECT_EQ(proxy.requests().size(), 1U);
}

// What is meant for the origin goes through the tunnel, not to the proxy.
TEST_F(CurlClientTest, TellsATunnelsProxyNoSecrets) {
  RawServer proxy([](Connection& c) {
    if (c.ReadRequest()) c.Write("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  });
  setenv("https_proxy", proxy.Authority().c_str(), 1);
  HttpClientOptions options = Options();
  options.use_environment_proxies = true;
  Make(options);
  HttpRequest request = Get("https://origin.invalid/path?secret");
  request.authorization = "Bearer secret";
  request.headers = {{"X-Api-Key", "secret"}, {"Range", "bytes=0-9"}};
  const SinkPtr sink = Fetch(request);
  unsetenv("https_proxy");
  EXPECT_EQ(sink->code(), Code::kUnavailable) << sink->error().context;
  EXPECT_FALSE(sink->has_head()) << "the proxy's refusal is not the origin's answer";
  ASSERT_EQ(proxy.requests().size(), 1U);
  const std::string sent = proxy.requests()[0];
  EXPECT_EQ(FirstLine(sent), "CONNECT origin.invalid:443 HTTP/1.1");
  EXPECT_EQ(sent.find("secret"), std::string::npos) << sent;
  EXPECT_EQ(sent.find("Range"), std::string::npos) << sent;
}

TEST_F(CurlClientTest, IgnoresProxiesWhenToldSo) {
  RawServer proxy(ServeHi);
  RawServer origin(ServeHi);
  setenv("http_proxy", proxy.Authority().c_str(), 1);
  const SinkPtr sink = Fetch(origin.Url("/x"));
  unsetenv("http_proxy");
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  EXPECT_EQ(proxy.connections(), 0U);
}

TEST_F(CurlClientTest, CaFileMustBeReadable) {
  HttpClientOptions options = Options();
  options.ca_file = "/nonexistent/ca.pem";
  EXPECT_FALSE(MakeHttpClient(options));
}

}  // namespace
}  // namespace dartfs::core
