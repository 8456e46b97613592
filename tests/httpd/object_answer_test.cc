// Answers to GET and HEAD of objects: the rows of spec/engine.md 3.4 and CLIENTS.md.
#include "httpd/object_answer.h"

#include <gtest/gtest.h>

#include <string>

#include "httpd/door_fixture.h"
#include "httpd/object_body.h"

namespace dartfs::httpd {
namespace {

using core::Pattern;

class ObjectAnswerTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    bytes_ = Pattern(5 * kBlock + 321, 1);
    origin().AddFile("/a.img", bytes_);
  }
  std::string bytes_;
};

TEST_F(ObjectAnswerTest, TheWholeObjectColdAndWarm) {
  for (const char* from : {"MISS", "HIT"}) {
    const RawResponse answer = Get("/a.img");
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.body == bytes_);
    EXPECT_EQ(answer.Header("Content-Length"), std::to_string(bytes_.size()));
    EXPECT_EQ(answer.Header("Accept-Ranges"), "bytes");
    EXPECT_EQ(answer.Header("Transfer-Encoding"), "");
    EXPECT_EQ(answer.Header("X-Cache"), from);
    EXPECT_EQ(answer.Header("Via"), "1.1 dartfs");
    EXPECT_EQ(answer.Header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(answer.Header("Content-Security-Policy"), "sandbox");
    EXPECT_FALSE(answer.Header("Content-Type").empty());
    EXPECT_FALSE(answer.Header("ETag").empty());
    EXPECT_FALSE(answer.Header("Last-Modified").empty());
    EXPECT_FALSE(answer.Header("Date").empty());
    ASSERT_TRUE(WaitStored(Open("/a.img").value()));
  }
  EXPECT_EQ(origin().StatsOf("/a.img").requests, 7u);  // a probe and six blocks
}

TEST_F(ObjectAnswerTest, SingleRanges) {
  const uint64_t size = bytes_.size();
  const struct {
    std::string range;
    uint64_t first, last;
  } kRows[] = {
      {"bytes=0-0", 0, 0},
      {"bytes=10-19", 10, 19},
      {"bytes=0-", 0, size - 1},
      {"bytes=100-", 100, size - 1},
      {"bytes=-1", size - 1, size - 1},
      {"bytes=-100", size - 100, size - 1},
      {"bytes=-99999999", 0, size - 1},
      {"bytes=5-99999999", 5, size - 1},
      {"bytes=" + std::to_string(kBlock - 1) + "-" + std::to_string(kBlock), kBlock - 1, kBlock},
      {"BYTES=10-19", 10, 19},
  };
  for (const auto& row : kRows) {
    for (int round = 0; round < 2; ++round) {
      const RawResponse answer = Get("/a.img", Range(row.range));
      EXPECT_EQ(answer.status, 206) << row.range;
      EXPECT_EQ(answer.Header("Content-Range"), "bytes " + std::to_string(row.first) + "-" +
                                                    std::to_string(row.last) + "/" +
                                                    std::to_string(size));
      EXPECT_TRUE(answer.body == bytes_.substr(row.first, row.last - row.first + 1)) << row.range;
    }
    const RawResponse head = Ask("HEAD", "/a.img", Range(row.range));
    EXPECT_EQ(head.status, 206);
    EXPECT_EQ(head.Header("Content-Length"), std::to_string(row.last - row.first + 1));
    EXPECT_EQ(head.body, "");
  }
}

TEST_F(ObjectAnswerTest, WhatIsNoRangeIsIgnored) {
  for (const char* range :
       {"bytes=", "bytes=a-b", "lines=1-2", "bytes=5-4", "bytes", "bytes=--1"}) {
    const RawResponse answer = Get("/a.img", Range(range));
    EXPECT_EQ(answer.status, 200) << range;
    EXPECT_EQ(answer.Header("Content-Range"), "") << range;
    EXPECT_TRUE(answer.body == bytes_) << range;
  }
}

TEST_F(ObjectAnswerTest, UnsatisfiableRanges) {
  for (const char* method : {"GET", "HEAD"}) {
    for (const std::string& range :
         {"bytes=" + std::to_string(bytes_.size()) + "-", std::string("bytes=99999999-"),
          std::string("bytes=-0"), std::string("bytes=99999999-,-0")}) {
      const RawResponse answer = Ask(method, "/a.img", Range(range));
      EXPECT_EQ(answer.status, 416) << method << range;
      EXPECT_EQ(answer.Header("Content-Range"), "bytes */" + std::to_string(bytes_.size()));
      EXPECT_EQ(answer.Header("Content-Length"), "0");
    }
  }
}

