#include "httpd/client_checks.h"

#include <gtest/gtest.h>

namespace dartfs::httpd {
namespace {

Request Make(const std::string& headers, const std::string& target = "/dart/http://h/x",
             const std::string& method = "GET") {
  RequestParser parser;
  parser.Feed(method + " " + target + " HTTP/1.1\r\n" + headers + "\r\n");
  EXPECT_EQ(parser.state(), RequestParser::State::kDone) << headers;
  return parser.Take();
}

int StatusOf(const Request& request, Door door = Door::kPrefix) {
  const auto refusal = CheckClient(request, door, {{"node1", "cache.example"}, "beef"});
  return refusal ? refusal->head.status : 0;
}

TEST(ClientChecks, TheHostMustBeOneOfOurs) {
  const std::pair<const char*, int> rows[] = {
      {"127.0.0.1", 0},
      {"127.0.0.1:8145", 0},
      {"[::1]:8145", 0},
      {"10.1.2.3", 0},
      {"localhost", 0},
      {"LOCALHOST:8145", 0},
      {"node1:8145", 0},
      {"Cache.Example", 0},
      {"evil.example", 403},
      {"localhost.evil.example", 403},
      {"node1.evil.example", 403},
      {"127.0.0.1.evil.example", 403},
      {"", 403},
  };
  for (const auto& [host, status] : rows) {
    EXPECT_EQ(StatusOf(Make("Host: " + std::string(host) + "\r\n")), status) << host;
  }
  // Of a proxy's request the authority is the origin's.
  EXPECT_EQ(StatusOf(Make("Host: evil.example\r\n", "http://evil.example/x"), Door::kProxy), 0);
}

TEST(ClientChecks, OtherSitesPagesAreRefused) {
  const std::pair<const char*, int> rows[] = {
      {"cross-site", 403}, {"Cross-Site", 403}, {"same-origin", 0}, {"none", 0}, {"same-site", 0}};
  for (const auto& [site, status] : rows) {
    EXPECT_EQ(StatusOf(Make("Host: localhost\r\nSec-Fetch-Site: " + std::string(site) + "\r\n")),
              status)
        << site;
  }
}

TEST(ClientChecks, ALoopIsSeenByVia) {
  const std::pair<const char*, int> rows[] = {
      {"1.1 dartfs", 508},
      {"1.1 dartfs (beef)", 508},
      {"1.0 other, 1.1 Dartfs(beef), 1.1 more", 508},
      {"1.1 dartfs (cafe)", 0},  // another node
      {"1.1 dartfs-proxy", 0},
      {"1.1 squid (dartfs)", 0},
      {"dartfs", 0},
  };
  for (const auto& [via, status] : rows) {
    EXPECT_EQ(StatusOf(Make("Host: localhost\r\nVia: " + std::string(via) + "\r\n")), status)
        << via;
  }
  EXPECT_EQ(ViaOf("beef"), "1.1 dartfs (beef)");
  EXPECT_EQ(StatusOf(Make("Host: localhost\r\nVia: 1.1 a\r\nVia: " + ViaOf("beef") + "\r\n")), 508);
}

TEST(ClientChecks, ReadingMethodsWithoutABodyAlone) {
  const Request post = Make("Host: localhost\r\nContent-Length: 1\r\n", "/dart/http://h/", "POST");
  const auto refusal = CheckClient(post, Door::kPrefix, {});
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->head.status, 405);
  EXPECT_EQ(refusal->head.Find("Allow"), "GET, HEAD");
  EXPECT_EQ(StatusOf(Make("Host: localhost\r\nContent-Length: 1\r\n")), 400);
  EXPECT_EQ(StatusOf(Make("Host: localhost\r\nTransfer-Encoding: chunked\r\n")), 400);
  EXPECT_EQ(StatusOf(Make("Host: localhost\r\nContent-Length: 0\r\n")), 0);
}

}  // namespace
}  // namespace dartfs::httpd
