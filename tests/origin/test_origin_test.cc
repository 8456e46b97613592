// The origin when it behaves.
#include "origin/test_origin.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "origin/raw_client.h"

namespace dartfs::origin {
namespace {

using testing::HasSubstr;

class TestOriginTest : public testing::Test {
 protected:
  TestOriginTest() {
    char name[] = "/tmp/origin-test-XXXXXX";
    root_ = mkdtemp(name);
    Write("a.bin", "0123456789");
    OriginOptions options;
    options.root = root_;
    origin_ = TestOrigin::Start(options);
  }
  ~TestOriginTest() override {
    origin_.reset();
    std::filesystem::remove_all(root_);
  }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(root_ + "/" + name, std::ios::binary) << bytes;
  }
  RawResponse Get(std::string_view target, std::string_view headers = "") {
    return origin::Get(origin_->port(), target, headers);
  }

  std::string root_;
  std::unique_ptr<TestOrigin> origin_;
};

TEST_F(TestOriginTest, ServesAFileWithValidators) {
  const RawResponse response = Get("/a.bin");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "0123456789");
  EXPECT_EQ(response.Header("Accept-Ranges"), "bytes");
  EXPECT_EQ(response.Header("Content-Type"), "application/octet-stream");
  EXPECT_EQ(response.Header("ETag").front(), '"');
  EXPECT_TRUE(ParseHttpDate(response.Header("Last-Modified")));
  EXPECT_TRUE(ParseHttpDate(response.Header("Date")));
}

TEST_F(TestOriginTest, HeadHasTheHeadersOfGetAndNoBody) {
  RawClient client(origin_->port());
  client.Request("HEAD", "/a.bin");
  const RawResponse head = client.ReadResponse(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Header("Content-Length"), "10");
  client.Request("GET", "/a.bin");  // on the same connection: no body was in the way
  EXPECT_EQ(client.ReadResponse().body, "0123456789");
}

TEST_F(TestOriginTest, Ranges) {
  struct Row {
    const char* range;
    int status;
    const char* content_range;
    const char* body;
  };
  for (const Row& row : std::vector<Row>{
           {"bytes=0-0", 206, "bytes 0-0/10", "0"},
           {"bytes=2-4", 206, "bytes 2-4/10", "234"},
           {"bytes=8-", 206, "bytes 8-9/10", "89"},
           {"bytes=8-99", 206, "bytes 8-9/10", "89"},
           {"bytes=-3", 206, "bytes 7-9/10", "789"},
           {"bytes=-99", 206, "bytes 0-9/10", "0123456789"},
           {"bytes=10-", 416, "bytes */10", nullptr},
           {"bytes=-0", 416, "bytes */10", nullptr},
           {"bytes=5-2", 200, "", "0123456789"},
           {"bytes=0-1,4-5", 200, "", "0123456789"},
           {"lines=0-1", 200, "", "0123456789"},
       }) {
    SCOPED_TRACE(row.range);
    const RawResponse response = Get("/a.bin", std::string("Range: ") + row.range + "\r\n");
    EXPECT_EQ(response.status, row.status);
    EXPECT_EQ(response.Header("Content-Range"), row.content_range);
    if (row.body != nullptr) {
      EXPECT_EQ(response.body, row.body);
    }
  }
}

TEST_F(TestOriginTest, Conditions) {
  const RawResponse first = Get("/a.bin");
  const std::string etag = first.Header("ETag");
  const std::string date = first.Header("Last-Modified");
  const std::string old_date = "Sun, 06 Nov 1994 08:49:37 GMT";
  struct Row {
    std::string headers;
    int status;
  };
  for (const Row& row : std::vector<Row>{
           {"If-Match: " + etag, 200},
           {"If-Match: *", 200},
           {"If-Match: \"x\", " + etag, 200},
           {"If-Match: \"x\"", 412},
           {"If-Match: W/" + etag, 412},
           {"If-Unmodified-Since: " + date, 200},
           {"If-Unmodified-Since: " + old_date, 412},
           {"If-None-Match: " + etag, 304},
           {"If-None-Match: W/" + etag, 304},
           {"If-None-Match: \"x\"", 200},
           {"If-Modified-Since: " + date, 304},
           {"If-Modified-Since: " + old_date, 200},
           {"If-Range: " + etag + "\r\nRange: bytes=0-1", 206},
           {"If-Range: \"x\"\r\nRange: bytes=0-1", 200},
           {"If-Range: " + date + "\r\nRange: bytes=0-1", 206},
           {"If-Range: " + old_date + "\r\nRange: bytes=0-1", 200},
       }) {
    EXPECT_EQ(Get("/a.bin", row.headers + "\r\n").status, row.status) << row.headers;
  }
}

