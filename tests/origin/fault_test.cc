// Each fault, shown by its bytes on the wire.
#include "origin/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "origin/raw_client.h"
#include "origin/test_origin.h"

namespace dartfs::origin {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kRange[] = "Range: bytes=2-5\r\n";

class FaultTest : public testing::Test {
 protected:
  FaultTest() : origin_(TestOrigin::Start()) { origin_->AddFile("/f", "0123456789"); }

  void Set(FaultRule rule) { origin_->SetFaults({std::move(rule)}); }
  RawResponse Get(std::string_view target = "/f", std::string_view headers = "") {
    return origin::Get(origin_->port(), target, headers);
  }
  RawResponse GetRange() { return Get("/f", kRange); }
  RawClient::State EndOf(RawClient& client) {
    client.ReadToEnd();
    return client.state();
  }

  const std::unique_ptr<TestOrigin> origin_;
};

TEST_F(FaultTest, RangeAnswersThatAreWrong) {
  struct Row {
    FaultRule rule;
    int status;
    const char* content_range;
    const char* length;
    const char* body;
  };
  for (const Row& row : std::vector<Row>{
           {{.fault = Fault::kIgnoreRange}, 200, "", "10", "0123456789"},
           {{.fault = Fault::kWrongRange}, 206, "bytes 3-6/10", "4", "3456"},
           {{.fault = Fault::kWrongRange, .shift = -2}, 206, "bytes 0-3/10", "4", "0123"},
           {{.fault = Fault::kShortRange}, 206, "bytes 2-5/10", "3", "234"},
           {{.fault = Fault::kTruncatedRange, .count = 2}, 206, "bytes 2-3/10", "2", "23"},
           {{.fault = Fault::kUnknownTotal}, 206, "bytes 2-5/*", "4", "2345"},
           {{.fault = Fault::kZeroRange}, 206, "bytes 0-0/*", "1", "0"},
           {{.fault = Fault::kWrongTotal, .shift = 5}, 206, "bytes 2-5/15", "4", "2345"},
           {{.fault = Fault::kRangeOn200}, 200, "bytes 2-5/10", "4", "2345"},
           {{.fault = Fault::kNoContentRange}, 206, "", "4", "2345"},
           {{.fault = Fault::kPastEnd416}, 206, "bytes 2-5/10", "4", "2345"},
       }) {
    SCOPED_TRACE(NameOf(row.rule.fault));
    Set(row.rule);
    const RawResponse response = GetRange();
    EXPECT_EQ(response.status, row.status);
    EXPECT_EQ(response.Header("Content-Range"), row.content_range);
    EXPECT_EQ(response.Header("Content-Length"), row.length);
    EXPECT_EQ(response.body, row.body);
  }
}

TEST_F(FaultTest, WrongRangeIsAnotherEvenOfTheWholeObject) {
  Set({.fault = Fault::kWrongRange});
  const RawResponse response = Get("/f", "Range: bytes=0-9\r\n");
  EXPECT_EQ(response.Header("Content-Range"), "bytes 1-9/10");
  EXPECT_EQ(response.body, "123456789");
}

TEST_F(FaultTest, PastEnd416OnlyPastTheEnd) {
  Set({.fault = Fault::kPastEnd416});
  EXPECT_EQ(Get("/f", "Range: bytes=8-9\r\n").status, 206);
  const RawResponse past = Get("/f", "Range: bytes=8-10\r\n");
  EXPECT_EQ(past.status, 416);
  EXPECT_EQ(past.Header("Content-Range"), "bytes */10");
}

TEST_F(FaultTest, Multipart) {
  Set({.fault = Fault::kMultipart});
  const RawResponse response = GetRange();
  EXPECT_EQ(response.status, 206);
  EXPECT_EQ(response.Header("Content-Type"), "multipart/byteranges; boundary=origin-part");
  EXPECT_THAT(response.body,
              HasSubstr("Content-Range: bytes 2-5/10\r\n\r\n2345\r\n--origin-part--"));
}

TEST_F(FaultTest, FramingWithoutLength) {
  Set({.fault = Fault::kNoLength});
  RawClient closed(origin_->port());
  closed.Request("GET", "/f");
  const RawResponse response = closed.ReadResponse();
  EXPECT_EQ(response.Header("Content-Length"), "");
  EXPECT_EQ(response.Header("Connection"), "close");
  EXPECT_EQ(response.body, "0123456789");
  EXPECT_EQ(closed.state(), RawClient::State::kClosed);

  Set({.fault = Fault::kChunked});
  RawClient chunked(origin_->port());
  chunked.Request("GET", "/f");
  const RawResponse head = chunked.ReadHead();
  EXPECT_EQ(head.Header("Transfer-Encoding"), "chunked");
  EXPECT_EQ(head.Header("Content-Length"), "");
  EXPECT_EQ(chunked.Read(20), "a\r\n0123456789\r\n0\r\n\r\n");
  chunked.Send("GET /f HTTP/1.0\r\n\r\n");  // 1.0 has no chunks
  EXPECT_EQ(chunked.ReadResponse().body, "0123456789");
}

TEST_F(FaultTest, FramingThatContradictsItself) {
  Set({.fault = Fault::kDuplicateLength, .shift = 3});
  EXPECT_THAT(Get().Headers("Content-Length"), testing::ElementsAre("10", "13"));
  Set({.fault = Fault::kLengthAndChunked});
  const RawResponse both = Get();
  EXPECT_EQ(both.Header("Content-Length"), "10");
  EXPECT_EQ(both.Header("Transfer-Encoding"), "chunked");
  EXPECT_THAT(both.body, StartsWith("a\r\n"));
  Set({.fault = Fault::kExtraBody, .count = 3});
  RawClient client(origin_->port());
  client.Request("GET", "/f", "Connection: close\r\n");
  EXPECT_EQ(client.ReadResponse().body, "0123456789");
  EXPECT_EQ(client.ReadToEnd(), "!!!");
}

TEST_F(FaultTest, BodiesThatEndEarly) {
  struct Row {
    Fault fault;
    RawClient::State end;
  };
  for (const Row& row : {Row{Fault::kShortBody, RawClient::State::kClosed},
                         Row{Fault::kReset, RawClient::State::kReset}}) {
    for (const std::uint64_t after : {0U, 4U, 1000000U}) {
      SCOPED_TRACE(std::string(NameOf(row.fault)) + " after " + std::to_string(after));
      Set({.fault = row.fault, .after_bytes = after});
      RawClient client(origin_->port());
      client.Request("GET", "/_gen/3000000/1/x");
      EXPECT_EQ(client.ReadHead().Header("Content-Length"), "3000000");
      EXPECT_TRUE(client.ReadToEnd() == GeneratedBytes(1, 0, after));
      EXPECT_EQ(client.state(), row.end);
    }
  }
}

TEST_F(FaultTest, ShortBodyCutsChunksToo) {
  origin_->SetFaults({{.fault = Fault::kChunked}, {.fault = Fault::kShortBody, .after_bytes = 6}});
  EXPECT_EQ(Get().body, "a\r\n012");
}

TEST_F(FaultTest, GzipDespiteIdentity) {
  Set({.fault = Fault::kGzip});
  const RawResponse response = Get();
  EXPECT_EQ(response.Header("Content-Encoding"), "gzip");
  EXPECT_EQ(response.body.size(), 10U + 5 + 10 + 8);
  EXPECT_THAT(response.body, StartsWith("\x1f\x8b"));
  EXPECT_EQ(response.body.substr(15, 10), "0123456789");
  EXPECT_EQ(response.body.substr(25), std::string("\xc6\xc7\x84\xa6\x0a\0\0\0", 8));  // CRC, length
  const RawResponse part = GetRange();
  EXPECT_EQ(part.Header("Content-Range"), "bytes 2-5/33");
  Set({.fault = Fault::kGzipLabel});
  const RawResponse label = Get();
  EXPECT_EQ(label.Header("Content-Encoding"), "gzip");
  EXPECT_EQ(label.body, "0123456789");
}

TEST_F(FaultTest, Statuses) {
  for (const int status : {401, 403, 404, 410, 429, 500, 503}) {
    Set({.fault = Fault::kStatus, .status = status});
    const RawResponse response = Get();
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.Header("Retry-After"), "");
    EXPECT_EQ(response.Header("WWW-Authenticate").empty(), status != 401);
  }
  Set({.fault = Fault::kStatus, .status = 429, .retry_after = 7});
  EXPECT_EQ(Get().Header("Retry-After"), "7");
  Set({.fault = Fault::kStatus, .retry_after = 7, .retry_after_date = true});
  const RawResponse dated = Get();
  EXPECT_EQ(dated.status, 503);
  EXPECT_EQ(*ParseHttpDate(dated.Header("Retry-After")), *ParseHttpDate(dated.Header("Date")) + 7);
}

