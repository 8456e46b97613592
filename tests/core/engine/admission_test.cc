#include "core/engine/admission.h"

#include <gtest/gtest.h>

namespace dartfs::core {
namespace {

HttpHead Head(int status, std::vector<HttpHeader> headers) {
  HttpHead head;
  head.status = status;
  head.headers = std::move(headers);
  return head;
}

TEST(ContentRange, Parse) {
  struct Row {
    const char* text;
    bool ok;
    uint64_t first, last;
    std::optional<uint64_t> total;
  };
  const Row rows[] = {
      {"bytes 0-0/1", true, 0, 0, 1},
      {"Bytes 4-7/100", true, 4, 7, 100},
      {"bytes 0-0/*", true, 0, 0, std::nullopt},
      {" bytes 0-3/4 ", true, 0, 3, 4},
      {"bytes */4", false, 0, 0, {}},
      {"bytes 3-2/4", false, 0, 0, {}},
      {"bytes 0-4/4", false, 0, 0, {}},
      {"bytes 0-/4", false, 0, 0, {}},
      {"bytes -1-2/4", false, 0, 0, {}},
      {"bytes 0-0/", false, 0, 0, {}},
      {"bytes 0-0", false, 0, 0, {}},
      {"bytes=0-0/4", false, 0, 0, {}},
      {"items 0-0/4", false, 0, 0, {}},
      {"bytes 0-18446744073709551616/4", false, 0, 0, {}},
      {"bytes 0x0-0/4", false, 0, 0, {}},
      {"", false, 0, 0, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    const auto range = ParseContentRange(row.text);
    ASSERT_EQ(range.has_value(), row.ok);
    if (!row.ok) continue;
    EXPECT_EQ(range->first, row.first);
    EXPECT_EQ(range->last, row.last);
    EXPECT_EQ(range->total, row.total);
  }
}

TEST(ContentRange, Unsatisfied) {
  EXPECT_EQ(ParseUnsatisfiedRange("bytes */0"), 0u);
  EXPECT_EQ(ParseUnsatisfiedRange("bytes */17"), 17u);
  EXPECT_EQ(ParseUnsatisfiedRange("bytes */*"), std::nullopt);
  EXPECT_EQ(ParseUnsatisfiedRange("bytes 0-0/1"), std::nullopt);
}

ExpectedBlock Expected(std::string_view version) {
  ExpectedBlock expected;
  expected.first = 8;
  expected.last = 15;
  expected.total = 100;
  expected.version = version;
  expected.what = "GET http://h/x";
  return expected;
}

TEST(Admission, BlockHead) {
  const HttpHeader range{"Content-Range", "bytes 8-15/100"};
  const HttpHeader length{"Content-Length", "8"};
  const HttpHeader etag{"ETag", "\"v1\""};
  const char* kModified = "Mon, 02 Jan 2006 15:04:05 GMT";
  struct Row {
    const char* name;
    const char* version;
    int status;
    std::vector<HttpHeader> headers;
    std::optional<Code> error;
  };
  const Row rows[] = {
      {"right", "e:\"v1\"", 206, {range, length, etag}, {}},
      {"no length is fine, framing decides", "e:\"v1\"", 206, {range, etag}, {}},
      {"fixed version needs no validator", "", 206, {range, length}, {}},
      {"several parts",
       "e:\"v1\"",
       206,
       {range, length, etag, {"Content-Type", "Multipart/ByteRanges; boundary=x"}},
       Code::kBadResponse},
      {"200", "e:\"v1\"", 200, {length, etag}, Code::kRangeBlind},
      {"200 with Content-Range", "e:\"v1\"", 200, {range, length, etag}, Code::kRangeBlind},
      {"other ETag", "e:\"v1\"", 206, {range, length, {"ETag", "\"v2\""}}, Code::kStale},
      {"weak ETag now", "e:\"v1\"", 206, {range, length, {"ETag", "W/\"v1\""}}, Code::kStale},
      {"no ETag now", "e:\"v1\"", 206, {range, length}, Code::kStale},
      {"412", "e:\"v1\"", 412, {}, Code::kStale},
      {"other total, same ETag",
       "e:\"v1\"",
       206,
       {{"Content-Range", "bytes 8-15/99"}, length, etag},
       Code::kBadResponse},
      {"416 of another size", "e:\"v1\"", 416, {{"Content-Range", "bytes */9"}}, Code::kStale},
      {"416 of the same size",
       "e:\"v1\"",
       416,
       {{"Content-Range", "bytes */100"}},
       Code::kBadResponse},
      {"hidden total",
       "e:\"v1\"",
       206,
       {{"Content-Range", "bytes 8-15/*"}, length, etag},
       Code::kBadResponse},
      {"other range",
       "e:\"v1\"",
       206,
       {{"Content-Range", "bytes 0-7/100"}, length, etag},
       Code::kBadResponse},
      {"shorter range",
       "e:\"v1\"",
       206,
       {{"Content-Range", "bytes 8-14/100"}, length, etag},
       Code::kBadResponse},
      {"no range", "e:\"v1\"", 206, {length, etag}, Code::kBadResponse},
      {"length does not fit",
       "e:\"v1\"",
       206,
       {range, {"Content-Length", "7"}, etag},
       Code::kBadResponse},
      {"lengths that differ",
       "e:\"v1\"",
       206,
       {range, {"Content-Length", "8"}, {"Content-Length", "9"}, etag},
       Code::kBadResponse},
      {"ranges that differ",
       "e:\"v1\"",
       206,
       {range, {"Content-Range", "bytes 0-7/100"}, length, etag},
       Code::kBadResponse},
      {"gzip",
       "e:\"v1\"",
       206,
       {range, length, etag, {"Content-Encoding", "gzip"}},
       Code::kBadResponse},
      {"identity coding",
       "e:\"v1\"",
       206,
       {range, length, etag, {"Content-Encoding", "identity"}},
       {}},
      {"gzip behind identity",
       "e:\"v1\"",
       206,
       {range, length, etag, {"Content-Encoding", "identity"}, {"Content-Encoding", "gzip"}},
       Code::kBadResponse},
      {"401", "", 401, {}, Code::kUnauthorized},
      {"403", "", 403, {}, Code::kForbidden},
      {"404", "", 404, {}, Code::kNotFound},
      {"410", "", 410, {}, Code::kGone},
      {"429", "", 429, {}, Code::kTooManyRequests},
      {"503", "", 503, {}, Code::kTooManyRequests},
      {"500", "", 500, {}, Code::kUnavailable},
      {"204", "", 204, {}, Code::kBadResponse},
      {"304 unasked", "e:\"v1\"", 304, {etag}, Code::kBadResponse},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Status status = CheckBlockHead(Head(row.status, row.headers), Expected(row.version));
    ASSERT_EQ(status.has_value(), !row.error.has_value())
        << (status ? "" : status.error().ToString());
    if (row.error) {
      EXPECT_EQ(status.error().code, *row.error) << status.error().ToString();
    }
  }
  const std::string modified = std::string("m:") + kModified + "/100";
  const HttpHeader other{"Content-Range", "bytes 8-15/99"};
  const Status resized =
      CheckBlockHead(Head(206, {other, length, {"Last-Modified", kModified}}), Expected(modified));
  ASSERT_FALSE(resized);
  EXPECT_EQ(resized.error().code, Code::kStale);
  EXPECT_TRUE(
      CheckBlockHead(Head(206, {range, length, {"Last-Modified", kModified}}), Expected(modified)));
  EXPECT_EQ(
      CheckBlockHead(Head(206, {range, length, {"Last-Modified", "Mon, 02 Jan 2006 15:04:06 GMT"}}),
                     Expected(modified))
          .error()
          .code,
      Code::kStale);
}

TEST(Admission, StatusErrorCarriesRetryAfter) {
  EXPECT_EQ(StatusError(Head(429, {{"Retry-After", "7"}}), "GET x").retry_after_ms, 7000);
  EXPECT_EQ(StatusError(Head(503, {{"Retry-After", "Mon, 02 Jan 2006 15:04:15 GMT"},
                                   {"Date", "Mon, 02 Jan 2006 15:04:05 GMT"}}),
                        "GET x")
                .retry_after_ms,
            10000);
  EXPECT_EQ(StatusError(Head(503, {}), "GET x").retry_after_ms, -1);
  EXPECT_EQ(StatusError(Head(404, {}), "GET x").http_status, 404);
  for (const int status : {401, 403, 404, 410, 429, 503}) {
    const Error error = StatusError(Head(status, {{"Retry-After", "3"}}), "GET x");
    EXPECT_EQ(error.http_status, status);
    EXPECT_EQ(error.retry_after_ms, 3000) << status;
  }
}

TEST(Admission, A401CarriesItsChallenge) {
  const std::vector<HttpHeader> two = {
      {"WWW-Authenticate", "Bearer realm=\"https://auth/token\",service=\"r\""},
      {"www-authenticate", " Basic realm=\"\xc3\xa4\" "}};
  const std::string joined =
      "Bearer realm=\"https://auth/token\",service=\"r\", Basic realm=\"\xc3\xa4\"";
  EXPECT_EQ(StatusError(Head(401, two), "GET x").challenge, joined);
  for (const int status : {403, 404, 407, 503}) {
    EXPECT_EQ(StatusError(Head(status, two), "GET x").challenge, "") << status;
  }
  EXPECT_EQ(StatusError(Head(401, {}), "GET x").challenge, "");
  EXPECT_EQ(CheckBlockHead(Head(401, two), {}).error().challenge, joined);
  EXPECT_EQ(ReadProbeHead(Head(401, two), false, "GET x").error().challenge, joined);
}

TEST(Admission, AChallengeIsBoundedAndClean) {
  const auto challenge = [](std::vector<std::string> values) {
    HttpHead head = Head(401, {});
    for (auto& value : values) head.headers.push_back({"WWW-Authenticate", std::move(value)});
    return StatusError(head, "GET x").challenge;
  };
  const std::string most(4096, 'x');
  EXPECT_EQ(challenge({most}), most);
  EXPECT_EQ(challenge({most + "x", "Basic"}), "Basic") << "never a half one";
  EXPECT_EQ(challenge({std::string(4095, 'x'), "Basic"}), std::string(4095, 'x'));
  EXPECT_EQ(challenge({"a\r\nX-Evil: 1", "Basic", "a\x7f"}), "Basic");
}

TEST(Admission, Probe) {
  const HttpHeader etag{"ETag", "\"v1\""};
  struct Row {
    const char* name;
    int status;
    std::vector<HttpHeader> headers;
    std::optional<Code> error;
    bool blind;
    std::optional<uint64_t> size;
  };
  const Row rows[] = {
      {"range", 206, {{"Content-Range", "bytes 0-0/10"}, etag}, {}, false, 10},
      {"hidden total",
       206,
       {{"Content-Range", "bytes 0-0/*"}, etag},
       Code::kBadResponse,
       false,
       {}},
      {"another range",
       206,
       {{"Content-Range", "bytes 0-9/10"}, etag},
       Code::kBadResponse,
       false,
       {}},
      {"no range", 206, {etag}, Code::kBadResponse, false, {}},
      {"blind", 200, {{"Content-Length", "10"}, etag}, {}, true, 10},
      {"blind, no length", 200, {etag}, {}, true, {}},
      {"blind, lengths that differ",
       200,
       {{"Content-Length", "10"}, {"Content-Length", "11"}},
       {},
       true,
       {}},
      {"empty by 200", 200, {{"Content-Length", "0"}}, {}, false, 0},
      {"empty by 416", 416, {{"Content-Range", "bytes */0"}}, {}, false, 0},
      {"416 of something", 416, {{"Content-Range", "bytes */5"}}, Code::kBadResponse, false, {}},
      {"416 bare", 416, {}, Code::kBadResponse, false, {}},
      {"gzip",
       200,
       {{"Content-Length", "10"}, {"Content-Encoding", "gzip"}},
       Code::kBadResponse,
       false,
       {}},
      {"404", 404, {}, Code::kNotFound, false, {}},
      {"500", 500, {}, Code::kUnavailable, false, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto facts = ReadProbeHead(Head(row.status, row.headers), false, "GET http://h/x");
    ASSERT_EQ(facts.has_value(), !row.error.has_value());
    if (row.error) {
      EXPECT_EQ(facts.error().code, *row.error);
      continue;
    }
    EXPECT_EQ(facts->range_blind, row.blind);
    EXPECT_EQ(facts->size, row.size);
  }
  EXPECT_TRUE(ReadProbeHead(Head(304, {}), false, "GET x")->not_modified);
}

TEST(Admission, A304MayNameAnotherVersion) {
  const std::string time = "Mon, 02 Jan 2006 15:04:05 GMT";
  const std::string later = "Mon, 02 Jan 2006 15:04:06 GMT";
  const std::string by_etag = "e:\"v1\"", by_time = "m:" + time + "/100";
  const struct {
    std::string version, etag;
    std::vector<HttpHeader> headers;
    bool another;
  } rows[] = {
      {by_etag, "\"v1\"", {}, false},
      {by_etag, "\"v1\"", {{"ETag", "\"v1\""}}, false},
      {by_etag, "\"v1\"", {{"etag", "W/\"v1\""}}, false},
      {by_etag, "\"v1\"", {{"ETag", "\"v2\""}}, true},
      {by_etag, "\"v1\"", {{"ETag", "W/\"v2\""}}, true},
      {by_etag, "\"v1\"", {{"Last-Modified", later}}, false},
      {by_time, "", {}, false},
      {by_time, "", {{"Last-Modified", time}}, false},
      {by_time, "", {{"Last-Modified", later}}, true},
      {by_time, "", {{"ETag", "\"v1\""}}, false},
      {by_time, "W/\"v1\"", {{"ETag", "W/\"v1\""}}, false},
      {by_time, "W/\"v1\"", {{"ETag", "W/\"v2\""}}, true},
      {"n:1", "", {{"ETag", "\"v2\""}, {"Last-Modified", later}}, false},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(NamesAnother(Head(304, row.headers), row.version, row.etag), row.another)
        << row.version << " " << &row - rows;
  }
}

TEST(Admission, VersionGuardNeverUsesIfRange) {
  const auto by_etag = VersionGuard("e:\"v1\"");
  ASSERT_EQ(by_etag.size(), 1u);
  EXPECT_EQ(by_etag[0].name, "If-Match");
  EXPECT_EQ(by_etag[0].value, "\"v1\"");
  const auto by_time = VersionGuard("m:Mon, 02 Jan 2006 15:04:05 GMT/100");
  ASSERT_EQ(by_time.size(), 1u);
  EXPECT_EQ(by_time[0].name, "If-Unmodified-Since");
  EXPECT_EQ(by_time[0].value, "Mon, 02 Jan 2006 15:04:05 GMT");
  EXPECT_TRUE(VersionGuard("").empty());
  EXPECT_TRUE(VersionGuard("n:0123456789abcdef").empty());
}

TEST(Admission, SpoolHead) {
  ExpectedBlock expected = Expected("e:\"v1\"");
  const HttpHeader etag{"ETag", "\"v1\""};
  EXPECT_TRUE(CheckSpoolHead(Head(200, {etag, {"Content-Length", "100"}}), expected));
  EXPECT_TRUE(CheckSpoolHead(Head(200, {etag}), expected));
  EXPECT_EQ(CheckSpoolHead(Head(200, {etag, {"Content-Length", "99"}}), expected).error().code,
            Code::kStale);
  EXPECT_EQ(CheckSpoolHead(Head(200, {{"ETag", "\"v2\""}}), expected).error().code, Code::kStale);
  EXPECT_EQ(CheckSpoolHead(Head(206, {etag}), expected).error().code, Code::kBadResponse);
}

}  // namespace
}  // namespace dartfs::core
