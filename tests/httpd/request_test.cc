#include "httpd/request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dartfs::httpd {
namespace {

using State = RequestParser::State;

constexpr const char* kHost = "Host: h\r\n";

std::string Get(const std::string& fields) { return "GET / HTTP/1.1\r\n" + fields + "\r\n"; }

// The status it is refused with; 0: it is a request.
int StatusOf(const std::string& text, RequestLimits limits = {}) {
  RequestParser parser(limits);
  parser.Feed(text);
  EXPECT_NE(parser.state(), State::kMore) << text.substr(0, 200);
  if (parser.state() != State::kBad) return 0;
  EXPECT_FALSE(parser.bad().why.empty());
  return parser.bad().status;
}

Request Parsed(const std::string& text) {
  RequestParser parser;
  EXPECT_EQ(parser.Feed(text), text.size());
  EXPECT_EQ(parser.state(), State::kDone) << parser.bad().why;
  return parser.Take();
}

TEST(RequestParser, ARequest) {
  const Request request = Parsed(
      "GET /dart/https://h/a%2Fb//c?x=%3D&y HTTP/1.1\r\n"
      "Host: node:8145\r\n"
      "accept:  a \r\n"
      "X-Empty:\r\n"
      "Accept: b\r\n\r\n");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/dart/https://h/a%2Fb//c?x=%3D&y") << "byte for byte";
  EXPECT_EQ(request.minor_version, 1);
  EXPECT_EQ(request.Find("HOST"), "node:8145");
  EXPECT_EQ(request.Find("Accept"), "a, b");
  EXPECT_EQ(request.Find("X-Empty"), "");
  EXPECT_EQ(request.Find("X-None"), std::nullopt);
  EXPECT_EQ(request.headers.size(), 4u);
  EXPECT_TRUE(request.keep_alive);
  EXPECT_FALSE(request.has_body());
}

TEST(RequestParser, OtherForms) {
  EXPECT_EQ(Parsed("GET http://h:80/a HTTP/1.1\r\nHost: x\r\n\r\n").target, "http://h:80/a");
  EXPECT_EQ(Parsed("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n").target, "h:443");
  EXPECT_EQ(Parsed("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").target, "*");
  EXPECT_EQ(Parsed("PROPFIND / HTTP/1.1\r\nHost: h\r\n\r\n").method, "PROPFIND");
  EXPECT_EQ(Parsed("get / HTTP/1.1\r\nHost: h\r\n\r\n").method, "get");
  EXPECT_EQ(Parsed("GET / HTTP/1.0\r\n\r\n").minor_version, 0);
}

TEST(RequestParser, ByteByByteIsTheSame) {
  const std::string text = "\r\nGET /x HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\n";
  RequestParser parser;
  for (size_t i = 0; i < text.size(); ++i) {
    ASSERT_EQ(parser.state(), State::kMore) << i;
    ASSERT_EQ(parser.started(), i > 2) << i;
    ASSERT_EQ(parser.Feed(text.substr(i, 1)), 1u) << i;
  }
  ASSERT_EQ(parser.state(), State::kDone);
  EXPECT_EQ(parser.Take().Find("Range"), "bytes=0-1");
  EXPECT_FALSE(parser.started());
}

TEST(RequestParser, OneAfterAnother) {
  const std::string text = "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.0\r\n\r\nGET /c";
  RequestParser parser;
  std::string_view rest = text;
  std::vector<std::string> targets;
  while (true) {
    rest.remove_prefix(parser.Feed(rest));
    if (parser.state() != State::kDone) break;
    targets.push_back(parser.Take().target);
  }
  EXPECT_EQ(targets, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(parser.state(), State::kMore);
  EXPECT_TRUE(rest.empty());
  parser.Feed(" HTTP/1.1\r\nHost: i\r\n\r\n");
  EXPECT_EQ(parser.Take().target, "/c");
}

TEST(RequestParser, KeepAlive) {
  struct Row {
    const char* version;
    const char* connection;
    bool keep_alive;
  };
  const Row rows[] = {
      {"1.1", "", true},
      {"1.1", "Connection: close\r\n", false},
      {"1.1", "Connection: Close\r\n", false},
      {"1.1", "Connection: TE, close\r\n", false},
      {"1.1", "Connection: TE\r\nConnection: close\r\n", false},
      {"1.1", "Connection: keep-alive\r\n", true},
      {"1.0", "", false},
      {"1.0", "Connection: Keep-Alive\r\n", true},
      {"1.0", "Connection: close\r\n", false},
  };
  for (const Row& row : rows) {
    const Request request =
        Parsed("GET / HTTP/" + std::string(row.version) + "\r\n" + kHost + row.connection + "\r\n");
    EXPECT_EQ(request.keep_alive, row.keep_alive) << row.version << " " << row.connection;
  }
}

TEST(RequestParser, Bodies) {
  const auto with = [](const std::string& fields) {
    return Parsed("POST / HTTP/1.1\r\n" + std::string(kHost) + fields + "\r\n");
  };
  EXPECT_EQ(with("Content-Length: 12\r\n").content_length, 12u);
  EXPECT_FALSE(with("Content-Length: 0\r\n").has_body());
  EXPECT_TRUE(with("Transfer-Encoding: chunked\r\n").chunked);
  EXPECT_TRUE(with("Transfer-Encoding: Chunked\r\n").has_body());
  EXPECT_TRUE(with("Expect: 100-continue\r\nContent-Length: 1\r\n").expects_continue);
}

struct Row {
  const char* what;
  std::string text;
  int status;
};

TEST(RequestParser, Refused) {
  const Row rows[] = {
      {"no request", "hello\r\n\r\n", 400},
      {"TLS", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 13), 400},
      {"HTTP/0.9", "GET /\r\n\r\n", 400},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\n", 505},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505},
      {"a space in the target", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"a tab in the target", "GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"a byte above ASCII in the target", "GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"DEL in the target", "GET /\x7f HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"a space before the method", " GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", Get("Host: h\r\nHost: i\r\n"), 400},
      {"the same Host twice", Get("Host: h\r\nhost: h\r\n"), 400},
      {"two lengths", Get("Host: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n"), 400},
      {"the same length twice", Get("Host: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n"), 400},
      {"a list of lengths", Get("Host: h\r\nContent-Length: 1, 1\r\n"), 400},
      {"a negative length", Get("Host: h\r\nContent-Length: -1\r\n"), 400},
      {"a length with a sign", Get("Host: h\r\nContent-Length: +1\r\n"), 400},
      {"an empty length", Get("Host: h\r\nContent-Length:\r\n"), 400},
      {"a length beyond all numbers", Get("Host: h\r\nContent-Length: 99999999999999999999\r\n"),
       400},
      {"length and coding", Get("Host: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
       400},
      {"coding and length", Get("Host: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n"),
       400},
      {"another coding", Get("Host: h\r\nTransfer-Encoding: gzip\r\n"), 501},
      {"another coding, then chunked", Get("Host: h\r\nTransfer-Encoding: gzip, chunked\r\n"), 501},
      {"chunked twice", Get("Host: h\r\nTransfer-Encoding: chunked, chunked\r\n"), 501},
      {"chunked in two fields",
       Get("Host: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"almost chunked", Get("Host: h\r\nTransfer-Encoding: xchunked\r\n"), 501},
      {"identity", Get("Host: h\r\nTransfer-Encoding: identity\r\n"), 501},
      {"a coding in HTTP/1.0", "GET / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"a space before the colon", Get("Host : h\r\n"), 400},
      {"no colon", Get("Host h\r\n"), 400},
      {"no name", Get("Host: h\r\n: x\r\n"), 400},
      {"a folded line", Get("Host: h\r\nX: a\r\n b\r\n"), 400},
      {"lines that end in LF", "GET / HTTP/1.1\nHost: h\n\n", 400},
      {"one line that ends in LF", "GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400},
      {"a lone CR in a value", Get("Host: h\r\nX: a\rb\r\n"), 400},
      {"NUL in a value", Get(std::string("Host: h\r\nX: a\0b\r\n", 17)), 400},
  };
  for (const Row& row : rows) EXPECT_EQ(StatusOf(row.text), row.status) << row.what;
}

TEST(RequestParser, Limits) {
  const std::string url(16 * 1024, 'u');
  EXPECT_EQ(StatusOf("GET /dart/" + url + " HTTP/1.1\r\nHost: h\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("GET /" + url + url + " HTTP/1.1\r\nHost: h\r\n\r\n"), 414);
  EXPECT_EQ(StatusOf("GET /" + url + url), 414) << "without an end";
  EXPECT_EQ(StatusOf(Get(kHost + std::string("X: ") + std::string(60'000, 'x') + "\r\n")), 0);
  EXPECT_EQ(StatusOf(Get(kHost + std::string("X: ") + std::string(66'000, 'x') + "\r\n")), 431);
  std::string many = kHost;
  for (int i = 0; i < 127; ++i) many += "X: y\r\n";
  EXPECT_EQ(StatusOf(Get(many)), 0);
  EXPECT_EQ(StatusOf(Get(many + "X: y\r\n")), 431);
}

TEST(RequestParser, WhatIsRefusedTakesNoMore) {
  RequestParser parser;
  parser.Feed("nonsense\r\n\r\n");
  ASSERT_EQ(parser.state(), State::kBad);
  EXPECT_EQ(parser.Feed("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), 0u);
  EXPECT_EQ(parser.state(), State::kBad);
}

}  // namespace
}  // namespace dartfs::httpd