TEST_F(FaultTest, MethodsAndCredentials) {
  for (const int status : {403, 405, 501}) {
    Set({.fault = Fault::kHeadRefused, .status = status});
    EXPECT_EQ(Fetch(origin_->port(), "HEAD", "/f").status, status);
    EXPECT_EQ(Get().status, 200);
  }
  Set({.fault = Fault::kGetOnly});
  EXPECT_EQ(Fetch(origin_->port(), "HEAD", "/f").status, 403);
  EXPECT_EQ(Fetch(origin_->port(), "OPTIONS", "/f").status, 403);
  EXPECT_EQ(Get().status, 200);
  Set({.fault = Fault::kAuth, .credential = "Aladdin:open sesame"});
  const RawResponse refused = Get();
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.Header("WWW-Authenticate"), StartsWith("Basic "));
  // The pair of RFC 7617 section 2.
  EXPECT_EQ(Get("/f", "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n").status, 200);
}

TEST_F(FaultTest, Redirects) {
  struct Row {
    FaultRule rule;
    const char* location;
  };
  for (const Row& row : std::vector<Row>{
           {{.fault = Fault::kRedirect, .target = "{name}?_hop=1"}, "f?_hop=1"},
           {{.fault = Fault::kRedirect, .target = "http://other:99{path}{query}"},
            "http://other:99/f?a=b"},
           {{.fault = Fault::kRedirect, .status = 308, .target = "https://{host}{path}"},
            "https://origin/f"},
           {{.fault = Fault::kRedirect, .target = "http://169.254.169.254/latest/meta-data"},
            "http://169.254.169.254/latest/meta-data"},
           {{.fault = Fault::kRedirectLoop}, "/f?a=b&_hop=1"},
           {{.fault = Fault::kRedirectChain, .count = 2}, "/f?a=b&_hop=1"},
       }) {
    Set(row.rule);
    const RawResponse response = Get("/f?a=b");
    EXPECT_EQ(response.status, row.rule.status == 0 ? 302 : row.rule.status);
    EXPECT_EQ(response.Header("Location"), row.location);
  }
}

