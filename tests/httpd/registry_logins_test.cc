#include "httpd/registry_logins.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/base/credentials.h"
#include "httpd/base64.h"

namespace dartfs::httpd {
namespace {

using core::BasicAuthorization;
using core::Code;

core::Result<RegistryLogins> Parse(std::string_view text) {
  return RegistryLogins::Parse(text, "/etc/logins.json");
}

std::string LoginOf(const RegistryLogins& logins, const char* registry) {
  return logins.Find(core::ParseUrl(registry).value());
}

TEST(Base64, Decode) {
  struct Row {
    std::string bytes;
    const char* text;
  };
  const Row rows[] = {{"", ""},
                      {"f", "Zg=="},
                      {"fo", "Zm8="},
                      {"foo", "Zm9v"},
                      {"foob", "Zm9vYg=="},
                      {"\xff\xfe\xfd", "//79"},
                      {"a:b", "YTpi"},
                      {std::string(2, '\0'), "AAA="}};
  for (const Row& row : rows) {
    EXPECT_EQ(Base64Decode(row.text), row.bytes);
  }
  for (const char* text :
       {"Zg", "Zg=", "Zg===", "Z===", "====", " Zg==", "Zg==\n", "Zm-_", "Zg==Zg==", "Z=g="}) {
    EXPECT_EQ(Base64Decode(text), std::nullopt) << text;
  }
}

TEST(RegistryLogins, PlainForm) {
  const auto logins = Parse(R"({"docker.io": {"username": "me", "password": "pw"},
      "H.example:5000": {"username": "u", "password": ""},
      "h.example": {"username": "v", "password": "a:b"},
      "i.example:443": {"username": "w", "password": "x"}})");
  ASSERT_TRUE(logins.has_value());
  EXPECT_EQ(LoginOf(*logins, "https://registry-1.docker.io/"), "Basic bWU6cHc=");
  EXPECT_EQ(LoginOf(*logins, "https://docker.io/"), "Basic bWU6cHc=");
  EXPECT_EQ(LoginOf(*logins, "https://h.example:5000/"), BasicAuthorization("u", ""));
  EXPECT_EQ(LoginOf(*logins, "http://h.example:5000/"), BasicAuthorization("u", ""));
  EXPECT_EQ(LoginOf(*logins, "https://h.example/"), BasicAuthorization("v", "a:b"));
  EXPECT_EQ(LoginOf(*logins, "https://h.example:443/"), BasicAuthorization("v", "a:b"));
  EXPECT_EQ(LoginOf(*logins, "https://i.example/"), BasicAuthorization("w", "x"));
  EXPECT_EQ(LoginOf(*logins, "https://h.example:5001/"), "");
  EXPECT_EQ(LoginOf(*logins, "https://x.h.example/"), "");
  EXPECT_TRUE(logins->notes().empty());
}

TEST(RegistryLogins, DockersForm) {
  const auto logins = Parse(R"({"HttpHeaders": {}, "auths": {
      "https://index.docker.io/v1/": {"auth": "bWU6cHc="},
      "https://index.docker.io/v1/access-token": {"auth": "eDp5"},
      "quay.io": {"username": "u", "password": "p"},
      "quay.io/team": {"auth": "eDp5"},
      "http://plain.example:80": {"auth": "eDp5"},
      "nul.example": {"auth": "eDp5AAA="},
      "empty.example": {},
      "token.example": {"auth": "PHRva2VuPjo=", "identitytoken": "hunter2"}}})");
  ASSERT_TRUE(logins.has_value()) << logins.error().context;
  EXPECT_EQ(LoginOf(*logins, "https://registry-1.docker.io/"), "Basic bWU6cHc=");
  EXPECT_EQ(LoginOf(*logins, "https://quay.io/"), BasicAuthorization("u", "p"));
  EXPECT_EQ(LoginOf(*logins, "http://plain.example/"), "Basic eDp5");
  EXPECT_EQ(LoginOf(*logins, "https://nul.example/"), "Basic eDp5");
  EXPECT_EQ(LoginOf(*logins, "https://empty.example/"), "");
  EXPECT_EQ(LoginOf(*logins, "https://token.example/"), "");
  EXPECT_EQ(logins->size(), 4U);
  // Two for parts of registries, one without a login, one with a token.
  ASSERT_EQ(logins->notes().size(), 4U);
  for (const std::string& note : logins->notes()) {
    EXPECT_NE(note.find("/etc/logins.json"), std::string::npos);
    EXPECT_EQ(note.find("hunter2"), std::string::npos);
  }
}