TEST_F(TestOriginTest, AReplacedFileHasAnotherEtag) {
  const std::string before = Get("/a.bin").Header("ETag");
  Write("b.bin", "9876543210");
  std::filesystem::rename(root_ + "/b.bin", root_ + "/a.bin");
  const RawResponse after = Get("/a.bin");
  EXPECT_NE(after.Header("ETag"), before);
  EXPECT_EQ(after.body, "9876543210");
}

TEST_F(TestOriginTest, NamesOfAnyBytes) {
  for (const char* name : {"a?b", "a%b", "a#b", "a:b", "a b", "100%25", "\xff\xfe", "<&>\"'"}) {
    SCOPED_TRACE(name);
    Write(name, name);
    EXPECT_EQ(Get("/" + PercentEncode(name)).body, name);
    EXPECT_THAT(Get("/").body, HasSubstr("href=\"" + PercentEncode(name) + "\""));
  }
}

TEST_F(TestOriginTest, TheBytesOfThePathDecide) {
  origin_->AddFile("/x/%2F", "encoded slash");
  origin_->AddFile("/x//y", "empty segment");
  origin_->AddFile("/x/y", "plain");
  EXPECT_EQ(Get("/x/%2f").body, "encoded slash");
  EXPECT_EQ(Get("/x//y").body, "empty segment");
  EXPECT_EQ(Get("/%78/y").body, "plain");
}

TEST_F(TestOriginTest, NeverLeavesItsRoot) {
  ASSERT_EQ(symlink("/etc", (root_ + "/out").c_str()), 0);
  ASSERT_EQ(symlink("a.bin", (root_ + "/in").c_str()), 0);
  for (const char* path : {"/../etc/passwd", "/%2e%2e/etc/passwd", "/x/../../etc/passwd",
                           "/..%2fetc%2fpasswd", "/out/passwd", "/a.bin%00"}) {
    EXPECT_EQ(Get(path).status, 404) << path;
  }
  EXPECT_EQ(Get("/in").body, "0123456789");
  EXPECT_THAT(Get("/").body, Not(HasSubstr("out")));
}

TEST_F(TestOriginTest, DirectoriesAndOtherAbsences) {
  std::filesystem::create_directory(root_ + "/dir");
  ASSERT_EQ(mkfifo((root_ + "/pipe").c_str(), 0600), 0);
  const RawResponse moved = Get("/dir?x=1");
  EXPECT_EQ(moved.status, 301);
  EXPECT_EQ(moved.Header("Location"), "/dir/?x=1");
  EXPECT_EQ(Get("/dir/").status, 200);
  EXPECT_EQ(Get("/none").status, 404);
  EXPECT_EQ(Get("/a.bin/").status, 404);
  EXPECT_EQ(Get("/pipe").status, 404);
  EXPECT_EQ(Fetch(origin_->port(), "PUT", "/a.bin").status, 405);
}

TEST_F(TestOriginTest, EmptyObjects) {
  Write("empty", "");
  EXPECT_EQ(Get("/empty").Header("Content-Length"), "0");
  const auto probe = [this](EmptyRange mode) {
    Behaviour behaviour;
    behaviour.empty_range = mode;
    origin_->SetBehaviour(behaviour);
    return Get("/empty", "Range: bytes=0-0\r\n");
  };
  const RawResponse star = probe(EmptyRange::k416);
  EXPECT_EQ(star.status, 416);
  EXPECT_EQ(star.Header("Content-Range"), "bytes */0");
  const RawResponse ok = probe(EmptyRange::k200);
  EXPECT_EQ(ok.status, 200);
  EXPECT_EQ(ok.Header("Content-Length"), "0");
  const RawResponse bare = probe(EmptyRange::k416Bare);
  EXPECT_EQ(bare.status, 416);
  EXPECT_EQ(bare.Header("Content-Range"), "");
}