TEST_F(FaultTest, RedirectChainsEndAndLoopsDoNot) {
  const auto follow = [this](int limit) {
    std::string target = "/f?a=b";
    for (int hops = 0; hops < limit; ++hops) {
      const RawResponse response = Get(target);
      if (response.status == 200) return hops;
      target = response.Header("Location");
    }
    return -1;
  };
  Set({.fault = Fault::kRedirectChain, .count = 5});
  EXPECT_EQ(follow(20), 5);
  Set({.fault = Fault::kRedirectLoop});
  EXPECT_EQ(follow(20), -1);
}

TEST_F(FaultTest, SignedRedirectsDifferAndExpire) {
  Set({.fault = Fault::kRedirectSigned});
  const std::string first = Get().Header("Location");
  const std::string second = Get().Header("Location");
  EXPECT_NE(first, second);
  EXPECT_THAT(first, HasSubstr("X-Amz-Credential="));
  EXPECT_EQ(Get(first).body, "0123456789");
  EXPECT_EQ(Get("/f?X-Amz-Signature=forged").status, 403);
  Set({.fault = Fault::kRedirectSigned, .delay_ms = 1});
  const std::string brief = Get().Header("Location");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (Get(brief).status != 403) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST_F(FaultTest, Stalls) {
  Set({.fault = Fault::kStallHead});
  RawClient before(origin_->port());
  before.Request("GET", "/f");
  ASSERT_TRUE(origin_->WaitForRequests("/f", 1));
  EXPECT_TRUE(before.SilentFor(milliseconds(50)));

  Set({.fault = Fault::kStallHead, .after_bytes = 12});
  RawClient within(origin_->port());
  within.Request("GET", "/f");
  EXPECT_EQ(within.Read(12), "HTTP/1.1 200");
  EXPECT_TRUE(within.SilentFor(milliseconds(50)));

  Set({.fault = Fault::kStallBody, .after_bytes = 4});
  RawClient after(origin_->port());
  after.Request("GET", "/f");
  EXPECT_EQ(after.ReadHead().Header("Content-Length"), "10");
  EXPECT_EQ(after.Read(4), "0123");
  EXPECT_TRUE(after.SilentFor(milliseconds(50)));

  Set({.fault = Fault::kStallBody, .after_bytes = 4, .delay_ms = 30});
  EXPECT_EQ(Get().body, "0123456789");  // a stall that ends
}

TEST_F(FaultTest, AStallEndsWhenTheClientLeavesOrTheOriginStops) {
  Set({.fault = Fault::kStallBody});
  {
    RawClient client(origin_->port());
    client.Request("GET", "/f");
    EXPECT_EQ(client.ReadHead().status, 200);
    EXPECT_EQ(origin_->StatsOf("/f").active, 1U);
  }
  EXPECT_TRUE(origin_->WaitForOpenConnections(0));
  EXPECT_EQ(origin_->StatsOf("/f").active, 0U);
  RawClient client(origin_->port());
  client.Request("GET", "/f");
  EXPECT_EQ(client.ReadHead().status, 200);
  origin_->Stop();
  EXPECT_NE(EndOf(client), RawClient::State::kOpen);
}

TEST_F(FaultTest, SlowHeadsAndBodiesArriveWhole) {
  Set({.fault = Fault::kSlowHead});
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Get().body, "0123456789");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(100));  // over 150 bytes
  Set({.fault = Fault::kSlowBody, .rate = 100});
  begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Get().body, "0123456789");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(40));
  Set({.fault = Fault::kDelay, .delay_ms = 40});
  begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Get().body, "0123456789");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(40));
}

