#include "httpd/auth_challenge.h"

#include <gtest/gtest.h>

#include <string>

namespace dartfs::httpd {
namespace {

// "basic{realm=x} bearer{realm=y,service=z} negotiate" with token68 as "scheme<token68>".
std::string Show(const std::vector<AuthChallenge>& challenges) {
  std::string out;
  for (const AuthChallenge& challenge : challenges) {
    if (!out.empty()) out += ' ';
    out += challenge.scheme;
    if (!challenge.token68.empty()) out += "<" + challenge.token68 + ">";
    std::string inner;
    for (const auto& [name, value] : challenge.parameters) {
      if (!inner.empty()) inner += ',';
      inner += name;
      inner += '=';
      inner += value;
    }
    if (!inner.empty()) out += "{" + inner + "}";
  }
  return out;
}

TEST(AuthChallenge, Parse) {
  struct Row {
    const char* field;
    const char* shown;
  };
  const Row rows[] = {
      {R"(Bearer realm="https://auth.docker.io/token",service="registry.docker.io",)"
       R"(scope="repository:a:pull,push",error="invalid_token")",
       "bearer{realm=https://auth.docker.io/token,service=registry.docker.io,"
       "scope=repository:a:pull,push,error=invalid_token}"},
      {R"(Basic realm="x")", "basic{realm=x}"},
      {R"(BASIC Realm = "x" , Charset=UTF-8)", "basic{realm=x,charset=UTF-8}"},
      {R"(Basic realm="a\"b\\c, Bearer d")", R"(basic{realm=a"b\c, Bearer d})"},
      {R"(Basic realm="")", "basic{realm=}"},
      {R"(Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple")",
       R"(newauth{realm=apps,type=1,title=Login to "apps"} basic{realm=simple})"},
      {"Negotiate", "negotiate"},
      {"Negotiate, Basic realm=x", "negotiate basic{realm=x}"},
      {"Negotiate YWJj==, Basic realm=x", "negotiate<YWJj==> basic{realm=x}"},
      {"Negotiate a/b+c", "negotiate<a/b+c>"},
      {"Basic realm", "basic<realm>"},
      {", ,Basic realm=x,, ,charset=y,", "basic{realm=x,charset=y}"},
      {"\tBasic\trealm=x\t,\tNegotiate\t", "basic{realm=x} negotiate"},
      {"Basic realm=x, Negotiate, Bearer realm=y", "basic{realm=x} negotiate bearer{realm=y}"},
      // Left out, as far as it can't be meant.
      {"", ""},
      {" , ", ""},
      {"Basic realm=x, realm=y, Negotiate", "negotiate"},
      {"Negotiate, Basic realm=\"x", "negotiate"},
      {"Negotiate, Basic realm=\"x\\", "negotiate"},
      {"Negotiate, Basic realm=, Bearer realm=y", "negotiate basic<realm=> bearer{realm=y}"},
      {"Negotiate, Basic a=b c=d, Bearer realm=y", "negotiate"},
      {"Basic realm=\"x\"y", ""},
      {"Basic=x", ""},
      {"Basic realm=\"a\x01\"", ""},
      {"(Basic) realm=x", ""},
      {"Basic \"x\"", ""},
      {"Bearer realm=https://h/", ""},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Show(ParseChallenges(row.field)), row.shown) << row.field;
  }
}

TEST(AuthChallenge, IsBounded) {
  std::string many = "A";
  for (int i = 0; i < 100; ++i) many += ", A";
  EXPECT_EQ(ParseChallenges(many).size(), 16U);
  std::string wide = "Basic a0=x";
  for (int i = 1; i < 40; ++i) wide += ", a" + std::to_string(i) + "=x";
  EXPECT_TRUE(ParseChallenges(wide).empty());
  const std::string longest = "Basic realm=\"" + std::string(kMaxChallengeBytes - 14, 'x') + "\"";
  EXPECT_EQ(ParseChallenges(longest).size(), 1U);
  EXPECT_TRUE(ParseChallenges(longest + " ").empty());
}

TEST(AuthChallenge, BearerBeforeBasic) {
  const auto choose = [](const char* field) { return ChooseChallenge(ParseChallenges(field)); };
  const auto bearer = choose(R"(Basic realm="x", Bearer realm="https://h/t",service=s,error=e)");
  ASSERT_TRUE(bearer.has_value());
  EXPECT_TRUE(bearer->bearer);
  EXPECT_EQ(bearer->realm, "https://h/t");
  EXPECT_EQ(bearer->service, "s");
  EXPECT_EQ(bearer->error, "e");
  const auto basic = choose(R"(Bearer error="x", Bearer realm="", Basic realm="x")");
  ASSERT_TRUE(basic.has_value());
  EXPECT_FALSE(basic->bearer);
  EXPECT_FALSE(choose("Negotiate, Digest realm=x").has_value());
}

}  // namespace
}  // namespace dartfs::httpd