TEST_F(ObjectAnswerTest, SeveralRangesColdAndWarm) {
  for (int round = 0; round < 2; ++round) {
    const RawResponse answer = Get("/a.img", Range("bytes=0-9,100000-199999,-5"));
    ASSERT_EQ(answer.status, 206);
    const std::string type = answer.Header("Content-Type");
    ASSERT_EQ(type.rfind("multipart/byteranges; boundary=", 0), 0u) << type;
    const std::string boundary = type.substr(type.find('=') + 1);
    const std::string size = std::to_string(bytes_.size());
    const std::string of = "\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes ";
    const std::string expected =
        "--" + boundary + of + "0-9/" + size + "\r\n\r\n" + bytes_.substr(0, 10) + "\r\n--" +
        boundary + of + "100000-199999/" + size + "\r\n\r\n" + bytes_.substr(100000, 100000) +
        "\r\n--" + boundary + of + std::to_string(bytes_.size() - 5) + "-" +
        std::to_string(bytes_.size() - 1) + "/" + size + "\r\n\r\n" +
        bytes_.substr(bytes_.size() - 5) + "\r\n--" + boundary + "--\r\n";
    EXPECT_TRUE(answer.body == expected) << answer.body.size() << " of " << expected.size();
    EXPECT_EQ(answer.Header("Content-Range"), "");
    ASSERT_TRUE(Get("/a.img").body == bytes_);
    ASSERT_TRUE(WaitStored(Open("/a.img").value()));
  }
  // What overlaps is one range, and no multipart.
  const RawResponse merged = Get("/a.img", Range("bytes=0-9,5-20"));
  EXPECT_EQ(merged.Header("Content-Range"), "bytes 0-20/" + std::to_string(bytes_.size()));
}

TEST_F(ObjectAnswerTest, TheEmptyObject) {
  origin().AddFile("/empty", "");
  for (const char* method : {"GET", "HEAD"}) {
    const RawResponse whole = Ask(method, "/empty");
    EXPECT_EQ(whole.status, 200);
    EXPECT_EQ(whole.Header("Content-Length"), "0");
    for (const char* range : {"bytes=0-", "bytes=-5", "bytes=0-0"}) {
      const RawResponse ranged = Ask(method, "/empty", Range(range));
      EXPECT_EQ(ranged.status, 416) << range;
      EXPECT_EQ(ranged.Header("Content-Range"), "bytes */0");
    }
  }
}

TEST_F(ObjectAnswerTest, Conditions) {
  const RawResponse first = Ask("HEAD", "/a.img");
  const std::string etag = first.Header("ETag");
  const std::string modified = first.Header("Last-Modified");
  EXPECT_EQ(Get("/a.img", "If-None-Match: " + etag + "\r\n").status, 304);
  EXPECT_EQ(Get("/a.img", "If-None-Match: \"x\", W/" + etag + "\r\n").status, 304);
  EXPECT_EQ(Get("/a.img", "If-None-Match: \"other\"\r\n").status, 200);
  EXPECT_EQ(Get("/a.img", "If-Modified-Since: " + modified + "\r\n").status, 304);
  EXPECT_EQ(Get("/a.img", "If-Match: \"other\"\r\n").status, 412);
  EXPECT_EQ(Get("/a.img", "If-Match: " + etag + "\r\n").status, 200);
  EXPECT_EQ(Get("/a.img", "If-Unmodified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n").status, 412);
  EXPECT_EQ(Get("/a.img", "If-Range: " + etag + "\r\n" + Range("bytes=0-1")).status, 206);
  EXPECT_EQ(Get("/a.img", "If-Range: \"other\"\r\n" + Range("bytes=0-1")).status, 200);
  EXPECT_EQ(Get("/a.img", "If-Range: " + modified + "\r\n" + Range("bytes=0-1")).status, 200);
  const RawResponse unchanged = Get("/a.img", "If-None-Match: *\r\n");
  EXPECT_EQ(unchanged.status, 304);
  EXPECT_EQ(unchanged.Header("ETag"), etag);
  EXPECT_EQ(unchanged.Header("Content-Length"), "");
}

TEST_F(ObjectAnswerTest, HeadIsLikeGet) {
  const RawResponse get = Get("/a.img");
  const RawResponse head = Ask("HEAD", "/a.img");
  for (const char* name :
       {"Content-Length", "Content-Type", "ETag", "Last-Modified", "Accept-Ranges", "Via"}) {
    EXPECT_EQ(head.Header(name), get.Header(name)) << name;
  }
  EXPECT_EQ(head.status, 200);
}

TEST_F(ObjectAnswerTest, TheOriginIsNeverAskedByHead) {
  ASSERT_EQ(Ask("HEAD", "/a.img").status, 200);
  for (const auto& request : origin().Log()) EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(origin().Log().size(), 1u);
  EXPECT_EQ(origin().Log().front().Header("Range"), "bytes=0-0");
}

