// The client against the scripted origin: the lines of "Origins" that a client alone can meet, with
// whole objects and ranges. What a wrong answer means for an object is the engine's matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "http_fixture.h"
#include "origin/test_origin.h"

namespace dartfs::core {
namespace {

using origin::Fault;
using origin::FaultRule;
using origin::TestOrigin;
using std::chrono::milliseconds;

class CurlOriginTest : public HttpClientTest {
 protected:
  void SetUp() override {
    origin_ = TestOrigin::Start();
    origin_->AddFile("/x", object_);
  }
  HttpRequest Range(const std::string& path, size_t first, size_t last) {
    HttpRequest request = Get(origin_->Url(path));
    request.headers = {{"Range", "bytes=" + std::to_string(first) + "-" + std::to_string(last)}};
    request.first_byte_timeout = milliseconds(500);
    request.stall_timeout = milliseconds(300);
    return request;
  }
  FaultRule Rule(Fault fault) {
    FaultRule rule;
    rule.fault = fault;
    return rule;
  }

  const std::string object_ = Pattern(1 << 20, 5);
  std::unique_ptr<TestOrigin> origin_;
};

TEST_F(CurlOriginTest, RangesOverKeptConnections) {
  for (size_t first = 0; first < object_.size(); first += 100000) {
    const size_t last = std::min(first + 99999, object_.size() - 1);
    const SinkPtr sink = Fetch(Range("/x", first, last));
    ASSERT_TRUE(sink->ok()) << sink->error().context;
    EXPECT_EQ(sink->status(), 206);
    EXPECT_TRUE(sink->body() == object_.substr(first, last - first + 1));
    EXPECT_EQ(sink->head().Find("content-range"),
              "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/1048576");
  }
  EXPECT_EQ(origin_->StatsOf("/x").requests, 11U);
}

TEST_F(CurlOriginTest, WhatEndsWell) {
  struct Case {
    const char* name;
    FaultRule rule;
  };
  std::vector<Case> cases = {{"chunked", Rule(Fault::kChunked)},
                             {"close-delimited", Rule(Fault::kNoLength)},
                             {"100", Rule(Fault::kInterim100)},
                             {"103", Rule(Fault::kInterim103)},
                             {"excess bytes", Rule(Fault::kExtraBody)},
                             {"slow head", Rule(Fault::kSlowHead)},
                             {"closed when reused", Rule(Fault::kCloseOnReuse)},
                             {"closed early", Rule(Fault::kCloseEarly)},
                             {"redirect", Rule(Fault::kRedirect)},
                             {"chain", Rule(Fault::kRedirectChain)},
                             {"signed", Rule(Fault::kRedirectSigned)}};
  cases[8].rule.target = "{path}?_hop=1";
  cases[9].rule.count = 5;
  for (Case& c : cases) {
    origin_->SetFaults({c.rule});
    for (int i = 0; i < 3; ++i) {
      const SinkPtr sink = Fetch(Range("/x", 1000, 200999));
      ASSERT_TRUE(sink->ok()) << c.name << ": " << sink->error().context;
      EXPECT_TRUE(sink->body() == object_.substr(1000, 200000)) << c.name;
      EXPECT_EQ(sink->status(), 206) << c.name;
    }
  }
}

TEST_F(CurlOriginTest, WhatBreaks) {
  struct Case {
    const char* name;
    FaultRule rule;
    Code code;
  };
  std::vector<Case> cases = {{"short body", Rule(Fault::kShortBody), Code::kUnavailable},
                             {"reset", Rule(Fault::kReset), Code::kUnavailable},
                             {"hang up", Rule(Fault::kHangUp), Code::kUnavailable},
                             {"silence", Rule(Fault::kStallHead), Code::kDeadlineExceeded},
                             {"body stalls", Rule(Fault::kStallBody), Code::kDeadlineExceeded},
                             {"lengths", Rule(Fault::kDuplicateLength), Code::kBadResponse},
                             {"both", Rule(Fault::kLengthAndChunked), Code::kBadResponse},
                             {"huge head", Rule(Fault::kHugeHead), Code::kBadResponse},
                             {"garbage", Rule(Fault::kGarbage), Code::kBadResponse},
                             {"loop", Rule(Fault::kRedirectLoop), Code::kBadResponse}};
  for (Case& c : cases) {
    c.rule.after_bytes = c.rule.fault == Fault::kStallHead ? 0 : 1000;
    if (c.rule.fault == Fault::kHugeHead) c.rule.count = 1 << 20;
    origin_->SetFaults({c.rule});
    const SinkPtr sink = Fetch(Range("/x", 0, 99999));
    EXPECT_EQ(sink->code(), c.code) << c.name << ": " << sink->error().context;
    EXPECT_TRUE(sink->body() == object_.substr(0, sink->body().size())) << c.name;
    origin_->ClearFaults();
    const SinkPtr after = Fetch(Range("/x", 0, 99999));
    EXPECT_TRUE(after->ok()) << c.name << ", afterwards: " << after->error().context;
  }
}

TEST_F(CurlOriginTest, RetryAfterInSecondsAndAsDate) {
  for (const bool date : {false, true}) {
    FaultRule rule = Rule(Fault::kStatus);
    rule.status = 503;
    rule.retry_after = 30;
    rule.retry_after_date = date;
    rule.times = 1;
    origin_ = TestOrigin::Start();  // another port: another origin
    origin_->AddFile("/x", object_);
    origin_->SetFaults({rule});
    EXPECT_EQ(Fetch(Range("/x", 0, 9))->status(), 503);
    const int64_t left = StatusOf("http://" + origin_->authority()).throttled_ms;
    EXPECT_GT(left, 25000) << date;
    EXPECT_LE(left, 30000) << date;
  }
}

TEST_F(CurlOriginTest, GoneAndBack) {
  ASSERT_TRUE(Fetch(Range("/x", 0, 9))->ok());
  origin_->GoAway();
  EXPECT_EQ(Fetch(Range("/x", 0, 9))->code(), Code::kUnavailable);
  origin_->ComeBack();
  EXPECT_TRUE(Fetch(Range("/x", 0, 9))->ok()) << "at once";
}

TEST_F(CurlOriginTest, CancelledTransfersLeaveNoConnection) {
  FaultRule rule = Rule(Fault::kStallBody);
  rule.after_bytes = 100;
  origin_->SetFaults({rule});
  std::vector<std::shared_ptr<HttpCall>> calls(8);
  std::vector<SinkPtr> sinks;
  for (auto& call : calls) {
    HttpRequest request = Range("/x", 0, 99999);
    request.stall_timeout = std::chrono::seconds(60);
    sinks.push_back(Start(request, &call));
  }
  ASSERT_TRUE(origin_->WaitForRequests("/x", 8));
  for (auto& call : calls) call->Cancel();
  for (const SinkPtr& sink : sinks) {
    ASSERT_TRUE(sink->WaitDone());
    EXPECT_EQ(sink->code(), Code::kCancelled);
  }
  EXPECT_TRUE(origin_->WaitForOpenConnections(0));
}

}  // namespace
}  // namespace dartfs::core
