// The doors to any URL: prefix API, fixed origin, forward proxy; range-blind origins handed on
// (spec/engine.md 3.9), redirects, credentials, and the attacks that DESIGN.md section 9 closes.
#include "httpd/url_handler.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "httpd/door_fixture.h"

namespace dartfs::httpd {
namespace {

using core::Pattern;
using origin::Fault;
using origin::FaultRule;

class UrlHandlerTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    bytes_ = Pattern(2 * kBlock + 5, 1);
    origin().AddFile("/a", bytes_);
  }
  void AddFault(const std::string& path, Fault fault, const std::string& target = "") {
    FaultRule rule;
    rule.path = path;
    rule.fault = fault;
    rule.target = target;
    origin().AddFault(rule);
  }
  // As a proxy is asked.
  RawResponse ViaProxy(const std::string& path, const std::string& headers = "",
                       const std::string& method = "GET") {
    RawClient client(port());
    client.Send(method + " " + origin().Url(path) + " HTTP/1.1\r\nHost: wrong.example\r\n" +
                headers + "\r\n");
    return client.ReadResponse(method == "HEAD");
  }
  uint64_t Asked(const std::string& path) { return origin().StatsOf(path).requests; }
  std::string bytes_;
};

TEST_F(UrlHandlerTest, AFixedOriginIsServedAtTheRoot) {
  origin().AddFile("/base/x y", "found");
  url_options_.origin = origin().Url("/base/");
  service_options_.doors.fixed_origin = true;
  EXPECT_EQ(origin::Get(port(), "/x%20y").body, "found");
  EXPECT_EQ(origin::Get(port(), "/none").status, 404);
  EXPECT_EQ(origin().Log().front().target, "/base/x%20y");
}

TEST_F(UrlHandlerTest, AProxysRequestsGoThroughTheCache) {
  for (int i = 0; i < 3; ++i) {
    const RawResponse answer = ViaProxy("/a");
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.body == bytes_);
    EXPECT_EQ(answer.Header("Content-Security-Policy"), "") << "the page is the site's own";
    EXPECT_EQ(answer.Header("X-Content-Type-Options"), "nosniff");
    ASSERT_TRUE(WaitStored(Open("/a").value()));
  }
  EXPECT_EQ(Asked("/a"), 4u);
  EXPECT_EQ(Get("/a").Header("X-Cache"), "HIT") << "one cache for all doors";
}

TEST_F(UrlHandlerTest, AProxyCachesOnlyWhatASharedCacheMay) {
  const struct {
    const char* request;
    std::pair<const char*, const char*> response;
  } kRows[] = {
      {"Cookie: session=1\r\n", {}},
      {"", {"Set-Cookie", "a=b"}},
      {"Authorization: Basic dTpw\r\n", {}},
      {"", {"Cache-Control", "private"}},
      {"", {"Cache-Control", "max-age=5, No-Store"}},
      {"", {"Vary", "Accept-Language"}},
      {"", {"Vary", "*"}},
  };
  int number = 0;
  for (const auto& row : kRows) {
    const std::string path = "/own" + std::to_string(number++);
    origin::FileOptions options;
    const auto [name, value] = row.response;
    if (name != nullptr) options.headers = {{name, value}};
    origin().AddFile(path, bytes_, options);
    uint64_t before = 0;
    for (int i = 0; i < 3; ++i) {
      before = Asked(path);
      const RawResponse answer = ViaProxy(path, row.request);
      EXPECT_EQ(answer.status, 200) << number;
      EXPECT_TRUE(answer.body == bytes_);
      EXPECT_EQ(answer.Header("X-Cache"), "PASS");
    }
    EXPECT_GT(Asked(path), before) << number;
    EXPECT_EQ(store_->Stats().blocks, 0u) << number;
  }
  const auto log = origin().Log();
  EXPECT_EQ(log.front().Header("Cookie"), "session=1");
}

