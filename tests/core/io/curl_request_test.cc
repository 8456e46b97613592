// What a request may ask for besides bytes: HEAD, redirects as they are, a client's User-Agent.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "http_fixture.h"
#include "raw_server.h"

namespace dartfs::core {
namespace {

using Connection = RawServer::Connection;

class CurlRequestTest : public HttpClientTest {
 protected:
  static HttpRequest Head(const std::string& url) {
    HttpRequest request = Get(url);
    request.method = "HEAD";
    return request;
  }
};

std::string LineOf(const std::string& request, const std::string& name) {
  const size_t at = request.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "(none)";
  const size_t value = at + name.size() + 4;
  return request.substr(value, request.find("\r\n", value) - value);
}

TEST_F(CurlRequestTest, AHeadHasNoBodyWhateverItsLength) {
  RawServer server([](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      if (request->starts_with("HEAD ")) {
        c.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: \"e\"\r\n\r\n");
      } else {
        c.Write(Ok("body"));
      }
    }
  });
  for (int round = 0; round < 2; ++round) {  // the same handle for both methods
    const SinkPtr head = Fetch(Head(server.Url("/x?y")));
    ASSERT_TRUE(head->ok()) << head->error().context;
    EXPECT_EQ(head->status(), 200);
    EXPECT_EQ(head->head().Find("content-length"), "1000000");
    EXPECT_EQ(head->body(), "");
    const SinkPtr get = Fetch(server.Url("/x?y"));
    ASSERT_TRUE(get->ok()) << get->error().context;
    EXPECT_EQ(get->body(), "body");
  }
  EXPECT_TRUE(server.requests()[0].starts_with("HEAD /x?y HTTP/1.1\r\n"));
  EXPECT_TRUE(server.requests()[1].starts_with("GET /x?y HTTP/1.1\r\n"));
  EXPECT_EQ(server.connections(), 1U) << "a HEAD leaves nothing on its connection";
}

TEST_F(CurlRequestTest, ARefusedHeadKeepsItsConnection) {
  RawServer server([](Connection& c) {
    while (c.ReadRequest()) c.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
  });
  auto sink = std::make_shared<RecordingSink>();
  sink->on_head = [](const HttpHead&) { return MakeError(Code::kNotFound, "not that"); };
  client().Start(Head(server.Url("/a")), sink);
  ASSERT_TRUE(sink->WaitDone());
  EXPECT_EQ(sink->code(), Code::kNotFound);
  EXPECT_TRUE(Fetch(Head(server.Url("/b")))->ok());
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(CurlRequestTest, AHeadIsRedirectedAsAHead) {
  RawServer server([](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      if (request->starts_with("HEAD /a ")) {
        c.Write("HTTP/1.1 303 x\r\nLocation: /b\r\nContent-Length: 500000\r\n\r\n");
      } else {
        c.Write("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
      }
    }
  });
  const SinkPtr sink = Fetch(Head(server.Url("/a")));
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  EXPECT_TRUE(server.requests()[1].starts_with("HEAD /b ")) << server.requests()[1];
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(CurlRequestTest, OtherMethodsAreRefused) {
  for (const char* method : {"POST", "get", "", "GET / HTTP/1.1\r\nX:"}) {
    HttpRequest request = Get("http://h.invalid/");
    request.method = method;
    EXPECT_EQ(Fetch(request)->code(), Code::kInvalidArgument) << method;
  }
}

TEST_F(CurlRequestTest, ARedirectIsTheAnswerWhereNoneIsFollowed) {
  RawServer server([](Connection& c) {
    while (c.ReadRequest()) {
      c.Write(
          "HTTP/1.1 302 Found\r\nLocation: //elsewhere.invalid/b?sig=1\r\n"
          "X-Linked-Size: 7\r\nContent-Length: 5\r\n\r\nmoved");
    }
  });
  HttpRequest request = Get(server.Url("/a"));
  request.follow_redirects = false;
  const SinkPtr sink = Fetch(request);
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  EXPECT_EQ(sink->status(), 302);
  EXPECT_EQ(sink->head().Find("location"), "//elsewhere.invalid/b?sig=1");
  EXPECT_EQ(sink->head().effective_url, server.Url("/a"));
  EXPECT_TRUE(sink->head().redirect_headers.empty()) << "none was followed";
  EXPECT_EQ(sink->body(), "moved");
}

TEST_F(CurlRequestTest, TheClientsUserAgentGoesBeforeOurs) {
  RawServer server([](Connection& c) {
    while (c.ReadRequest()) c.Write(Ok(""));
  });
  HttpClientOptions options = Options();
  options.user_agent = "dartfs/9";
  Make(options);
  const auto sent = [&](const std::string& agent) {
    HttpRequest request = Get(server.Url("/"));
    request.user_agent = agent;
    EXPECT_TRUE(Fetch(request)->ok());
    return LineOf(server.requests().back(), "User-Agent");
  };
  EXPECT_EQ(sent(""), "dartfs/9");
  EXPECT_EQ(sent("containerd/2.0 (x; y)"), "containerd/2.0 (x; y) dartfs/9");
  EXPECT_EQ(sent(""), "dartfs/9") << "not the one before's";
  EXPECT_EQ(sent(std::string(5000, 'a')), std::string(1024, 'a') + " dartfs/9");
  HttpRequest split = Get(server.Url("/"));
  split.user_agent = "a\r\nX-Evil: 1";
  EXPECT_EQ(Fetch(split)->code(), Code::kInvalidArgument);
}

TEST_F(CurlRequestTest, RedirectsSayWhatTheyKnowOfTheObject) {
  RawServer bucket([](Connection& c) {
    while (c.ReadRequest()) c.Write(Ok("data", "X-Linked-Size: 999\r\n"));
  });
  RawServer hub([&](Connection& c) {
    while (const auto request = c.ReadRequest()) {
      const bool first = request->starts_with("GET /a ");
      c.Write(std::string("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nX-Other: 1\r\n") +
              (first ? "Location: /b\r\nX-Repo-Commit: old\r\nx-linked-etag: \"abc\"\r\n"
                     : "Location: " + bucket.Url("/blob") + "\r\nX-Repo-Commit: c0ffee\r\n" +
                           "X-Linked-Etag: " + std::string(1025, 'x') + "\r\n") +
              "\r\n");
    }
  });
  const SinkPtr sink = Fetch(hub.Url("/a"));
  ASSERT_TRUE(sink->ok()) << sink->error().context;
  std::string kept;
  for (const auto& [name, value] : sink->head().redirect_headers) kept += name + "=" + value + ";";
  EXPECT_EQ(kept, "X-Linked-Etag=\"abc\";X-Repo-Commit=c0ffee;");
}

}  // namespace
}  // namespace dartfs::core
