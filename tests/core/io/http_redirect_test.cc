#include "core/io/http_redirect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace dartfs::core {
namespace {

HttpHop Hop(const std::string& url) {
  HttpRequest request;
  request.url = url;
  request.authorization = "Bearer secret";
  request.headers = {{"Range", "bytes=0-9"},       {"If-Match", "\"v\""}, {"X-Api-Key", "secret"},
                     {"Cookie", "session=secret"}, {"accept", "a/b"},     {"Via", "1.1 dartfs"}};
  auto hop = FirstHop(request);
  EXPECT_TRUE(hop) << hop.error().context;
  return std::move(hop).value();
}

HttpHead To(const std::string& location, int status = 302) {
  HttpHead head;
  head.status = status;
  head.headers = {{"Location", location}};
  return head;
}

std::vector<std::string> Names(const HttpHop& hop) {
  std::vector<std::string> names;
  for (const HttpHeader& header : hop.headers) names.push_back(header.name);
  return names;
}

TEST(HttpRedirect, WhichStatuses) {
  for (const int status : {301, 302, 303, 307, 308}) EXPECT_TRUE(IsRedirect(status)) << status;
  for (const int status : {200, 206, 300, 304, 305, 306, 309, 400}) {
    EXPECT_FALSE(IsRedirect(status)) << status;
  }
}

TEST(HttpRedirect, Targets) {
  struct Case {
    const char* location;
    const char* url;
  };
  const std::vector<Case> cases = {
      {"/b", "https://h.example/b"},
      {"b?x=1", "https://h.example/d/b?x=1"},
      {"?y", "https://h.example/d/a?y"},
      {"//other.example/b", "https://other.example/b"},
      {"https://h.example:8443/b%2Fc", "https://h.example:8443/b%2Fc"},
      {"HTTPS://H.example/b#part", "https://h.example/b"},
  };
  for (const Case& c : cases) {
    const auto next = FollowRedirect(Hop("https://h.example/d/a?q"), To(c.location));
    ASSERT_TRUE(next) << c.location << ": " << next.error().context;
    EXPECT_EQ(next->url.ToString(), c.url);
  }
}

TEST(HttpRedirect, Refusals) {
  struct Case {
    const char* name;
    HttpHead head;
    Code code;
  };
  HttpHead none = To("/x");
  none.headers.clear();
  HttpHead unlike = To("/x");
  unlike.headers.push_back({"location", "/y"});
  const std::vector<Case> cases = {
      {"no Location", none, Code::kBadResponse},
      {"two Locations", unlike, Code::kBadResponse},
      {"empty", To(""), Code::kBadResponse},
      {"a space", To("/a b"), Code::kBadResponse},
      {"not a URL", To("http://"), Code::kBadResponse},
      {"a login", To("https://user:pw@h.example/"), Code::kBadResponse},
      {"https to http", To("http://h.example/a"), Code::kRefused},
      {"file", To("file:///etc/passwd"), Code::kRefused},
      {"ftp", To("FTP://h.example/x"), Code::kRefused},
      {"javascript", To("javascript:x"), Code::kRefused},
  };
  for (const Case& c : cases) {
    const auto next = FollowRedirect(Hop("https://h.example/a?secret"), c.head);
    ASSERT_FALSE(next) << c.name;
    EXPECT_EQ(next.error().code, c.code) << c.name << ": " << next.error().context;
    EXPECT_EQ(next.error().context.find("secret"), std::string::npos) << next.error().context;
    EXPECT_EQ(next.error().context.find("pw"), std::string::npos) << next.error().context;
  }
}

TEST(HttpRedirect, SameAuthorityKeepsEverything) {
  for (const char* location : {"/b", "https://H.EXAMPLE/b", "https://h.example:443/b"}) {
    const auto next = FollowRedirect(Hop("https://h.example/a"), To(location));
    ASSERT_TRUE(next);
    EXPECT_EQ(next->authorization, "Bearer secret") << location;
    EXPECT_EQ(next->headers.size(), 6U) << location;
  }
}

TEST(HttpRedirect, OtherAuthorityKeepsOnlyWhatDescribesTheRequest) {
  for (const char* location : {"https://other.example/b", "https://h.example:444/b",
                               "//h.example.evil.example/b", "https://sub.h.example/"}) {
    const auto next = FollowRedirect(Hop("https://h.example/a"), To(location));
    ASSERT_TRUE(next);
    EXPECT_EQ(next->authorization, "") << location;
    EXPECT_EQ(Names(*next), (std::vector<std::string>{"Range", "If-Match", "accept", "Via"}))
        << location;
  }
  const auto upgraded = FollowRedirect(Hop("http://h.example/a"), To("https://h.example/a"));
  ASSERT_TRUE(upgraded);
  EXPECT_EQ(upgraded->authorization, "");
}

TEST(HttpRedirect, DroppedStaysDropped) {
  auto away = FollowRedirect(Hop("https://h.example/a"), To("https://other.example/b"));
  ASSERT_TRUE(away);
  const auto back = FollowRedirect(std::move(away).value(), To("https://h.example/a"));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->authorization, "");
  EXPECT_EQ(back->headers.size(), 4U);
}

TEST(HttpRedirect, FirstHopRefusesWhatCannotBeSent) {
  const auto code = [](auto change) {
    HttpRequest request;
    request.url = "http://h.example/a";
    change(request);
    const auto hop = FirstHop(request);
    return hop ? std::optional<Code>() : hop.error().code;
  };
  EXPECT_EQ(code([](HttpRequest&) {}), std::nullopt);
  EXPECT_EQ(code([](HttpRequest& r) { r.url = "ftp://h/a"; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](HttpRequest& r) { r.url = "http://h/a b"; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](HttpRequest& r) { r.url = "http://u:p@h/a"; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](HttpRequest& r) { r.headers = {{"X", "a\r\nY: b"}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](HttpRequest& r) { r.headers = {{"X:", "a"}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](HttpRequest& r) { r.headers = {{"", "a"}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](HttpRequest& r) { r.headers = {{"X Y", "a"}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](HttpRequest& r) { r.authorization = "a\nb"; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](HttpRequest& r) { r.user_agent = "a\nb"; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](HttpRequest& r) { r.method = "PUT"; }), Code::kInvalidArgument);
}

}  // namespace
}  // namespace dartfs::core