TEST_F(FaultTest, InterimAnswers) {
  origin_->SetFaults({{.fault = Fault::kInterim100, .count = 2}, {.fault = Fault::kInterim103}});
  RawClient client(origin_->port());
  client.Request("GET", "/f", kRange);
  EXPECT_EQ(client.ReadHead().status, 100);
  EXPECT_EQ(client.ReadHead().status, 100);
  const RawResponse hints = client.ReadHead();
  EXPECT_EQ(hints.status, 103);
  EXPECT_NE(hints.Header("Link"), "");
  EXPECT_EQ(client.ReadResponse().body, "2345");
}

TEST_F(FaultTest, HugeHeadAndGarbage) {
  Set({.fault = Fault::kHugeHead, .count = 300000});
  const RawResponse huge = Get();
  EXPECT_GE(huge.head.size(), 300000U);
  EXPECT_EQ(huge.body, "0123456789");
  Set({.fault = Fault::kGarbage});
  RawClient client(origin_->port());
  client.Request("GET", "/f");
  EXPECT_THAT(client.ReadToEnd(), StartsWith("SSH-"));
}

TEST_F(FaultTest, Validators) {
  const std::string etag = Get().Header("ETag");
  Set({.fault = Fault::kChangingEtag});
  const std::string first = Get().Header("ETag");
  EXPECT_NE(first, Get().Header("ETag"));
  EXPECT_EQ(Get("/f", "If-Match: " + first + "\r\n").status, 412);
  Set({.fault = Fault::kWeakEtag});
  EXPECT_EQ(Get().Header("ETag"), "W/" + etag);
  EXPECT_EQ(Get("/f", "If-Match: " + etag + "\r\n").status, 412);
  Set({.fault = Fault::kNoEtag});
  EXPECT_EQ(Get().Header("ETag"), "");
  Set({.fault = Fault::kFreshLastModified});
  const RawResponse fresh = Get();
  EXPECT_EQ(fresh.Header("Last-Modified"), fresh.Header("Date"));
  Set({.fault = Fault::kNoLastModified});
  EXPECT_EQ(Get().Header("Last-Modified"), "");
}