TEST_F(UrlHandlerTest, WhatAnAuthorizationBroughtAProxyIsSharedWhereTheOriginSaysSo) {
  for (const char* control : {"public", "max-age=9, Must-Revalidate", "s-maxage=60"}) {
    const std::string path = std::string("/") + control[0];
    origin::FileOptions options;
    options.headers = {{"Cache-Control", control}};
    origin().AddFile(path, bytes_, options);
    EXPECT_TRUE(ViaProxy(path, "Authorization: Basic dTpw\r\n").body == bytes_);
    ASSERT_TRUE(WaitStored(Open(path).value()));
    EXPECT_EQ(ViaProxy(path).Header("X-Cache"), "HIT") << control;
  }
}

TEST_F(UrlHandlerTest, ARangeBlindOriginIsHandedOnVerbatim) {
  AddFault("/a", Fault::kIgnoreRange);
  for (int i = 0; i < 3; ++i) {
    const RawResponse answer = Get("/a", Range("bytes=10-19"));
    EXPECT_EQ(answer.status, 200) << "as the origin says";
    EXPECT_TRUE(answer.body == bytes_);
    EXPECT_EQ(answer.Header("X-Cache"), "PASS");
    EXPECT_EQ(Asked("/a"), static_cast<uint64_t>(i) + 2) << "a probe, then one each";
    EXPECT_EQ(origin().Log().back().Header("Range"), "bytes=10-19");
  }
  EXPECT_EQ(relayed_.range_blind.load(), 3u);
  EXPECT_EQ(relayed_.bytes.load(), 3 * bytes_.size());
  EXPECT_EQ(store_->Stats().blocks, 0u);
}

TEST_F(UrlHandlerTest, EachAnswersBytesAreCountedByWhoGaveThem) {
  origin().AddFile("/one", "one block");
  origin().AddFile("/blind", "relayed");
  AddFault("/blind", Fault::kIgnoreRange);
  std::mutex mu;
  std::condition_variable more;
  std::vector<std::array<uint64_t, kBytesFrom>> seen;
  server_options_.on_answered = [&](const AccessRecord& record) {
    const std::lock_guard lock(mu);
    seen.push_back(record.sent_by);
    more.notify_one();
  };
  size_t asked = 0;
  // An answer is counted after its last byte was sent: the client may be back before.
  const auto ask = [&](const std::string& path, const std::string& fields = "") {
    Get(path, fields);
    std::unique_lock lock(mu);
    const size_t before = asked++;
    EXPECT_TRUE(more.wait_for(lock, std::chrono::seconds(10), [&] { return seen.size() > before; }))
        << path;
  };
  ask("/one");
  ASSERT_TRUE(WaitStored(Open("/one").value()));
  ask("/one", Range("bytes=1-7"));
  ask("/one", Range("bytes=0-1,7-8"));
  ask("/blind");
  ask("/absent");
  StopDoor();
  const std::array<uint64_t, kBytesFrom> cold = {0, 0, 9, 0, 0};
  const std::array<uint64_t, kBytesFrom> warm = {0, 7, 0, 0, 0};
  const std::array<uint64_t, kBytesFrom> relayed = {0, 0, 0, 0, 7};
  ASSERT_EQ(seen.size(), 5U);
  EXPECT_EQ(seen[0], cold);
  EXPECT_EQ(seen[1], warm);
  EXPECT_EQ(seen[2][1], 4U) << "of two parts";
  EXPECT_GT(seen[2][0], 0U) << "the framing between them";
  EXPECT_EQ(seen[3], relayed);
  EXPECT_GT(seen[4][0], 0U) << "the node's own words";
}

TEST_F(UrlHandlerTest, ARangeBlindOriginsHeadIsAGet) {
  AddFault("/a", Fault::kIgnoreRange);
  AddFault("/a", Fault::kGetOnly);
  const RawResponse answer = Ask("HEAD", "/a");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Content-Length"), std::to_string(bytes_.size()));
  for (const auto& request : origin().Log()) EXPECT_EQ(request.method, "GET");
}

