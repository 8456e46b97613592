#include "httpd/token_request.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace dartfs::httpd {
namespace {

using core::Code;
using core::ParseUrl;

RegistryChallenge Bearer(const std::string& realm, const std::string& service = "") {
  return {true, realm, service, ""};
}

TEST(TokenRequest, UrlOfTheService) {
  struct Row {
    const char* realm;
    const char* service;
    const char* scope;
    const char* url;
  };
  const Row rows[] = {
      {"https://auth.docker.io/token", "registry.docker.io", "repository:a/b:pull",
       "https://auth.docker.io/token?service=registry.docker.io&scope=repository%3Aa%2Fb%3Apull"},
      {"https://h", "", "", "https://h/"},
      {"https://h/t?x=%2F", "a b&c", "", "https://h/t?x=%2F&service=a%20b%26c"},
      {"https://h/t?", "", "s", "https://h/t?scope=s"},
      {"https://h/t#f", "s", "", "https://h/t?service=s"},
  };
  for (const Row& row : rows) {
    const auto request = MakeTokenRequest(ParseUrl("https://h").value(),
                                          Bearer(row.realm, row.service), row.scope, {});
    ASSERT_TRUE(request.has_value()) << row.realm;
    EXPECT_EQ(request->url, row.url);
  }
}

TEST(TokenRequest, WhoIsTrustedWithCredentials) {
  const std::vector<TrustedRealm> trusted = {ParseTrustedRealm("sso.example").value(),
                                             ParseTrustedRealm("r.example:5000=T.example").value(),
                                             ParseTrustedRealm("docker.io=hub.example:81").value()};
  struct Row {
    const char* registry;
    const char* realm;
    bool trusted;
  };
  const Row rows[] = {
      {"https://ghcr.io", "https://ghcr.io/token", true},
      {"https://GHCR.io", "https://ghcr.io:444/token", true},
      {"https://registry-1.docker.io", "https://auth.docker.io/token", true},
      {"https://registry-1.docker.io", "https://auth.docker.io:444/token", false},
      {"https://registry-1.docker.io", "https://auth.docker.io.evil.example/token", false},
      {"https://registry-1.docker.io", "https://docker.io/token", false},
      {"https://registry-1.docker.io", "https://hub.example:81/token", true},
      {"https://evil.example", "https://auth.docker.io/token", false},
      {"https://registry.gitlab.com", "https://gitlab.com/jwt/auth", true},
      {"https://any.example", "https://sso.example/", true},
      {"https://any.example", "https://sso.example:81/", false},
      {"https://any.example", "https://x.sso.example/", false},
      {"https://r.example:5000", "https://t.example/", true},
      {"https://r.example", "https://t.example/", false},
      {"http://localhost:5000", "http://localhost:5001/auth", true},
      {"http://localhost:5000", "https://localhost/auth", true},
      {"http://localhost:5000", "http://evil.example/auth", false},
  };
  for (const Row& row : rows) {
    const auto request =
        MakeTokenRequest(ParseUrl(row.registry).value(), Bearer(row.realm), "", trusted);
    ASSERT_TRUE(request.has_value()) << row.realm;
    EXPECT_EQ(request->trusted, row.trusted) << row.registry << " " << row.realm;
  }
}

TEST(TokenRequest, RealmsThatAreNotAsked) {
  for (const char* realm : {"http://h/token", "/token", "token", "", "ftp://h/", "https://u:p@h/",
                            "https://h/a b", "https://h/\r\nX: y", "file:///etc/passwd"}) {
    const auto request = MakeTokenRequest(ParseUrl("https://h").value(), Bearer(realm), "", {});
    ASSERT_FALSE(request.has_value()) << realm;
    EXPECT_EQ(request.error().code, Code::kRefused);
  }
}

TEST(TokenRequest, TrustedRealmsThatAreNone) {
  for (const char* text : {"", "=", "a=", "=a", "a=b=c", "https://h", "h/", "u@h", "*.h", "h:0"}) {
    EXPECT_FALSE(ParseTrustedRealm(text).has_value()) << text;
  }
}

TEST(TokenAnswer, Grants) {
  struct Row {
    const char* body;
    const char* token;
    int64_t seconds;
  };
  const Row rows[] = {
      {R"({"token": "a.b-c"})", "a.b-c", 60},
      {R"({"access_token": "x", "expires_in": 300, "issued_at": "2024"})", "x", 300},
      {R"({"token": "", "access_token": "x"})", "x", 60},
      {R"({"token": "t", "access_token": "x", "expires_in": 1})", "t", 1},
      {R"({"token": "t", "expires_in": 0})", "t", 60},
      {R"({"token": "t", "expires_in": -5})", "t", 60},
      {R"({"token": "t", "expires_in": "300"})", "t", 60},
      {R"({"token": "t", "expires_in": 1e3})", "t", 60},
      {R"({"token": "t", "expires_in": 86400})", "t", 3600},
      {R"({"token": "t", "expires_in": 18446744073709551615})", "t", 60},
      {R"({"token": "t", "expires_in": 9223372036854775807})", "t", 3600},
  };
  for (const Row& row : rows) {
    const auto grant = ReadTokenAnswer(row.body);
    ASSERT_TRUE(grant.has_value()) << row.body;
    EXPECT_EQ(grant->token, row.token);
    EXPECT_EQ(grant->lifetime, std::chrono::seconds(row.seconds)) << row.body;
  }
}

TEST(TokenAnswer, WhatGrantsNothing) {
  const std::string long_token = R"({"token": ")" + std::string(33 * 1024, 't') + "\"}";
  const std::string long_answer =
      R"({"token": "secret", "x": ")" + std::string(kMaxTokenAnswerBytes, 'x') + "\"}";
  const std::string deep = R"({"token": ")" + std::string(kMaxTokenAnswerBytes / 2, '[');
  const std::string bodies[] = {"",
                                "secret",
                                "[\"secret\"]",
                                "null",
                                "{}",
                                R"({"token": 7})",
                                R"({"token": {"token": "secret"}})",
                                R"({"token": "secret)",
                                R"({"token": "secret\r\nX: y"})",
                                R"({"token": "secret x"})",
                                R"({"token": "secret\u00e9"})",
                                "{\"token\": \"secret\xff\"}",
                                long_token,
                                long_answer,
                                deep};
  for (const std::string& body : bodies) {
    const auto grant = ReadTokenAnswer(body);
    ASSERT_FALSE(grant.has_value()) << body;
    EXPECT_EQ(grant.error().code, Code::kBadResponse);
    EXPECT_EQ(grant.error().context.find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace dartfs::httpd