TEST_F(TestOriginTest, GeneratedObjectsFollowTheirFormula) {
  // The first two outputs of SplitMix64 from seed 0, as published with it.
  EXPECT_EQ(GeneratedBytes(0, 0, 16),
            std::string("\xaf\xcd\x1d\x7b\x39\xa8\x20\xe2\xf4\x65\xb9\xa1\x6a\x9e\x78\x6e", 16));
  const std::string whole = GeneratedBytes(7, 0, 1000);
  for (const std::size_t offset : {0U, 1U, 7U, 8U, 13U, 993U}) {
    for (const std::size_t size : {0U, 1U, 3U, 7U}) {
      EXPECT_EQ(GeneratedBytes(7, offset, size), whole.substr(offset, size));
    }
  }
  EXPECT_EQ(Get("/_gen/1000/7/x").body, whole);
  EXPECT_EQ(Get("/_gen/4GiB/7/x", "Range: bytes=3-12\r\n").body, whole.substr(3, 10));
  const RawResponse far = Get("/_gen/4GiB/7/x", "Range: bytes=-16\r\n");
  EXPECT_EQ(far.body, GeneratedBytes(7, (4ULL << 30U) - 16, 16));
  EXPECT_EQ(Get("/_gen/12x/7/x").status, 404);
}

TEST_F(TestOriginTest, LargeBodiesOfEveryKindArriveWhole) {
  const std::string bytes = GeneratedBytes(3, 0, 4'000'001);
  Write("large", bytes);
  origin_->AddFile("/memory", bytes);
  for (const char* path : {"/large", "/memory", "/_gen/4000001/3/x", "/large?fault=no-length"}) {
    EXPECT_TRUE(Get(path).body == bytes) << path;
  }
}

TEST_F(TestOriginTest, MemoryFilesAreListedAndReplaced) {
  origin_->AddFile("/m/sub/one", "1");
  origin_->AddGenerated("/m/two", 1 << 20, 5);
  EXPECT_EQ(Get("/m").status, 301);
  const std::string index = Get("/m/").body;
  EXPECT_THAT(index, HasSubstr("href=\"sub/\""));
  EXPECT_THAT(index, HasSubstr("href=\"two\""));
  const RawResponse before = Get("/m/sub/one");
  origin_->AddFile("/m/sub/one", "2");
  const RawResponse after = Get("/m/sub/one");
  EXPECT_EQ(after.body, "2");
  EXPECT_NE(after.Header("ETag"), before.Header("ETag"));
  EXPECT_NE(after.Header("Last-Modified"), before.Header("Last-Modified"));
  EXPECT_TRUE(origin_->Remove("/m/sub/one"));
  EXPECT_EQ(Get("/m/sub/one").status, 404);
}

TEST_F(TestOriginTest, PipelinedSplitAndHalfClosedRequests) {
  RawClient client(origin_->port());
  client.Send("GET /a.bin HTTP/1.1\r\nHost: o\r\n\r\nGET /a.bin HTTP/1.1\r\nHost: o\r\nRan");
  EXPECT_EQ(client.ReadResponse().status, 200);
  client.Send("ge: bytes=1-2\r\n\r\n");
  client.FinishSending();
  EXPECT_EQ(client.ReadResponse().body, "12");
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_EQ(client.state(), RawClient::State::kClosed);
}

