// Redirects on the wire; which target is legal is in http_redirect_test.cc.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "http_fixture.h"
#include "raw_server.h"

namespace dartfs::core {
namespace {

using Connection = RawServer::Connection;

std::string Redirect(const std::string& location, const std::string& body = "moved",
                     const std::string& status = "302 Found") {
  return "HTTP/1.1 " + status + "\r\nLocation: " + location +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
std::string PathOf(const std::string& request) {
  return request.substr(4, request.find(' ', 4) - 4);
}

class CurlRedirectTest : public HttpClientTest {
 protected:
  static HttpRequest WithSecrets(const std::string& url) {
    HttpRequest request = Get(url);
    request.authorization = "Bearer secret";
    request.headers = {{"Range", "bytes=0-9"}, {"X-Api-Key", "secret"}, {"If-Match", "\"v\""}};
    return request;
  }
};

TEST_F(CurlRedirectTest, FollowsEveryKindAndDeliversOnlyTheLastAnswer) {
  for (const std::string status : {"301 x", "302 x", "303 x", "307 x", "308 x"}) {
    RawServer server([&](Connection& c) {
      while (const auto request = c.ReadRequest()) {
        const std::string path = PathOf(*request);
        if (path == "/d/a?x") c.Write(Redirect("b//c?y", "moved", status));
        if (path == "/d/b//c?y") c.Write(Redirect("/end%2F", "moved", status));
        if (path == "/end%2F") c.Write(Ok("final"));
      }
    });
    const SinkPtr sink = Fetch(server.Url("/d/a?x"));
    ASSERT_TRUE(sink->ok()) << status << sink->error().context;
    EXPECT_EQ(sink->status(), 200);
    EXPECT_EQ(sink->body(), "final");
    EXPECT_EQ(sink->head().effective_url, server.Url("/end%2F"));
    EXPECT_EQ(server.connections(), 1U) << "the redirects' bodies were read away";
  }
}

TEST_F(CurlRedirectTest, SecretsStayWithTheirAuthority) {
  RawServer bucket([](Connection& c) {
    while (c.ReadRequest()) c.Write(Ok("data"));
  });
  RawServer registry([&](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      if (PathOf(*request) == "/a") c.Write(Redirect("/b"));
      if (PathOf(*request) == "/b") c.Write(Redirect(bucket.Url("/blob?signature=1")));
    }
  });
  const SinkPtr sink = Fetch(WithSecrets(registry.Url("/a")));
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  ASSERT_EQ(registry.requests().size(), 2U);
  for (const std::string& request : registry.requests()) {
    EXPECT_NE(request.find("Authorization: Bearer secret"), std::string::npos) << request;
    EXPECT_NE(request.find("X-Api-Key: secret"), std::string::npos) << request;
  }
  ASSERT_EQ(bucket.requests().size(), 1U);
  const std::string foreign = bucket.requests()[0];
  EXPECT_EQ(foreign.find("secret"), std::string::npos) << foreign;
  EXPECT_NE(foreign.find("Range: bytes=0-9\r\n"), std::string::npos) << foreign;
  EXPECT_NE(foreign.find("If-Match: \"v\"\r\n"), std::string::npos) << foreign;
  EXPECT_NE(foreign.find("Host: " + bucket.HostPort()), std::string::npos) << foreign;
}

TEST_F(CurlRedirectTest, LoopsAndChainsEndAtTheBound) {
  RawServer server([](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      const int hop = std::stoi(PathOf(*request).substr(1));
      c.Write(hop < 3      ? Redirect("/" + std::to_string(hop + 1))
              : hop == 100 ? Redirect("/100")
                           : Ok("end"));
    }
  });
  HttpRequest request = Get(server.Url("/0"));
  request.max_redirects = 3;
  EXPECT_TRUE(Fetch(request)->ok());
  request.max_redirects = 2;
  const SinkPtr chain = Fetch(request);
  EXPECT_EQ(chain->code(), Code::kBadResponse);
  EXPECT_NE(chain->error().context.find("more than 2 redirects"), std::string::npos);
  request.max_redirects = 0;
  EXPECT_EQ(Fetch(request)->code(), Code::kBadResponse);

  const size_t before = server.requests().size();
  const SinkPtr loop = Fetch(server.Url("/100"));
  EXPECT_EQ(loop->code(), Code::kBadResponse);
  EXPECT_EQ(server.requests().size() - before, 11U);
}

TEST_F(CurlRedirectTest, BadTargets) {
  struct Case {
    const char* answer;
    Code code;
  };
  for (const Case& c : std::vector<Case>{
           {"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", Code::kBadResponse},
           {"HTTP/1.1 302 Found\r\nLocation: http://a b/\r\nContent-Length: 0\r\n\r\n",
            Code::kBadResponse},
           {"HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
            Code::kBadResponse},
           {"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
            Code::kRefused},
           {"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
            Code::kRefused},
           {"HTTP/1.1 302 Found\r\nLocation: http://no-such.invalid/\r\nContent-Length: 0\r\n\r\n",
            Code::kUnavailable}}) {
    RawServer server([&](Connection& connection) {
      while (connection.ReadRequest()) connection.Write(c.answer);
    });
    const SinkPtr sink = Fetch(server.Url("/x"));
    EXPECT_EQ(sink->code(), c.code) << c.answer << sink->error().context;
    EXPECT_FALSE(sink->has_head()) << "a redirect itself is never delivered";
    EXPECT_EQ(server.requests().size(), 1U);
  }
}

TEST_F(CurlRedirectTest, ALongOrBrokenRedirectBodyDoesNotMatter) {
  const std::string location = "Location: /end\r\n";
  for (const std::string& answer :
       {"HTTP/1.1 302 Found\r\n" + location + "Content-Length: 100000000\r\n\r\n",
        "HTTP/1.1 302 Found\r\n" + location + "Content-Length: 100\r\n\r\nshort",
        "HTTP/1.1 302 Found\r\n" + location + "Transfer-Encoding: chunked\r\n\r\n10000000\r\n" +
            std::string(200000, 'x'),
        "HTTP/1.1 302 Found\r\n" + location + "\r\nuntil the end"}) {
    RawServer server([&](Connection& c) {
      while (const auto request = c.ReadRequest()) {
        if (PathOf(*request) == "/end") {
          c.Write(Ok("final"));
          continue;
        }
        c.Write(answer);
        return;
      }
    });
    const SinkPtr sink = Fetch(server.Url("/x"));
    ASSERT_TRUE(sink->ok()) << answer.substr(0, 100) << sink->error().context;
    EXPECT_EQ(sink->body(), "final");
  }
}

// Each call asks again: signed targets do not live long.
TEST_F(CurlRedirectTest, RedirectsAreNotRemembered) {
  RawServer server([](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      c.Write(PathOf(*request) == "/x" ? Redirect("/y", "", "301 Moved Permanently") : Ok("hi"));
    }
  });
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Fetch(server.Url("/x"))->ok());
  EXPECT_EQ(server.requests().size(), 6U);
}

}  // namespace
}  // namespace dartfs::core
