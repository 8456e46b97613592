#include "origin/http_text.h"

#include <gtest/gtest.h>

namespace dartfs::origin {
namespace {

TEST(HttpTextTest, RequestHeads) {
  const auto request = ParseRequestHead("GET /a%20b?x=1?2 HTTP/1.1\r\nHost: h\r\nx-y:  v w \r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->target, "/a%20b?x=1?2");
  EXPECT_EQ(request->path, "/a%20b");
  EXPECT_EQ(request->query, "x=1?2");
  EXPECT_EQ(*request->Find("X-Y"), "v w");
  EXPECT_EQ(request->Find("X"), nullptr);
  EXPECT_TRUE(request->KeepAlive());
  EXPECT_EQ(ParseRequestHead("GET http://h:1/p?q HTTP/1.1\r\n")->target, "/p?q");
  EXPECT_EQ(ParseRequestHead("GET http://h HTTP/1.1\r\n")->path, "/");
  for (const char* bad : {"", "GET\r\n", "GET / HTTP/1.1x\r\n", "GET  HTTP/1.1\r\n",
                          "GET / HTTP/1.1\r\n: v\r\n", "CONNECT h:1 HTTP/1.1\r\n"}) {
    EXPECT_FALSE(ParseRequestHead(bad)) << bad;
  }
}

TEST(HttpTextTest, PercentEncodingIsReversible) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(PercentDecode(PercentEncode(all)), all);
  EXPECT_EQ(PercentEncode("a b%/\xff"), "a%20b%25%2F%FF");
  EXPECT_EQ(PercentDecode("%4a%zz%"), "J%zz%");
}

TEST(HttpTextTest, Dates) {
  EXPECT_EQ(FormatHttpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(ParseHttpDate("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_FALSE(ParseHttpDate("Sunday, 06-Nov-94 08:49:37 GMT"));
  EXPECT_FALSE(ParseHttpDate("\"etag\""));
}

TEST(HttpTextTest, Globs) {
  struct Row {
    const char* pattern;
    const char* text;
    bool matches;
  };
  for (const Row& row : std::vector<Row>{{"*", "", true},
                                         {"*", "/a/b", true},
                                         {"/a", "/a", true},
                                         {"/a", "/ab", false},
                                         {"/a*c", "/abcbc", true},
                                         {"*.img", "/x.img.gz", false},
                                         {"/?", "/a", false},
                                         {"", "a", false}}) {
    EXPECT_EQ(GlobMatch(row.pattern, row.text), row.matches) << row.pattern << " " << row.text;
  }
}

TEST(HttpTextTest, NumbersAndSizes) {
  EXPECT_EQ(ParseNumber("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(ParseNumber("18446744073709551616"));
  EXPECT_FALSE(ParseNumber("-1"));
  EXPECT_FALSE(ParseNumber(""));
  EXPECT_EQ(ParseSize("3"), 3U);
  EXPECT_EQ(ParseSize("3KiB"), 3072U);
  EXPECT_EQ(ParseSize("3MB"), 3000000U);
  EXPECT_FALSE(ParseSize("3XB"));
  EXPECT_FALSE(ParseSize("99999999999TiB"));
}

TEST(HttpTextTest, QueryParameters) {
  EXPECT_EQ(QueryParameter("a=1&b=%2F&c", "b"), "/");
  EXPECT_EQ(QueryParameter("a=1&b=%2F&c", "c"), "");
  EXPECT_FALSE(QueryParameter("ab=1", "a"));
}

}  // namespace
}  // namespace dartfs::origin