TEST_F(ObjectAnswerTest, TheOriginsRefusalsAreItsOwn) {
  for (const int status : {401, 403, 404, 410}) {
    origin::FaultRule rule;
    rule.path = "/refused" + std::to_string(status);
    rule.fault = origin::Fault::kStatus;
    rule.status = status;
    origin().AddFault(rule);
    const RawResponse answer = Get(rule.path);
    EXPECT_EQ(answer.status, status);
    EXPECT_NE(answer.body.find(origin().authority()), std::string::npos) << answer.body;
  }
}

TEST_F(ObjectAnswerTest, AnOriginThatIsGoneIsABadGateway) {
  origin().GoAway();
  const RawResponse answer = Get("/a.img?secret=1");
  EXPECT_EQ(answer.status, 502);
  EXPECT_NE(answer.body.find(origin().authority()), std::string::npos) << answer.body;
  EXPECT_EQ(answer.body.find("secret"), std::string::npos);
}

TEST_F(ObjectAnswerTest, AnErrorOfTheFirstBlockIsACleanStatus) {
  ASSERT_EQ(Ask("HEAD", "/a.img").status, 200);
  origin::FaultRule rule;
  rule.path = "/a.img";
  rule.fault = origin::Fault::kStatus;
  rule.status = 403;
  origin().AddFault(rule);
  EXPECT_EQ(Get("/a.img").status, 403);
}

TEST_F(ObjectAnswerTest, TheDefaultTypeIsBytes) {
  origin::FileOptions plain;
  plain.content_type = "text/html; charset=utf-8";
  origin().AddFile("/page", "<p>", plain);
  EXPECT_EQ(Get("/page").Header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(Get("/a.img").Header("Content-Type"), "application/octet-stream");
}

TEST_F(ObjectAnswerTest, WhatTheOriginSaysOfItIsSaidOfCachedAnswersToo) {
  const origin::Headers said = {{"Content-Disposition", "attachment; filename=x"},
                                {"Cache-Control", "max-age=600"},
                                {"X-Repo-Commit", "abc"},
                                {"X-Linked-Etag", "\"linked\""},
                                {"X-Linked-Size", "321"}};
  origin::FileOptions options;
  options.headers = said;
  options.headers.emplace_back("X-Secret", "1");
  origin().AddFile("/model", bytes_, options);
  for (const char* method : {"GET", "HEAD", "GET"}) {
    const RawResponse answer = Ask(method, "/model", Range("bytes=0-0"));
    for (const auto& [name, value] : said) EXPECT_EQ(answer.Headers(name), std::vector{value});
    EXPECT_EQ(answer.Headers("Last-Modified").size(), 1u);
    EXPECT_EQ(answer.Header("X-Secret"), "");
  }
}

TEST_F(ObjectAnswerTest, AnAnswerUnderWayEndsWhenTheBytesAreNotThoseOfTheDigest) {
  const std::string path = "/v2/a/blobs/sha256:" + std::string(64, 'a');
  origin().AddFile(path, bytes_);
  const auto object = Open(path).value();
  ObjectParts parts;
  parts.object = object;
  parts.requester =
      std::make_shared<core::Requester>(core::Requester{object->facts().url, "", false});
  parts.parts = {{0, object->size() - 1}};
  ObjectBody body(*store_, std::move(parts));
  Get(path);  // all of it comes, and is found out
  for (int i = 0; i < 500 && !object->refused(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(object->refused());
  const BodyStep step = body.Next(1 << 20, [] {});
  const auto* error = std::get_if<core::Error>(&step);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->code, core::Code::kCorrupt);
}

TEST_F(ObjectAnswerTest, BadUrls) {
  for (const char* target : {"/dart/", "/dart/ftp://h/x", "/dart/http:/h/x", "/dart/h/x",
                             "/dart/http://", "/dart/http://h:99999/"}) {
    const RawResponse answer = origin::Get(port(), target);
    EXPECT_EQ(answer.status, 400) << target;
  }
  EXPECT_EQ(origin::Get(port(), "/elsewhere").status, 404);
}

TEST_F(ObjectAnswerTest, TheEmbeddedUrlIsTakenByteForByte) {
  origin().AddFile("/d//e%2Ff", "odd");
  EXPECT_EQ(Get("/d//e%2Ff?x=%2B+%3D&y=//").body, "odd");
  for (const auto& request : origin().Log()) EXPECT_EQ(request.target, "/d//e%2Ff?x=%2B+%3D&y=//");
}

}  // namespace
}  // namespace dartfs::httpd
