#include "app/admin_reports.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "fake/fake_engine.h"
#include "fake/fake_http_client.h"
#include "fake/manual_scheduler.h"

namespace dartfs::app {
namespace {

using nlohmann::json;

class AdminReportsTest : public ::testing::Test {
 protected:
  AdminReportsTest() {
    facts_.node.started = core::RealClock().Now() - std::chrono::seconds(90);
    facts_.self_id = "node-17";
  }
  json Stats() { return json::parse(AdminStats(facts_, engine_)); }

  AdminFacts facts_;
  core::ManualScheduler scheduler_;
  core::FakeHttpClient http_;
  core::FakeEngine engine_{http_, scheduler_};
};

TEST_F(AdminReportsTest, TheFieldsThatThePageReads) {
  core::EngineStats stats;
  stats.origin_bytes = 5;
  stats.cache_reads = 6;
  stats.flights_under_way = 300;
  stats.flights.push_back({.url = "https://h/a",
                           .block = 7,
                           .received = 10,
                           .length = 20,
                           .age_ms = 30,
                           .waiters = 2,
                           .source = "origin",
                           .priority = "demand",
                           .attempt = 1});
  engine_.SetStats(std::move(stats));
  core::StoreStats store;
  store.limit_bytes = 1000;
  store.owned_limit_bytes = 800;
  store.owned_bytes = 70;
  store.borrowed_bytes = 3;
  store.blocks = 42;
  engine_.store().SetStats(store);
  core::OriginStatus origin;
  origin.authority = "https://h:443";
  origin.throttled_ms = 9;
  http_.SetOrigins({origin});
  MountFacts mount;
  mount.mountpoint = "/srv/images";
  mount.source = "https://h/";
  facts_.node.mounts.push_back(mount);
  facts_.server.connections = 4;
  facts_.traffic[static_cast<size_t>(httpd::Plane::kClient)].answers[2] = 11;
  facts_.traffic[static_cast<size_t>(httpd::Plane::kClient)].sent = 12;

  const json report = Stats();
  EXPECT_EQ(report["self_id"], "node-17");
  EXPECT_EQ(report["version"], DARTFS_VERSION);
  EXPECT_EQ(report["cached_blocks"], 42);
  EXPECT_GE(report["uptime_seconds"], 90.0);
  EXPECT_LT(report["uptime_seconds"], 900.0);
  EXPECT_EQ(report["cache"]["owned_limit_bytes"], 800);
  EXPECT_EQ(report["cache"]["owned_bytes"], 70);
  EXPECT_EQ(report["cache"]["borrowed_bytes"], 3);
  EXPECT_EQ(report["bytes"]["origin"], 5);
  EXPECT_EQ(report["reads"]["cache"], 6);
  EXPECT_EQ(report["flights_under_way"], 300);
  EXPECT_EQ(report["flights"][0]["age_ms"], 30);
  EXPECT_EQ(report["origins"][0]["throttled_ms"], 9);
  EXPECT_EQ(report["mounts"][0]["mountpoint"], "/srv/images");
  EXPECT_EQ(report["http"]["connections"], 4);
  EXPECT_EQ(report["http"]["planes"]["client"]["answers"]["2xx"], 11);
  EXPECT_EQ(report["http"]["planes"]["client"]["sent_bytes"], 12);
  EXPECT_EQ(report["http"]["planes"]["peer"]["answers"]["5xx"], 0);
}

TEST_F(AdminReportsTest, ForeignTextIsEscaped) {
  MountFacts mount;
  mount.mountpoint = "/srv/\xff\x1b[2J\n";
  facts_.node.mounts.push_back(mount);
  facts_.node.cache_dir = "/c/\xfe";
  facts_.self_id = "n\xfd";
  core::OriginStatus origin;
  origin.authority = "http://h\xfc";
  origin.last_error = "bad bytes \xfb";
  http_.SetOrigins({origin});
  const std::string text = AdminStats(facts_, engine_);
  for (const char c : text) EXPECT_TRUE((c >= 0x20 && c < 0x7f) || c == '\n');
  const json report = json::parse(text);
  EXPECT_EQ(report["mounts"][0]["mountpoint"], "/srv/\\xff\\x1b[2J\\x0a");
  EXPECT_EQ(report["cache"]["dir"], "/c/\\xfe");
  EXPECT_EQ(report["self_id"], "n\\xfd");
}

TEST_F(AdminReportsTest, MetricsAreOfTheSameParts) {
  core::EngineStats stats;
  stats.origin_reads = 3;
  stats.origin_bytes = 100;
  engine_.SetStats(std::move(stats));
  core::StoreStats store;
  store.owned_blocks = 8;
  engine_.store().SetStats(store);
  core::OriginStatus origin;
  http_.SetOrigins({origin, origin});
  facts_.node.mounts.resize(2);
  facts_.passed_answers = 1;
  facts_.passed_bytes = 11;
  facts_.dropped_access_lines = 6;
  facts_.server.refused = 7;
  const std::string text = AdminMetrics(facts_, engine_);
  for (const char* line :
       {"dart_block_source_total{source=\"origin\"} 3\n",
        "dart_bytes_total{direction=\"origin_in\"} 111\n",
        "dart_passthrough_total{reason=\"range_unsupported\"} 1\n",
        "dart_store_blocks{class=\"owned\"} 8\n", "dartfs_origins 2\n", "dartfs_mounts 2\n",
        "dartfs_access_log_dropped_total 6\n", "dartfs_http_connections_refused_total 7\n"}) {
    EXPECT_NE(text.find(std::string("\n") + line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace dartfs::app
