#include "core/base/url.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace dartfs::core {
namespace {

struct ParseRow {
  const char* name;
  std::string text;
  Url want;
};

TEST(ParseUrl, Parts) {
  const std::vector<ParseRow> rows = {
      {"plain", "http://h/x", {"http", "h", "", "", "/x", std::nullopt}},
      {"case of scheme and host",
       "HTTPS://Images.Example.ORG/A",
       {"https", "images.example.org", "", "", "/A", std::nullopt}},
      {"port kept as written", "http://h:08080/x", {"http", "h", "08080", "", "/x", std::nullopt}},
      {"default port kept", "http://h:80/x", {"http", "h", "80", "", "/x", std::nullopt}},
      {"empty port is absent", "http://h:/x", {"http", "h", "", "", "/x", std::nullopt}},
      {"empty path", "http://h", {"http", "h", "", "", "/", std::nullopt}},
      {"empty path, query", "http://h?a=1", {"http", "h", "", "", "/", "a=1"}},
      {"lone question mark", "http://h/x?", {"http", "h", "", "", "/x", ""}},
      {"fragment", "http://h/x?a#b?c", {"http", "h", "", "", "/x", "a"}},
      {"fragment before the query", "http://h/x#b?c", {"http", "h", "", "", "/x", std::nullopt}},
      {"fragment ends the host", "http://h#@evil/", {"http", "h", "", "", "/", std::nullopt}},
      {"path is not cleaned",
       "http://h//a/../%2F/%2e%2E/./b%",
       {"http", "h", "", "", "//a/../%2F/%2e%2E/./b%", std::nullopt}},
      {"query is not cleaned",
       "http://h/?a=/..//&&b=%zz+?",
       {"http", "h", "", "", "/", "a=/..//&&b=%zz+?"}},
      {"backslash stays in the path",
       "http://h/a\\b",
       {"http", "h", "", "", "/a\\b", std::nullopt}},
      {"login", "http://user:pw@h/x", {"http", "h", "", "user:pw", "/x", std::nullopt}},
      {"login with @",
       "http://u@corp:p@ss@h:81/x",
       {"http", "h", "81", "u@corp:p@ss", "/x", std::nullopt}},
      {"empty login", "http://@h/x", {"http", "h", "", "", "/x", std::nullopt}},
      {"@ in the path", "http://h/a@b", {"http", "h", "", "", "/a@b", std::nullopt}},
      {"@ in the query", "http://h?a@b", {"http", "h", "", "", "/", "a@b"}},
      {"IPv4", "http://127.0.0.1:8145/x", {"http", "127.0.0.1", "8145", "", "/x", std::nullopt}},
      {"IPv6", "http://[2001:DB8::1]/x", {"http", "[2001:db8::1]", "", "", "/x", std::nullopt}},
      {"IPv6 with port",
       "https://u:p@[::1]:443/x",
       {"https", "[::1]", "443", "u:p", "/x", std::nullopt}},
      {"underscore, trailing dot",
       "http://a_b.example./",
       {"http", "a_b.example.", "", "", "/", std::nullopt}},
  };
  for (const auto& row : rows) {
    const auto got = ParseUrl(row.text);
    ASSERT_TRUE(got.has_value()) << row.name << ": " << got.error().context;
    EXPECT_EQ(*got, row.want) << row.name << ": " << got->ToString();
  }
}

struct BadRow {
  const char* name;
  std::string text;
  const char* reason;  // part of the message
};

TEST(ParseUrl, Refused) {
  const std::vector<BadRow> rows = {
      {"empty", "", "begin with"},
      {"no scheme", "h/x", "begin with"},
      {"network path", "//h/x", "begin with"},
      {"one slash", "http:/h/x", "begin with"},
      {"scheme only", "http:", "begin with"},
      {"ftp", "ftp://h/x", "only http and https"},
      {"file", "file:///etc/passwd", "only http and https"},
      {"httpx", "httpx://h/", "only http and https"},
      {"no host", "http:///x", "no host"},
      {"no host, port", "http://:80/x", "no host"},
      {"no host, login", "http://u:p@/x", "no host"},
      {"no host, query", "http://?x", "no host"},
      {"leading space", " http://h/", "percent-encode"},
      {"space in the path", "http://h/a b", "percent-encode"},
      {"newline", "http://h/a\r\nX: y", "percent-encode"},
      {"NUL", std::string("http://h/\0", 10), "percent-encode"},
      {"separator", "http://h/\x1F", "percent-encode"},
      {"DEL", "http://h/\x7F", "percent-encode"},
      {"UTF-8 path", "http://h/\xC3\xA4", "percent-encode"},
      {"UTF-8 host", "http://\xC3\xA4.example/", "percent-encode"},
      {"space in the fragment", "http://h/#a b", "percent-encode"},
      {"escaped host", "http://a%2eb/", "host"},
      {"host with a backslash", "http://good.example\\@evil.example/", "login"},
      {"host with a comma", "http://a,b/", "host"},
      {"host with a star", "http://*.example/", "host"},
      {"host too long", "http://" + std::string(254, 'a') + "/", "host"},
      {"IPv6 without end", "http://[::1/x", "host"},
      {"IPv6 without brackets", "http://::1/x", "host"},
      {"IPv6 with a zone", "http://[fe80::1%25eth0]/x", "host"},
      {"IPv6, garbage behind", "http://[::1]a/", "host"},
      {"IPv4 in brackets", "http://[127.0.0.1]/", "host"},
      {"empty brackets", "http://[]/", "host"},
      {"port 0", "http://h:0/", "port"},
      {"port 65536", "http://h:65536/", "port"},
      {"port with letters", "http://h:80a/", "port"},
      {"port with a sign", "http://h:+80/", "port"},
      {"port of six digits", "http://h:000080/", "port"},
      {"two ports", "http://h:80:81/", "port"},
      {"login with a slash in the password", "http://u:p/q@h/x", "port"},
      {"login with a bad escape", "http://u%zz@h/x", "login"},
      {"login with a bracket", "http://u[@h/x", "login"},
      {"too long", "http://h/" + std::string(kMaxUrlBytes, 'a'), "longer than"},
  };
  for (const auto& row : rows) {
    const auto got = ParseUrl(row.text);
    ASSERT_FALSE(got.has_value()) << row.name;
    EXPECT_EQ(got.error().code, Code::kInvalidArgument) << row.name;
    EXPECT_NE(got.error().context.find(row.reason), std::string::npos)
        << row.name << ": " << got.error().context;
  }
}

TEST(ParseUrl, LongestAccepted) {
  const std::string prefix = "http://h/";
  EXPECT_TRUE(ParseUrl(prefix + std::string(kMaxUrlBytes - prefix.size(), 'a')).has_value());
  EXPECT_FALSE(ParseUrl(prefix + std::string(kMaxUrlBytes - prefix.size() + 1, 'a')).has_value());
}

TEST(ParseUrl, ErrorsQuoteNeitherLoginNorQuery) {
  for (const char* text :
       {"http://user:hunter2@h:99999/x?token=hunter2", "ftp://u:hunter2@h/?hunter2",
        "http://h/ ?hunter2", "http://u:hunter2@/"}) {
    const auto got = ParseUrl(text);
    ASSERT_FALSE(got.has_value()) << text;
    EXPECT_EQ(got.error().context.find("hunter2"), std::string::npos) << got.error().context;
  }
}

struct ViewRow {
  const char* text;
  const char* whole;
  const char* authority;
  const char* host_port;
  const char* target;
};

TEST(Url, Views) {
  const ViewRow rows[] = {
      {"HTTP://u:p@H/x?q#f", "http://h/x?q", "http://h:80", "h", "/x?q"},
      {"https://h:443", "https://h:443/", "https://h:443", "h", "/"},
      {"https://h:80/x?", "https://h:80/x?", "https://h:80", "h:80", "/x?"},
      {"http://h:443/", "http://h:443/", "http://h:443", "h:443", "/"},
      {"http://h:0080/", "http://h:0080/", "http://h:80", "h", "/"},
      {"http://h:08080/", "http://h:08080/", "http://h:8080", "h:08080", "/"},
      {"http://[::1]:8080/a//b", "http://[::1]:8080/a//b", "http://[::1]:8080", "[::1]:8080",
       "/a//b"},
      {"https://[::1]/", "https://[::1]/", "https://[::1]:443", "[::1]", "/"},
  };
  for (const auto& row : rows) {
    const auto url = ParseUrl(row.text);
    ASSERT_TRUE(url.has_value()) << row.text;
    EXPECT_EQ(url->ToString(), row.whole);
    EXPECT_EQ(url->Authority(), row.authority) << row.text;
    EXPECT_EQ(url->HostPort(), row.host_port) << row.text;
    EXPECT_EQ(url->RequestTarget(), row.target) << row.text;
  }
}

struct LoginRow {
  const char* name;
  const char* text;
  std::optional<Credentials> want;
};

TEST(Url, Login) {
  const LoginRow rows[] = {
      {"none", "http://h/", std::nullopt},
      {"empty", "http://@h/", std::nullopt},
      {"both", "http://user:pw@h/", Credentials{"user", "pw"}},
      {"user only", "http://token@h/", Credentials{"token", ""}},
      {"password only", "http://:pw@h/", Credentials{"", "pw"}},
      {"decoded", "http://a%40b:p%3Aw%2F%00@h/", Credentials{"a@b", std::string("p:w/\0", 5)}},
      {"colon in the password", "http://u:a:b@h/", Credentials{"u", "a:b"}},
      {"escaped colon is no separator", "http://a%3Ab:c@h/", Credentials{"a:b", "c"}},
      {"plus stays", "http://a+b:c+d@h/", Credentials{"a+b", "c+d"}},
      {"@ in the password", "http://u:p@ss@h/", Credentials{"u", "p@ss"}},
  };
  for (const auto& row : rows) {
    const auto url = ParseUrl(row.text);
    ASSERT_TRUE(url.has_value()) << row.name;
    EXPECT_EQ(url->Login(), row.want) << row.name;
  }
}

struct ResolveRow {
  const char* reference;
  const char* want;
};

// RFC 3986 section 5.4, with the path-only results behind "http://a".
TEST(ResolveReference, Rfc3986Examples) {
  const ResolveRow rows[] = {
      {"g", "/b/c/g"},
      {"./g", "/b/c/g"},
      {"g/", "/b/c/g/"},
      {"/g", "/g"},
      {"?y", "/b/c/d;p?y"},
      {"g?y", "/b/c/g?y"},
      {"#s", "/b/c/d;p?q"},
      {"g#s", "/b/c/g"},
      {"g?y#s", "/b/c/g?y"},
      {";x", "/b/c/;x"},
      {"g;x", "/b/c/g;x"},
      {"g;x?y#s", "/b/c/g;x?y"},
      {"", "/b/c/d;p?q"},
      {".", "/b/c/"},
      {"./", "/b/c/"},
      {"..", "/b/"},
      {"../", "/b/"},
      {"../g", "/b/g"},
      {"../..", "/"},
      {"../../", "/"},
      {"../../g", "/g"},
      {"../../../g", "/g"},
      {"../../../../g", "/g"},
      {"/./g", "/g"},
      {"/../g", "/g"},
      {"g.", "/b/c/g."},
      {".g", "/b/c/.g"},
      {"g..", "/b/c/g.."},
      {"..g", "/b/c/..g"},
      {"./../g", "/b/g"},
      {"./g/.", "/b/c/g/"},
      {"g/./h", "/b/c/g/h"},
      {"g/../h", "/b/c/h"},
      {"g;x=1/./y", "/b/c/g;x=1/y"},
      {"g;x=1/../y", "/b/c/y"},
      {"g?y/./x", "/b/c/g?y/./x"},
      {"g?y/../x", "/b/c/g?y/../x"},
      {"g#s/../x", "/b/c/g"},
  };
  const auto base = ParseUrl("http://a/b/c/d;p?q");
  ASSERT_TRUE(base.has_value());
  for (const auto& row : rows) {
    const auto got = ResolveReference(*base, row.reference);
    ASSERT_TRUE(got.has_value()) << row.reference;
    EXPECT_EQ(got->ToString(), std::string("http://a") + row.want) << row.reference;
  }
}

struct ResolveFromRow {
  const char* name;
  const char* base;
  const char* reference;
  const char* want;
  const char* userinfo = "";
};

TEST(ResolveReference, LocationsAndHrefs) {
  const ResolveFromRow rows[] = {
      {"absolute", "http://a/x", "https://b:8443/y?z", "https://b:8443/y?z"},
      {"absolute, dots removed", "http://a/x", "http://b/p/../q", "http://b/q"},
      {"network path keeps the scheme", "https://a/x", "//b/y", "https://b/y"},
      {"empty segments stay", "http://a/x//y", "..//z", "http://a/x//z"},
      {"escapes stay", "http://a/d/", "a%2Fb%3F%2e%2e/%zz", "http://a/d/a%2Fb%3F%2e%2e/%zz"},
      {"escaped dots are names", "http://a/d/e/", "%2e%2e/x", "http://a/d/e/%2e%2e/x"},
      {"base directory", "http://a/d/", "f", "http://a/d/f"},
      {"base without path", "http://a", "f", "http://a/f"},
      {"lone question mark", "http://a/d?q", "?", "http://a/d?"},
      {"colon behind a dot segment", "http://a/d/", "./sha256:ab", "http://a/d/sha256:ab"},
      {"slash in the base's query", "http://a/d/x?y/z", "f", "http://a/d/f"},
      {"same authority keeps the login", "http://u:p@a/x", "/y", "http://a/y", "u:p"},
      {"absolute loses the login", "http://u:p@a/x", "http://a/y", "http://a/y"},
      {"network path loses the login", "http://u:p@a/x", "//a/y", "http://a/y"},
      {"own login", "http://a/x", "http://q:r@b/y", "http://b/y", "q:r"},
  };
  for (const auto& row : rows) {
    const auto base = ParseUrl(row.base);
    ASSERT_TRUE(base.has_value()) << row.name;
    const auto got = ResolveReference(*base, row.reference);
    ASSERT_TRUE(got.has_value()) << row.name << ": " << got.error().context;
    EXPECT_EQ(got->ToString(), row.want) << row.name;
    EXPECT_EQ(got->userinfo, row.userinfo) << row.name;
  }
}

TEST(ResolveReference, Refused) {
  const auto base = ParseUrl("https://a/b/c");
  ASSERT_TRUE(base.has_value());
  for (const char* reference :
       {"ftp://b/x", "javascript:alert(1)", "mailto:a@b", "http:x", "https:/x", "//", "///x", "a b",
        "\xC3\xA4", "x\r\nSet-Cookie: a", "sha256:ab", "http://b:0/"}) {
    const auto got = ResolveReference(*base, reference);
    ASSERT_FALSE(got.has_value()) << reference << " -> " << got->ToString();
    EXPECT_EQ(got.error().code, Code::kInvalidArgument) << reference;
  }
  const std::string segment(kMaxUrlBytes - 10, 'a');
  EXPECT_FALSE(ResolveReference(*base, segment).has_value());
}

TEST(PercentEncode, Sets) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const UrlSet set : {UrlSet::kUrl, UrlSet::kPath, UrlSet::kSegment, UrlSet::kUnreserved}) {
    const std::string encoded = PercentEncode(all, set);
    for (const char c : encoded) ASSERT_TRUE(c >= 0x21 && c <= 0x7E);
    if (set == UrlSet::kUrl) continue;  // leaves '%' alone: not reversible
    EXPECT_EQ(PercentDecode(encoded), all);
  }
  EXPECT_EQ(PercentEncode("a b%20\xC3\xA4/?#", UrlSet::kUrl), "a%20b%20%C3%A4/?#");
  EXPECT_EQ(PercentEncode("a/b?c%:@+", UrlSet::kPath), "a/b%3Fc%25:@+");
  EXPECT_EQ(PercentEncode("a/b?c%:@+", UrlSet::kSegment), "a%2Fb%3Fc%25:@+");
  EXPECT_EQ(PercentEncode("a/b?c%:@+-._~", UrlSet::kUnreserved), "a%2Fb%3Fc%25%3A%40%2B-._~");
}

TEST(PercentDecode, Text) {
  EXPECT_EQ(PercentDecode(""), "");
  EXPECT_EQ(PercentDecode("a+b%20c%2f%2F%C3%a4"), "a+b c//\xC3\xA4");
  for (const char* bad : {"%", "%2", "a%", "%g0", "%0g", "%%20", "% 2"}) {
    EXPECT_EQ(PercentDecode(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace dartfs::core