TEST_F(UrlHandlerTest, ARangeBlindBodyWithoutALengthIsChunked) {
  AddFault("/a", Fault::kIgnoreRange);
  AddFault("/a", Fault::kChunked);
  RawClient client(port());
  client.Send("GET " + Target("/a") + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const RawResponse answer = client.ReadResponse();
  EXPECT_EQ(answer.Header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(answer.Header("Content-Length"), "");
  EXPECT_TRUE(answer.body.ends_with("\r\n0\r\n\r\n"));
  RawClient old(port());
  old.Send("GET " + Target("/a") + " HTTP/1.0\r\n\r\n");
  const RawResponse close = old.ReadResponse();
  EXPECT_EQ(close.Header("Transfer-Encoding"), "");
  EXPECT_TRUE(close.body == bytes_);
}

TEST_F(UrlHandlerTest, ARangeBlindBodyThatBreaksIsCutOff) {
  AddFault("/a", Fault::kIgnoreRange);
  FaultRule rule;
  rule.path = "/a";
  rule.fault = Fault::kReset;
  rule.after_bytes = 1000;
  rule.skip = 1;
  origin().AddFault(rule);
  RawClient client(port());
  client.Send("GET " + Target("/a") + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const RawResponse answer = client.ReadResponse();
  EXPECT_LT(answer.body.size(), bytes_.size());
  EXPECT_TRUE(bytes_.starts_with(answer.body));
  EXPECT_NE(client.state(), RawClient::State::kOpen);
}

TEST_F(UrlHandlerTest, ASlowClientHoldsARangeBlindOriginBack) {
  const std::string large = Pattern(24 << 20, 7);
  origin().AddFile("/large", large);
  AddFault("/large", Fault::kIgnoreRange);
  RawClient client(port());
  client.Send("GET " + Target("/large") + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_LT(relayed_.bytes.load(), 12u << 20);
  EXPECT_TRUE(client.ReadResponse().body == large);
}

TEST_F(UrlHandlerTest, RedirectsAreFollowedOrPassedOnAsTheHostSays) {
  AddFault("/hub", Fault::kRedirect, "/a?sig=1");
  EXPECT_TRUE(Get("/hub").body == bytes_);
  StopDoor();
  StopNode();
  StartNode();
  server_.reset();
  url_options_.pass_redirects = HostPatterns({"127.0.0.1"});
  for (const char* method : {"HEAD", "GET"}) {
    const RawResponse answer = Ask(method, "/hub");
    EXPECT_EQ(answer.status, 302) << method;
    EXPECT_NE(answer.Header("Location").find("/a?sig=1"), std::string::npos) << answer.head;
  }
  EXPECT_TRUE(Get("/a").body == bytes_) << "what does not redirect is cached as ever";
}

TEST_F(UrlHandlerTest, ARelativeRedirectStaysBehindThePrefix) {
  url_options_.pass_redirects = HostPatterns({"127.0.0.1"});
  AddFault("/m/hub", Fault::kRedirect, "/m/a?x=%2F");
  const std::string there = "/dart/" + origin().Url("/m/a?x=%2F");
  EXPECT_EQ(Ask("HEAD", "/m/hub").Header("Location"), there);
  EXPECT_EQ(ViaProxy("/m/hub").Header("Location"), "/m/a?x=%2F");
  AddFault("/far", Fault::kRedirect, "https://elsewhere.example/x");
  EXPECT_EQ(Get("/far").Header("Location"), "https://elsewhere.example/x");
}

TEST_F(UrlHandlerTest, TheOriginsTooManyRequestsReachesTheClientAtOnce) {
  FaultRule rule;
  rule.path = "/a";
  rule.fault = Fault::kStatus;
  rule.status = 429;
  rule.retry_after = 30;
  origin().AddFault(rule);
  const auto begun = std::chrono::steady_clock::now();
  const RawResponse first = Get("/a");
  EXPECT_EQ(first.status, 429);
  EXPECT_EQ(first.Header("Retry-After"), "30");
  EXPECT_EQ(Get("/other").status, 429) << "the same origin";
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST_F(UrlHandlerTest, AnOriginThatIsOverloadedIsNotAClientThatAsksTooMuch) {
  FaultRule rule;
  rule.path = "/a";
  rule.fault = Fault::kStatus;
  rule.status = 503;
  rule.retry_after = 7;
  origin().AddFault(rule);
  const RawResponse answer = Get("/a");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.Header("Retry-After"), "7");
}

TEST_F(UrlHandlerTest, AnAnswerThatNothingComesForEnds) {
  server_options_.limits.body_time = std::chrono::milliseconds(300);
  ASSERT_EQ(Ask("HEAD", "/a").status, 200);
  FaultRule rule;
  rule.path = "/a";
  rule.fault = Fault::kStallBody;
  rule.min_offset = kBlock;
  origin().AddFault(rule);
  const auto begun = std::chrono::steady_clock::now();
  const RawResponse first = Get("/a", Range("bytes=" + std::to_string(kBlock) + "-"));
  EXPECT_EQ(first.status, 504);
  EXPECT_NE(first.body.find("127.0.0.1"), std::string::npos) << "names the URL";
  RawClient client(port());
  client.Send("GET " + Target("/a") + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const RawResponse later = client.ReadResponse();
  EXPECT_LT(later.body.size(), bytes_.size());
  EXPECT_TRUE(bytes_.starts_with(later.body));
  EXPECT_NE(client.state(), RawClient::State::kOpen);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST_F(UrlHandlerTest, AnEmptyAuthorizationIsNotRememberedForOthers) {
  FaultRule rule;
  rule.path = "/a";
  rule.fault = Fault::kAuth;
  rule.credential = "me:pw";
  origin().AddFault(rule);
  const std::string target = "/dart/http://me:pw@" + origin().authority() + "/a";
  const RawResponse without = origin::Fetch(port(), "GET", target, "Authorization: \r\n");
  EXPECT_EQ(without.status, 401);
  EXPECT_EQ(origin::Fetch(port(), "GET", target).status, 200) << "the URL's own login";
}

TEST_F(UrlHandlerTest, AClientThatPausedForLongIsNotCutOff) {
  const std::string large = Pattern(24 << 20, 7);
  origin().AddFile("/large", large);
  server_options_.limits.body_time = std::chrono::milliseconds(600);
  server_options_.limits.rest_after = std::chrono::milliseconds(200);
  RawClient client(port());
  client.Send("GET " + Target("/large") + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_TRUE(client.ReadResponse().body == large);
}

TEST_F(UrlHandlerTest, ACredentialGoesToItsOriginAndSharesNothingWithOthers) {
  AddFault("/a", Fault::kAuth);
  const std::string right = "Authorization: Basic dXNlcjpwYXNzd29yZA==\r\n";
  const RawResponse refused = Get("/a");
  EXPECT_EQ(refused.status, 401);
  EXPECT_FALSE(refused.Header("WWW-Authenticate").empty());
  EXPECT_EQ(Get("/a", "Authorization: Basic eDp5\r\n").status, 401);
  EXPECT_TRUE(Get("/a", right).body == bytes_);
  EXPECT_EQ(origin().Log().back().Header("Authorization"), "Basic dXNlcjpwYXNzd29yZA==");
  // A login in the URL means the same, and is sent nowhere else.
  origin().AddFile("/b", bytes_);
  AddFault("/b", Fault::kAuth);
  const std::string url = "http://user:password@" + origin().authority() + "/b";
  EXPECT_TRUE(origin::Get(port(), "/dart/" + url).body == bytes_);
}

TEST_F(UrlHandlerTest, NothingOfAClientReachesTheOriginButWhatMay) {
  AddFault("/a", Fault::kIgnoreRange);
  Get("/a",
      "X-Custom: 1\r\nProxy-Authorization: Basic eDp5\r\nX-Forwarded-For: 1.2.3.4\r\n"
      "Accept: text/x\r\nUser-Agent: client/1\r\nAccept-Encoding: gzip\r\nCookie: a=b\r\n"
      "Connection: keep-alive, X-Custom\r\n");
  const auto request = origin().Log().back();
  for (const char* name : {"X-Custom", "Proxy-Authorization", "X-Forwarded-For", "Cookie"}) {
    EXPECT_EQ(request.Header(name), "") << name;
  }
  EXPECT_EQ(request.Header("Accept"), "text/x");
  EXPECT_EQ(request.Header("Accept-Encoding"), "identity");
  EXPECT_EQ(request.Header("User-Agent").rfind("client/1 ", 0), 0u);
}

TEST_F(UrlHandlerTest, OurOwnRequestComeBackIsALoop) {
  StopNode();
  http_options_.via = ViaOf("feed");
  StartNode();
  const uint16_t own = port();
  const std::string self = "http://127.0.0.1:" + std::to_string(own);
  const RawResponse answer =
      origin::Get(own, "/dart/" + self + "/dart/" + self + "/dart/" + origin().Url("/a"));
  EXPECT_GE(answer.status, 500);
  EXPECT_EQ(Asked("/a"), 0u);
  EXPECT_EQ(Get("/a", "Via: 1.1 dartfs\r\n").status, 508);
}

TEST_F(UrlHandlerTest, MetadataAddressesAreRefused) {
  for (const char* url :
       {"http://169.254.169.254/latest/", "http://[::ffff:169.254.169.254]/", "http://[fe80::1]/",
        "http://[fd00:ec2::254]/", "http://100.100.100.200/", "http://168.63.129.16/",
        "http://[64:ff9b::a9fe:a9fe]/", "http://2852039166/", "http://0xa9.0xfe.0xa9.0xfe/"}) {
    EXPECT_EQ(origin::Get(port(), std::string("/dart/") + url).status, 403) << url;
    RawClient client(port());
    client.Send(std::string("GET ") + url + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.ReadResponse().status, 403) << url;
  }
  AddFault("/to-metadata", Fault::kRedirect, "http://169.254.169.254/latest/");
  EXPECT_EQ(Get("/to-metadata").status, 403);
}

TEST_F(UrlHandlerTest, AClientsWordIsNoWayIntoARequestLine) {
  for (const char* target : {"/dart/http://h/%0d%0aX: 1", "/dart/http://h\\@evil/",
                             "/dart/http://h:80:90/", "/dart/http://[::1/"}) {
    RawClient client(port());
    client.Send(std::string("GET ") + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(client.ReadResponse().status, 400) << target;
  }
}

TEST_F(UrlHandlerTest, HttpsForHostsThatTheRuleNames) {
  url_options_.proxy_https = HostPatterns({"127.0.0.1"});
  url_options_.timeout = std::chrono::milliseconds(500);
  const RawResponse answer = ViaProxy("/a");
  EXPECT_EQ(answer.status, 504) << "the origin speaks no TLS";
  EXPECT_EQ(Asked("/a"), 0u);
  EXPECT_NE(answer.body.find("https://"), std::string::npos) << answer.body;
}

TEST(HostPatterns, MatchNamesPortsAndDomains) {
  const HostPatterns patterns({"a.example", "b.example:8080", "*.c.example"});
  const std::pair<const char*, bool> rows[] = {
      {"http://a.example/", true},       {"https://A.example:444/", true},
      {"http://b.example:8080/", true},  {"http://b.example/", false},
      {"http://x.c.example/", true},     {"http://x.y.c.example/", true},
      {"http://c.example/", false},      {"http://xc.example/", false},
      {"http://a.example.evil/", false},
  };
  for (const auto& [url, matches] : rows) {
    EXPECT_EQ(patterns.Match(core::ParseUrl(url).value()), matches) << url;
  }
  EXPECT_FALSE(HostPatterns().Match(core::ParseUrl("http://a/").value()));
}

}  // namespace
}  // namespace dartfs::httpd
