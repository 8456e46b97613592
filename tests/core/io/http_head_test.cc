#include "core/io/http_head.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dartfs::core {
namespace {

Result<HeadParser::Step> Feed(HeadParser& parser, const std::vector<std::string>& lines) {
  Result<HeadParser::Step> step = HeadParser::Step::kMore;
  for (const std::string& line : lines) {
    step = parser.Line(line + "\r\n");
    if (!step) return step;
  }
  return step;
}

TEST(HttpHead, ReadsStatusAndHeadersInOrder) {
  HeadParser parser;
  const auto step = Feed(parser, {"HTTP/1.1 206 Partial Content", "ETag:\"a\" ",
                                  "X-Empty:", "Content-Length: 5", "x-a: 1", "X-A: 1", ""});
  ASSERT_TRUE(step);
  EXPECT_EQ(*step, HeadParser::Step::kComplete);
  EXPECT_EQ(parser.head().status, 206);
  ASSERT_EQ(parser.head().headers.size(), 5U);
  EXPECT_EQ(parser.head().headers[0].name, "ETag");
  EXPECT_EQ(parser.head().headers[0].value, "\"a\"");
  EXPECT_EQ(parser.head().Find("x-empty"), "");
  EXPECT_EQ(parser.head().Find("X-a"), "1") << "repeated, but alike";
  EXPECT_EQ(parser.framing().BodyBytes(206), 5U);
  EXPECT_EQ(parser.framing().BodyBytes(304), 0U);
}

TEST(HttpHead, FindWantsOneValue) {
  HttpHead head;
  head.headers = {{"ETag", "a"}, {"etag", "b"}, {"Date", "x"}};
  EXPECT_EQ(head.Find("ETAG"), std::nullopt);
  EXPECT_EQ(head.Find("date"), "x");
  EXPECT_EQ(head.Find("age"), std::nullopt);
}

TEST(HttpHead, SkipsInterimAnswers) {
  HeadParser parser;
  const auto step =
      Feed(parser, {"HTTP/1.1 100 Continue", "", "HTTP/1.1 103 Early Hints", "Link: </a>",
                    "Content-Length: 77", "", "HTTP/1.1 200 OK", "Content-Length: 3", ""});
  ASSERT_TRUE(step);
  EXPECT_EQ(*step, HeadParser::Step::kComplete);
  EXPECT_EQ(parser.head().status, 200);
  EXPECT_EQ(parser.head().Find("link"), std::nullopt);
  EXPECT_EQ(parser.framing().content_length, 3U);
}

TEST(HttpHead, FoldedHeaderIsOneValue) {
  HeadParser parser;
  ASSERT_TRUE(Feed(parser, {"HTTP/1.1 200 OK", "X-A: one", "\ttwo", ""}));
  EXPECT_EQ(parser.head().Find("x-a"), "one two");
}

TEST(HttpHead, AcceptsWhatServersSend) {
  for (const std::string line :
       {"HTTP/1.0 200 OK", "HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1 299 \xc3\xa4"}) {
    HeadParser parser;
    EXPECT_TRUE(Feed(parser, {line, "X: \xff\xfe", ""})) << line;
  }
}

TEST(HttpHead, RefusesWhatCannotBeBelieved) {
  struct Case {
    const char* name;
    std::vector<std::string> lines;
  };
  const std::string status = "HTTP/1.1 200 OK";
  const std::vector<Case> cases = {
      {"not HTTP", {"<html>"}},
      {"status of two digits", {"HTTP/1.1 20 OK"}},
      {"status of four digits", {"HTTP/1.1 2000 OK"}},
      {"no status", {"HTTP/1.1"}},
      {"status 099", {"HTTP/1.1 099 x"}},
      {"switching protocols", {"HTTP/1.1 101 Switching Protocols"}},
      {"unlike lengths", {status, "Content-Length: 5", "content-length: 6", ""}},
      {"list of lengths", {status, "Content-Length: 5, 5", ""}},
      {"negative length", {status, "Content-Length: -1", ""}},
      {"signed length", {status, "Content-Length: +5", ""}},
      {"length in hex", {status, "Content-Length: 0x5", ""}},
      {"empty length", {status, "Content-Length:", ""}},
      {"length of 2^63", {status, "Content-Length: 9223372036854775808", ""}},
      {"length of 2^64", {status, "Content-Length: 18446744073709551616", ""}},
      {"length and chunked", {status, "Content-Length: 5", "Transfer-Encoding: chunked", ""}},
      {"gzip, chunked", {status, "Transfer-Encoding: gzip, chunked", ""}},
      {"identity", {status, "Transfer-Encoding: identity", ""}},
      {"chunked twice", {status, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", ""}},
      {"no colon", {status, "oops"}},
      {"blank before the colon", {status, "Content-Length : 5"}},
      {"no name", {status, ": 5"}},
      {"fold without a header", {status, " x"}},
      {"control character", {status, std::string("X: a\0b", 6)}},
      {"bare CR", {status, "X: a\rY: b"}},
  };
  for (const Case& c : cases) {
    HeadParser parser;
    const auto step = Feed(parser, c.lines);
    ASSERT_FALSE(step) << c.name;
    EXPECT_EQ(step.error().code, Code::kBadResponse) << c.name;
  }
}

TEST(HttpHead, LikeLengthsAreOne) {
  HeadParser parser;
  ASSERT_TRUE(Feed(parser, {"HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 5", ""}));
  EXPECT_EQ(parser.framing().content_length, 5U);
}

TEST(HttpHead, IsBoundedOverInterimAnswersToo) {
  HeadParser parser;
  Result<HeadParser::Step> step = HeadParser::Step::kMore;
  size_t bytes = 0;
  while (step && bytes < 2 * kMaxHeadBytes) {
    step = Feed(parser, {"HTTP/1.1 103 Early Hints", "X: " + std::string(1000, 'x'), ""});
    bytes += 1000;
  }
  ASSERT_FALSE(step);
  EXPECT_LE(bytes, kMaxHeadBytes + 1000);
}

TEST(HttpHead, RetryAfter) {
  const int64_t now = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT
  using std::chrono::seconds;
  EXPECT_EQ(ParseRetryAfter("120", now), seconds(120));
  EXPECT_EQ(ParseRetryAfter(" 0 ", now), seconds(0));
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:50:07 GMT", now), seconds(30));
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:00:00 GMT", now), seconds(0));
  EXPECT_EQ(ParseRetryAfter("soon", now), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("-5", now), std::nullopt);
  EXPECT_EQ(ParseRetryAfter("", now), std::nullopt);
  ASSERT_TRUE(ParseRetryAfter("18446744073709551615", now));
  EXPECT_GT(*ParseRetryAfter("18446744073709551615", now), seconds(0)) << "no overflow";
}

}  // namespace
}  // namespace dartfs::core