TEST(RegistryLogins, CredentialHelpersAreSaid) {
  const auto logins = Parse(R"({"credsStore": "desktop"})");
  ASSERT_TRUE(logins.has_value());
  EXPECT_EQ(logins->size(), 0U);
  EXPECT_EQ(logins->notes().size(), 1U);
}

TEST(RegistryLogins, ErrorsNameTheHostAndNoSecret) {
  struct Row {
    const char* text;
    const char* says;
  };
  const Row rows[] = {
      {"", "not JSON"},
      {R"({"h": {"username": "u", "password": "hunter2)", "not JSON"},
      {R"(["hunter2"])", "no JSON object"},
      {R"({"h": "hunter2"})", "'h' that is no JSON object"},
      {R"({"h": {"password": "hunter2"}})", "'h' without a \"username\""},
      {R"({"h": {"username": "u"}})", "'h' without a \"password\""},
      {R"({"h": {"username": "u", "password": 7}})", "'h' without a \"password\""},
      {R"({"h": {"username": "", "password": "hunter2"}})", "user name is empty"},
      {R"({"h": {"username": "a:b", "password": "hunter2"}})", "colon"},
      {R"({"h": {"username": "u", "password": "hunter2\n"}})", "control characters"},
      {R"({"h/x y": 1})", "no JSON object"},
      {R"({"h x": {"username": "u", "password": "hunter2"}})", "no registry"},
      {R"({"ftp://h": {"username": "u", "password": "hunter2"}})", "no registry"},
      {R"({"hunter2@h": {"username": "u", "password": "p"}})", "no registry"},
      {R"({"auths": []})", "no object"},
      {R"({"auths": {"h": {"auth": "hunter2"}}})", "base64"},
      {R"({"auths": {"h": {"auth": "aHVudGVyMg=="}}})", "base64"},
      {R"({"auths": {"h": {"auth": "eDp5"}, "https://h/v2/": {"auth": "eDp6"}}})", "another"},
  };
  for (const Row& row : rows) {
    const auto logins = Parse(row.text);
    ASSERT_FALSE(logins.has_value()) << row.text;
    EXPECT_EQ(logins.error().code, Code::kInvalidArgument);
    EXPECT_NE(logins.error().context.find("/etc/logins.json"), std::string::npos);
    EXPECT_NE(logins.error().context.find(row.says), std::string::npos) << logins.error().context;
    EXPECT_EQ(logins.error().context.find("hunter2"), std::string::npos);
  }
}

class LoginFile : public testing::Test {
 protected:
  void Write(const std::string& text, mode_t mode) {
    FILE* file = fopen(path_.c_str(), "we");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(fwrite(text.data(), 1, text.size(), file), text.size());
    ASSERT_EQ(fclose(file), 0);
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  void TearDown() override { unlink(path_.c_str()); }

  const std::string path_ = testing::TempDir() + "logins-" + std::to_string(getpid()) + ".json";
};

TEST_F(LoginFile, OthersMustNotReadIt) {
  const std::string text = R"({"h": {"username": "u", "password": "p"}})";
  Write(text, 0600);
  const auto own = RegistryLogins::Load(path_);
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->size(), 1U);
  EXPECT_TRUE(own->notes().empty());
  Write(text, 0644);
  const auto shared = RegistryLogins::Load(path_);
  ASSERT_TRUE(shared.has_value());
  ASSERT_EQ(shared->notes().size(), 1U);
  EXPECT_NE(shared->notes()[0].find("0644"), std::string::npos);
}

TEST_F(LoginFile, WhatCannotBeRead) {
  EXPECT_EQ(RegistryLogins::Load(path_).error().sys_errno, ENOENT);
  EXPECT_EQ(RegistryLogins::Load("/dev/null").error().code, Code::kInvalidArgument);
  Write(std::string((1 << 20) + 1, ' '), 0600);
  EXPECT_EQ(RegistryLogins::Load(path_).error().code, Code::kTooLarge);
}

}  // namespace
}  // namespace dartfs::httpd
