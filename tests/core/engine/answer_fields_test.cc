#include "core/engine/answer_fields.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace dartfs::core {
namespace {

HttpHead Head(std::vector<HttpHeader> headers, std::vector<HttpHeader> of_redirects = {}) {
  HttpHead head;
  head.status = 206;
  head.headers = std::move(headers);
  head.redirect_headers = std::move(of_redirects);
  return head;
}

std::string Text(const AnswerFields& fields) {
  std::string text;
  for (const auto& [name, value] : fields.headers) text += name + "=" + value + ";";
  return text;
}

TEST(AnswerFields, KeepsWhatAClientShallSee) {
  const auto fields = ReadAnswerFields(Head({{"x-linked-etag", "\"abc\""},
                                             {"X-Linked-Size", "7"},
                                             {"X-Repo-Commit", "c0ffee"},
                                             {"docker-content-digest", "sha256:00"},
                                             {"last-modified", "a date"},
                                             {"Expires", "0"},
                                             {"Cache-Control", "max-age=60"},
                                             {"cache-control", "public"},
                                             {"Content-Disposition", "attachment; filename=\"a\""},
                                             {"Set-Cookie2", "x"},
                                             {"Content-Language", "de"},
                                             {"Server", "s"}}));
  EXPECT_EQ(Text(fields),
            "Content-Disposition=attachment; filename=\"a\";Cache-Control=max-age=60, public;"
            "Expires=0;Last-Modified=a date;Docker-Content-Digest=sha256:00;X-Repo-Commit=c0ffee;"
            "X-Linked-Etag=\"abc\";X-Linked-Size=7;");
  EXPECT_TRUE(fields.shared_cacheable);
  EXPECT_EQ(ReadAnswerFields(Head({})), AnswerFields());
}

TEST(AnswerFields, TheAnswerGoesBeforeItsRedirects) {
  const auto fields = ReadAnswerFields(
      Head({{"X-Linked-Size", "7"}}, {{"X-Linked-Size", "8"}, {"X-Linked-Etag", "\"r\""}}));
  EXPECT_EQ(Text(fields), "X-Linked-Etag=\"r\";X-Linked-Size=7;");
}

TEST(AnswerFields, AreBounded) {
  const std::string most(kMaxKeptFieldBytes, 'x');
  EXPECT_EQ(Text(ReadAnswerFields(Head({{"Expires", most + "y"}, {"X-Linked-Size", "7"}}))),
            "X-Linked-Size=7;");
  EXPECT_EQ(ReadAnswerFields(Head({{"Expires", most}})).headers.size(), 1U);
  EXPECT_EQ(Text(ReadAnswerFields(Head({{"Expires", "a\nb"}, {"X-Linked-Size", "\x7f"}}))), "");
  EXPECT_EQ(Text(ReadAnswerFields(Head({{"Expires", "a\t\xc3\xa4"}}))), "Expires=a\t\xc3\xa4;");
  // 4 KiB in all, the names with them: three of the largest, and a small one after.
  const auto fields = ReadAnswerFields(Head({{"Content-Disposition", most},
                                             {"Cache-Control", most},
                                             {"Expires", most},
                                             {"Last-Modified", most},
                                             {"X-Linked-Size", "7"}}));
  EXPECT_EQ(fields.headers.size(), 4U);
  EXPECT_EQ(fields.headers[3].name, "X-Linked-Size");
}

TEST(AnswerFields, WhatASharedCacheMayStore) {
  struct Row {
    const char* name;
    const char* value;
    bool may;
  };
  const Row rows[] = {
      {"Cache-Control", "", true},
      {"Cache-Control", "max-age=60, public", true},
      {"Cache-Control", "no-store", false},
      {"Cache-Control", "max-age=0,NO-STORE", false},
      {"cache-control", "Private", false},
      {"Cache-Control", "private=\"set-cookie\"", false},
      {"Cache-Control", "private = \"a, b\" , max-age=1", false},
      {"Cache-Control", "x=\"private, no-store\"", true},
      {"Cache-Control", "x=\"a\\\", private\"", true},
      {"Cache-Control", "x=\"a\\\\\", private", false},
      {"Cache-Control", "x=\"open, max-age=1", false},
      {"Cache-Control", "x-private, no-store2, privately=1", true},
      {"Cache-Control", "max-age=9, no-cache", false},
      {"Cache-Control", ", ,private", false},
      {"Set-Cookie", "a=b", false},
      {"set-cookie", "", false},
      {"Vary", "accept-encoding", true},
      {"Vary", "Accept-Encoding, , Accept-Encoding", true},
      {"Vary", "", true},
      {"Vary", "*", false},
      {"Vary", "Accept-Encoding, Origin", false},
      {"Vary", "Accept", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ReadAnswerFields(Head({{row.name, row.value}})).shared_cacheable, row.may)
        << row.name << ": " << row.value;
  }
  EXPECT_FALSE(
      ReadAnswerFields(Head({{"Vary", "Accept-Encoding"}, {"Vary", "Cookie"}})).shared_cacheable)
      << "every field counts";
}

TEST(AnswerFields, A304RefreshesWhatItSays) {
  const auto known =
      ReadAnswerFields(Head({{"Cache-Control", "max-age=1"}, {"X-Repo-Commit", "c"}}));
  const auto later = ReadAnswerFields(Head({{"Cache-Control", "max-age=2"}, {"Expires", "0"}}));
  EXPECT_EQ(Text(Refreshed(known, later)), "Cache-Control=max-age=2;Expires=0;X-Repo-Commit=c;");
  EXPECT_TRUE(Refreshed(known, later).shared_cacheable);
  const auto closed = ReadAnswerFields(Head({{"Cache-Control", "private"}}));
  EXPECT_FALSE(Refreshed(known, closed).shared_cacheable);
  EXPECT_FALSE(Refreshed(closed, later).shared_cacheable);
}

TEST(AnswerFields, ARefreshIsBoundedToo) {
  const std::string most(kMaxKeptFieldBytes, 'x');
  const auto known = ReadAnswerFields(
      Head({{"Last-Modified", most}, {"X-Repo-Commit", most}, {"X-Linked-Size", "7"}}));
  const auto later = ReadAnswerFields(Head({{"Content-Disposition", most}, {"Expires", most}}));
  size_t bytes = 0;
  for (const auto& [name, value] : Refreshed(known, later).headers) {
    bytes += name.size() + value.size();
  }
  EXPECT_LE(bytes, kMaxKeptBytes);
}

}  // namespace
}  // namespace dartfs::core
