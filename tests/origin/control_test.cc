#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "origin/raw_client.h"
#include "origin/test_origin.h"

namespace dartfs::origin {
namespace {

using testing::HasSubstr;

class ControlTest : public testing::Test {
 protected:
  ControlTest() : origin_(TestOrigin::Start()) { origin_->AddFile("/f", "0123456789"); }
  RawResponse Get(std::string_view target) { return origin::Get(origin_->port(), target); }
  RawResponse Post(std::string_view name, std::string_view body = "{}") {
    return Fetch(origin_->port(), "POST", "/_ctl/" + std::string(name), "", body);
  }
  RawResponse Delete(std::string_view name) {
    return Fetch(origin_->port(), "DELETE", "/_ctl/" + std::string(name));
  }
  const std::unique_ptr<TestOrigin> origin_;
};

TEST_F(ControlTest, FaultsAreSetAddedListedAndDeleted) {
  EXPECT_EQ(Post("faults", R"([{"fault":"status","path":"/f","status":418,"times":1}])").status,
            200);
  EXPECT_EQ(Get("/f").status, 418);
  EXPECT_EQ(Get("/f").status, 200);
  EXPECT_THAT(Get("/_ctl/faults").body, HasSubstr("\"fired\": 1"));
  EXPECT_EQ(Post("faults?add", R"({"fault":"wrong-total","shift":-2})").status, 200);
  EXPECT_EQ(origin::Get(origin_->port(), "/f", "Range: bytes=0-0\r\n").Header("Content-Range"),
            "bytes 0-0/8");
  EXPECT_EQ(Delete("faults").status, 200);
  EXPECT_EQ(Get("/_ctl/faults").body, "[]\n");
  EXPECT_THAT(Get("/_ctl/faults?names").body, HasSubstr("\"swap\""));
}

TEST_F(ControlTest, BadInputIsRefusedAndChangesNothing) {
  Post("faults", R"({"fault":"status","status":418})");
  struct Row {
    const char* name;
    const char* body;
    const char* says;
  };
  for (const Row& row : std::vector<Row>{
           {"faults", "nonsense", "not JSON"},
           {"faults", "[1]", "\"fault\""},
           {"faults", R"({"fault":"unheard-of"})", "unheard-of"},
           {"faults", R"({"fault":"reset","after":1})", "\"after\""},
           {"faults", R"({"fault":"reset","times":-1})", "\"times\""},
           {"faults", R"({"fault":"reset","times":[]})", "\"times\""},
           {"options", "[]", "object"},
           {"options", R"({"index":"iis"})", "\"index\""},
           {"options", R"({"delay_ms":"soon"})", "\"delay_ms\""},
           {"files", R"({"path":"x","text":"y"})", "\"path\""},
           {"files", R"({"path":"/x"})", "\"size\""},
           {"go-away", "{}", "ms=N"},
       }) {
    const RawResponse response = Post(row.name, row.body);
    EXPECT_EQ(response.status, 400) << row.body;
    EXPECT_THAT(response.body, HasSubstr(row.says));
  }
  EXPECT_EQ(Post("unheard-of").status, 404);
  EXPECT_EQ(Get("/f").status, 418);
}

TEST_F(ControlTest, Options) {
  EXPECT_EQ(Post("options", R"({"index":"json","etag":"none","last_modified":false})").status, 200);
  const RawResponse response = Get("/f");
  EXPECT_EQ(response.Header("ETag"), "");
  EXPECT_EQ(response.Header("Last-Modified"), "");
  EXPECT_THAT(Get("/").Header("Content-Type"), HasSubstr("json"));
  EXPECT_EQ(Post("options", R"({"keep_alive":false,"accept_ranges":false})").status, 200);
  EXPECT_EQ(Get("/f").Header("Connection"), "close");
  EXPECT_EQ(Get("/f").Header("Accept-Ranges"), "");
  EXPECT_THAT(Get("/_ctl/options").body, HasSubstr("\"index\": \"json\""));
}

TEST_F(ControlTest, StatsAndLogAreOfWhatWasAskedOnly) {
  Get("/f?x=1");
  ASSERT_TRUE(origin_->WaitForOpenConnections(0));
  const std::string stats = Get("/_ctl/stats").body;
  EXPECT_THAT(stats, HasSubstr("\"/f\": {"));
  EXPECT_THAT(stats, HasSubstr("\"body_bytes\": 10"));
  EXPECT_THAT(stats, Not(HasSubstr("_ctl")));
  EXPECT_THAT(Get("/_ctl/log").body, HasSubstr("\"target\": \"/f?x=1\""));
  Post("reset-stats");
  EXPECT_EQ(origin_->GetStats().total.requests, 0U);
}

TEST_F(ControlTest, Files) {
  EXPECT_EQ(Post("files", R"({"path":"/a%20b","text":"hello","etag":"\"v1\""})").status, 200);
  const RawResponse text = Get("/a%20b");
  EXPECT_EQ(text.body, "hello");
  EXPECT_EQ(text.Header("ETag"), "\"v1\"");
  EXPECT_EQ(Post("files", R"({"path":"/g.img","size":"1MiB","seed":3})").status, 200);
  EXPECT_TRUE(Get("/g.img").body == GeneratedBytes(3, 0, 1U << 20U));
  EXPECT_EQ(Post("files", R"({"path":"/f","alias":"/g.img"})").status, 200);
  EXPECT_EQ(Get("/f").Header("Content-Length"), "1048576");
  EXPECT_EQ(Post("files", R"({"path":"/f","alias":""})").status, 200);
  EXPECT_EQ(Get("/f").body, "0123456789");
  EXPECT_EQ(Delete("files?path=/f").status, 200);
  EXPECT_EQ(Get("/f").status, 404);
}

TEST_F(ControlTest, GoesAwayForAWhile) {
  RawClient idle(origin_->port());
  idle.Request("GET", "/f");
  EXPECT_EQ(idle.ReadResponse().status, 200);
  EXPECT_EQ(Post("go-away?ms=200").status, 200);
  idle.ReadToEnd();
  EXPECT_NE(idle.state(), RawClient::State::kOpen);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int refused = 0;
  for (; !RawClient(origin_->port()).connected(); ++refused) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  }
  EXPECT_GE(refused, 1);
  EXPECT_EQ(Get("/f").status, 200);
}

TEST_F(ControlTest, DropsConnections) {
  RawClient idle(origin_->port());
  idle.Request("GET", "/f");
  EXPECT_EQ(idle.ReadResponse().status, 200);
  EXPECT_EQ(Post("drop-connections").status, 200);
  idle.ReadToEnd();
  EXPECT_NE(idle.state(), RawClient::State::kOpen);
  EXPECT_EQ(Get("/f").status, 200);
}

TEST_F(ControlTest, ControlIsNeverFaulty) {
  Post("faults", R"({"fault":"hang-up","path":"*"})");
  EXPECT_EQ(Get("/_ctl/stats").status, 200);
  EXPECT_EQ(Get("/f").status, 0);
}

TEST_F(ControlTest, ABodyIsAskedForWhenTheClientWaits) {
  RawClient client(origin_->port());
  client.Send(
      "POST /_ctl/options HTTP/1.1\r\nHost: o\r\nExpect: 100-continue\r\nContent-Length: "
      "2\r\n\r\n");
  EXPECT_EQ(client.ReadHead().status, 100);
  client.Send("{}");
  EXPECT_EQ(client.ReadResponse().status, 200);
}

}  // namespace
}  // namespace dartfs::origin