TEST_F(FaultTest, ConnectionsThatClose) {
  Set({.fault = Fault::kHangUp});
  RawClient gone(origin_->port());
  gone.Request("GET", "/f");
  EXPECT_EQ(gone.ReadToEnd(), "");
  EXPECT_EQ(gone.state(), RawClient::State::kClosed);

  Set({.fault = Fault::kCloseOnReuse});
  RawClient reused(origin_->port());
  reused.Request("GET", "/f");
  const RawResponse response = reused.ReadResponse();
  EXPECT_EQ(response.body, "0123456789");
  EXPECT_EQ(response.Header("Connection"), "");
  reused.Request("GET", "/f");
  EXPECT_EQ(reused.ReadToEnd(), "");
  EXPECT_EQ(Get().status, 200);

  Set({.fault = Fault::kCloseEarly});
  RawClient early(origin_->port());
  early.Request("GET", "/f");
  EXPECT_EQ(early.ReadResponse().Header("Connection"), "");
  EXPECT_EQ(EndOf(early), RawClient::State::kClosed);
}

TEST_F(FaultTest, SwapChangesThePathForGood) {
  origin_->AddFile("/new", "abcdefghij");
  const std::string etag = Get().Header("ETag");
  Set({.fault = Fault::kSwap, .path = "/f", .skip = 1, .target = "/new"});
  EXPECT_EQ(GetRange().body, "2345");
  const RawResponse swapped = GetRange();
  EXPECT_EQ(swapped.body, "cdef");
  EXPECT_NE(swapped.Header("ETag"), etag);
  origin_->ClearFaults();
  EXPECT_EQ(GetRange().body, "cdef");
  EXPECT_EQ(Get("/f", "If-Match: " + etag + "\r\n").status, 412);
  Set({.fault = Fault::kSwap});
  EXPECT_EQ(Get("/_gen/16/1/x").body, GeneratedBytes(2, 0, 16));
  EXPECT_EQ(Get("/_gen/16/1/x").body, GeneratedBytes(2, 0, 16));
}

TEST_F(FaultTest, ConditionsOfARule) {
  const auto statuses = [this](FaultRule rule, std::string_view headers, int requests) {
    rule.fault = Fault::kStatus;
    rule.status = 500;
    Set(rule);
    std::string out;
    for (int i = 0; i < requests; ++i) out += Get("/f", headers).status == 500 ? 'x' : '.';
    return out;
  };
  EXPECT_EQ(statuses({}, "", 3), "xxx");
  EXPECT_EQ(statuses({.times = 1}, "", 4), "x...");
  EXPECT_EQ(statuses({.skip = 2}, "", 4), "..xx");
  EXPECT_EQ(statuses({.every_k = 3}, "", 7), "..x..x.");
  EXPECT_EQ(statuses({.skip = 1, .every_k = 2, .times = 2}, "", 8), "..x.x...");
  EXPECT_EQ(statuses({.path = "/f*"}, "", 1), "x");
  EXPECT_EQ(statuses({.path = "/g"}, "", 1), ".");
  EXPECT_EQ(statuses({.method = "HEAD"}, "", 1), ".");
  EXPECT_EQ(statuses({.ranged_only = true}, "", 1), ".");
  EXPECT_EQ(statuses({.ranged_only = true}, kRange, 1), "x");
  EXPECT_EQ(statuses({.min_offset = 2}, kRange, 1), "x");
  EXPECT_EQ(statuses({.min_offset = 3}, kRange, 1), ".");
  EXPECT_EQ(origin_->Fired(0), 0U);
}

TEST_F(FaultTest, ATimeWindowEnds) {
  Set({.fault = Fault::kStatus, .for_ms = 100});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int refused = 0;
  for (; Get().status == 503; ++refused) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  EXPECT_GE(refused, 1);
}

TEST_F(FaultTest, ByQuery) {
  EXPECT_EQ(Get("/f?fault=503&retry_after=3").Header("Retry-After"), "3");
  EXPECT_EQ(Get("/f?fault=ignore-range", kRange).status, 200);
  EXPECT_EQ(Get("/f?fault=unheard-of", kRange).status, 206);
  EXPECT_EQ(Get("/f?fault=404&every_k=2").status, 200);
  EXPECT_EQ(Get("/f?fault=404&every_k=2").status, 404);
}

TEST(FaultNamesTest, EveryFaultHasOneOfItsOwn) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(Fault::kSwap); ++i) {
    const char* name = NameOf(static_cast<Fault>(i));
    ASSERT_NE(name, nullptr) << i;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(ParseFault(name), static_cast<Fault>(i));
  }
  EXPECT_EQ(names.size(), AllFaults().size());
}

}  // namespace
}  // namespace dartfs::origin
