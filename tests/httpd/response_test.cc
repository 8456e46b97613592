#include "httpd/response.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "httpd/status_map.h"

namespace dartfs::httpd {
namespace {

constexpr const char* kDate = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
constexpr int64_t kNow = 784111777;

std::string Rendered(const ResponseHead& head, bool keep_alive = true, int minor_version = 1) {
  std::string text;
  RenderHead(head, {.keep_alive = keep_alive, .minor_version = minor_version, .now = kNow}, &text);
  return text;
}

TEST(Response, AHead) {
  ResponseHead head;
  head.status = 206;
  head.Add("Content-Range", "bytes 0-1/9");
  head.content_length = 2;
  EXPECT_EQ(Rendered(head), std::string("HTTP/1.1 206 Partial Content\r\n") + kDate +
                                "Content-Range: bytes 0-1/9\r\n"
                                "Content-Length: 2\r\n\r\n");
}

TEST(Response, FramingAndConnection) {
  struct Row {
    Framing framing;
    bool keep_alive;
    int minor_version;
    const char* tail;
  };
  const Row rows[] = {
      {Framing::kLength, true, 1, "Content-Length: 7\r\n\r\n"},
      {Framing::kLength, false, 1, "Content-Length: 7\r\nConnection: close\r\n\r\n"},
      {Framing::kLength, true, 0, "Content-Length: 7\r\nConnection: keep-alive\r\n\r\n"},
      {Framing::kLength, false, 0, "Content-Length: 7\r\nConnection: close\r\n\r\n"},
      {Framing::kChunked, true, 1, "Transfer-Encoding: chunked\r\n\r\n"},
      {Framing::kClose, true, 0, "Connection: close\r\n\r\n"},
      {Framing::kNone, true, 1, "\r\n"},
  };
  for (const Row& row : rows) {
    ResponseHead head;
    head.framing = row.framing;
    head.content_length = 7;
    EXPECT_EQ(Rendered(head, row.keep_alive, row.minor_version),
              std::string("HTTP/1.1 200 OK\r\n") + kDate + row.tail);
  }
}

TEST(Response, WhatAnOriginSaysIsNoWayIntoTheHead) {
  ResponseHead head;
  head.AddForeign("ETag", "\"a\"");
  head.AddForeign("Content-Type", "text/plain\r\nSet-Cookie: x");
  head.AddForeign("Content-Disposition", std::string_view("a\0b", 3));
  head.AddForeign("Cache-Control", "a\nb");
  head.AddForeign("X-Repo-Commit", "\x7f");
  head.AddForeign("Last-Modified", std::nullopt);
  head.AddForeign("X-Linked-Etag", "\xc3\xa4\tb");
  EXPECT_EQ(std::count(head.lines().begin(), head.lines().end(), ':'), 2);
  EXPECT_EQ(head.lines().rfind("ETag: ", 0), 0u);
  EXPECT_EQ(head.Find("x-linked-etag"), "\xc3\xa4\tb");
  head.Remove("etag");
  EXPECT_EQ(head.lines(), "X-Linked-Etag: \xc3\xa4\tb\r\n");
  EXPECT_EQ(head.Find("ETag"), std::nullopt);
}

TEST(StatusMap, OriginsRefusalsPassThroughAndFailuresDoNot) {
  using core::Code;
  const std::pair<Code, int> rows[] = {
      {Code::kUnauthorized, 401},     {Code::kForbidden, 403},
      {Code::kNotFound, 404},         {Code::kGone, 410},
      {Code::kUnavailable, 502},      {Code::kTooManyRequests, 429},
      {Code::kDeadlineExceeded, 504}, {Code::kBadResponse, 502},
      {Code::kInvalidArgument, 400},  {Code::kBusy, 503},
      {Code::kRefused, 403},          {Code::kCorrupt, 502},
      {Code::kInternal, 500},         {Code::kRedirected, 502},
  };
  for (const auto& [code, status] : rows) EXPECT_EQ(StatusOf(code), status);
  EXPECT_TRUE(IsPassing(503));
  EXPECT_FALSE(IsPassing(502));
}

TEST(StatusMap, Reasons) {
  EXPECT_EQ(ReasonOf(416), "Range Not Satisfiable");
  EXPECT_EQ(ReasonOf(431), "Request Header Fields Too Large");
  EXPECT_EQ(ReasonOf(799), "");
}

}  // namespace
}  // namespace dartfs::httpd