TEST_F(TestOriginTest, Http10ClosesUnlessAskedToKeepAlive) {
  RawClient plain(origin_->port());
  plain.Send("GET /a.bin HTTP/1.0\r\n\r\n");
  EXPECT_THAT(plain.ReadToEnd(), HasSubstr("0123456789"));
  RawClient kept(origin_->port());
  for (int i = 0; i < 2; ++i) {
    kept.Send("GET /a.bin HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(kept.ReadResponse().body, "0123456789");
  }
}

TEST_F(TestOriginTest, BadRequestsAreRefused) {
  for (const char* text : {"nonsense\r\n\r\n", "GET /a HTTP/2\r\n\r\n", "GET a HTTP/1.1\r\n\r\n",
                           "GET / HTTP/1.1\r\nno colon\r\n\r\n"}) {
    RawClient client(origin_->port());
    client.Send(text);
    EXPECT_EQ(client.ReadResponse().status, 400) << text;
    EXPECT_EQ(client.ReadToEnd(), "");
  }
  RawClient huge(origin_->port());
  huge.Send("GET / HTTP/1.1\r\nX: " + std::string(70000, 'x'));
  EXPECT_EQ(huge.ReadResponse().status, 431);
}

TEST_F(TestOriginTest, DelayAndRateTakeTheirTime) {
  Behaviour behaviour;
  behaviour.delay_ms = 50;
  behaviour.connect_delay_ms = 50;
  behaviour.rate = 1 << 20;
  origin_->SetBehaviour(behaviour);
  const auto begin = std::chrono::steady_clock::now();
  const RawResponse response = Get("/_gen/300KiB/1/x");
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(response.body.size(), 300U << 10U);
  // Never faster than asked: 100 ms, then 300 KiB less the bucket of a twentieth of a second.
  EXPECT_GE(took, std::chrono::milliseconds(100 + 240));
}

TEST_F(TestOriginTest, CountsAndLogs) {
  Get("/a.bin", "Range: bytes=0-4\r\nX-Test: yes\r\n");
  Get("/a.bin?q=1");
  Get("/none");
  ASSERT_TRUE(origin_->WaitForOpenConnections(0));
  const PathStats file = origin_->StatsOf("/a.bin");
  EXPECT_EQ(file.requests, 2U);
  EXPECT_EQ(file.ranged, 1U);
  EXPECT_EQ(file.body_bytes, 15U);
  EXPECT_EQ(file.active, 0U);
  EXPECT_EQ(file.by_status.at(206), 1U);
  EXPECT_EQ(file.by_method.at("GET"), 2U);
  const Stats stats = origin_->GetStats();
  EXPECT_EQ(stats.total.requests, 3U);
  EXPECT_EQ(stats.connections_accepted, 3U);
  const auto log = origin_->Log();
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(log[0].Header("x-test"), "yes");
  EXPECT_EQ(log[1].target, "/a.bin?q=1");
  EXPECT_EQ(log[2].status, 404);
  origin_->ResetStats();
  EXPECT_EQ(origin_->GetStats().total.requests, 0U);
  EXPECT_TRUE(origin_->Log().empty());
}

TEST_F(TestOriginTest, GoesAwayAndComesBackOnItsPort) {
  RawClient open(origin_->port());
  open.Request("GET", "/a.bin");
  EXPECT_EQ(open.ReadResponse().status, 200);
  for (int round = 0; round < 3; ++round) {
    origin_->GoAway();
    EXPECT_FALSE(RawClient(origin_->port()).connected());
    origin_->ComeBack();
    EXPECT_EQ(Get("/a.bin").status, 200);
  }
  EXPECT_EQ(open.ReadToEnd(), "");
  EXPECT_NE(open.state(), RawClient::State::kOpen);
}

TEST_F(TestOriginTest, ManyClientsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i, &right] {
      RawClient client(origin_->port());
      for (int k = 0; k < 20; ++k) {
        const std::uint64_t begin = static_cast<std::uint64_t>(i * 1000 + k * 7919);
        client.Request(
            "GET", "/_gen/1MiB/9/x",
            "Range: bytes=" + std::to_string(begin) + "-" + std::to_string(begin + 49999) + "\r\n");
        if (client.ReadResponse().body == GeneratedBytes(9, begin, 50000)) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 160);
  ASSERT_TRUE(origin_->WaitForOpenConnections(0));
  EXPECT_EQ(origin_->StatsOf("/_gen/*").body_bytes, 160U * 50000U);
}

TEST(TestOriginStartTest, SaysWhyItCannot) {
  std::string error;
  EXPECT_EQ(TestOrigin::Start({.root = "/nonexistent"}, &error), nullptr);
  EXPECT_THAT(error, HasSubstr("/nonexistent"));
  const auto first = TestOrigin::Start();
  EXPECT_EQ(TestOrigin::Start({.port = first->port()}, &error), nullptr);
  EXPECT_THAT(error, HasSubstr("cannot listen"));
  EXPECT_EQ(TestOrigin::Start({.address = "nowhere"}, &error), nullptr);
}

}  // namespace
}  // namespace dartfs::origin
