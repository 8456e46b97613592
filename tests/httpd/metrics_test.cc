#include "httpd/metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace dartfs::httpd {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Text format 0.0.4, as a scraper reads it.
struct Scrape {
  std::map<std::string, std::string> types;   // by name
  std::map<std::string, std::string> helps;   // by name
  std::map<std::string, std::string> values;  // by name and labels, as written
  std::vector<std::string> problems;
};

std::string FamilyOf(const Scrape& scrape, const std::string& series) {
  std::string name = series.substr(0, series.find('{'));
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    const std::string stem = name.substr(0, name.rfind(suffix));
    if (stem != name && scrape.types.count(stem) && scrape.types.at(stem) == "histogram") {
      return stem;
    }
  }
  return name;
}

Scrape Read(const std::string& text) {
  Scrape scrape;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, kind, name, rest;
    if (line.starts_with("# ")) {
      words >> mark >> kind >> name;
      std::getline(words >> std::ws, rest);
      auto& into = kind == "HELP" ? scrape.helps : scrape.types;
      if (!into.emplace(name, rest).second) scrape.problems.push_back("twice: " + line);
      continue;
    }
    const size_t space = line.rfind(' ');
    const std::string series = line.substr(0, space);
    if (!scrape.values.emplace(series, line.substr(space + 1)).second) {
      scrape.problems.push_back("twice: " + line);
    }
    const std::string family = FamilyOf(scrape, series);
    if (!scrape.types.count(family)) scrape.problems.push_back("no type before: " + line);
    if (!scrape.helps.count(family)) scrape.problems.push_back("no help before: " + line);
  }
  return scrape;
}

// What users have on their dashboards: name, type, and the labels of each series.
const std::map<std::string, std::pair<std::string, std::set<std::string>>> kKept = {
    {"dart_block_source_total",
     {"counter", {R"({source="cache"})", R"({source="peer"})", R"({source="origin"})"}}},
    {"dart_bytes_total",
     {"counter",
      {R"({direction="client"})", R"({direction="peer_in"})", R"({direction="origin_in"})"}}},
    {"dart_relay_total", {"counter", {R"({result="served"})", R"({result="declined"})"}}},
    {"dart_hedge_total",
     {"counter", {R"({event="fired"})", R"({event="primary_won"})", R"({event="backup_won"})"}}},
    {"dart_peer_failover_total", {"counter", {""}}},
    {"dart_passthrough_total", {"counter", {R"({reason="range_unsupported"})"}}},
    {"dart_peer_circuits_open", {"gauge", {""}}},
    {"dart_store_blocks",
     {"gauge", {R"({class="owned"})", R"({class="borrowed"})", R"({class="mem"})"}}},
    {"dart_store_slots",
     {"gauge", {R"({class="owned"})", R"({class="borrowed"})", R"({class="mem"})"}}},
    {"dart_store_admit_rejected_total", {"counter", {""}}},
};

TEST(Metrics, TheNamesThatCarryOver) {
  const Scrape scrape = Read(RenderMetrics({}));
  for (const auto& [name, shape] : kKept) {
    ASSERT_TRUE(scrape.types.count(name)) << name;
    EXPECT_EQ(scrape.types.at(name), shape.first) << name;
    std::set<std::string> found;
    for (const auto& [series, value] : scrape.values) {
      if (FamilyOf(scrape, series) == name) found.insert(series.substr(name.size()));
    }
    EXPECT_EQ(found, shape.second) << name;
  }
  EXPECT_EQ(scrape.types.at("dart_block_fetch_seconds"), "histogram");
  for (const char* source : {"peer", "origin"}) {
    const std::string label = std::string("{source=\"") + source + "\"";
    EXPECT_TRUE(scrape.values.count("dart_block_fetch_seconds_count" + label + "}")) << source;
    EXPECT_TRUE(scrape.values.count("dart_block_fetch_seconds_sum" + label + "}")) << source;
    EXPECT_TRUE(scrape.values.count("dart_block_fetch_seconds_bucket" + label + ",le=\"+Inf\"}"))
        << source;
  }
  for (const auto& [name, type] : scrape.types) {
    if (name.starts_with("dart_")) {
      EXPECT_TRUE(kKept.count(name) || name == "dart_block_fetch_seconds") << name;
    }
  }
}

TEST(Metrics, AreWellFormed) {
  const Scrape scrape = Read(RenderMetrics({}));
  EXPECT_EQ(scrape.problems, std::vector<std::string>());
  EXPECT_GT(scrape.types.size(), 30u);
  for (const auto& [name, type] : scrape.types) {
    EXPECT_TRUE(name.starts_with("dart_") || name.starts_with("dartfs_")) << name;
    EXPECT_EQ(type == "counter", name.ends_with("_total")) << name;
    EXPECT_FALSE(scrape.helps.at(name).empty()) << name;
  }
  for (const auto& [series, value] : scrape.values) {
    EXPECT_NO_THROW((void)std::stod(value)) << series << " " << value;
  }
}

MetricsFacts Busy() {
  MetricsFacts facts;
  facts.block_size = 4 * kMiB;
  facts.engine.cache_reads = 11;
  facts.engine.peer_reads = 12;
  facts.engine.origin_reads = 13;
  facts.engine.origin_bytes = 1000;
  facts.engine.peer_bytes = 70;
  facts.engine.inflight_bytes = 9 * kMiB;
  facts.engine.inflight_limit_bytes = 64 * kMiB;
  facts.engine.flights_under_way = 300;
  facts.passed_answers = 3;
  facts.passed_bytes = 24;
  facts.store.limit_bytes = 100 * kMiB;
  facts.store.owned_limit_bytes = 80 * kMiB;
  facts.store.owned_bytes = 5 * kMiB;
  facts.store.owned_blocks = 2;
  facts.store.borrowed_blocks = 1;
  facts.store.not_admitted_blocks = 17;
  facts.store.bypass = true;
  facts.mounts = 2;
  facts.tunnels = {21, 22, 23, 24, 25, 26};
  facts.tokens = {31, 32, 33, 34, 35};
  facts.uptime = std::chrono::milliseconds(1500);
  core::OriginStatus throttled;
  throttled.throttled_ms = 5;
  throttled.active = 3;
  throttled.authority = "http://\"evil\"\n:80";
  facts.origins = {throttled, {}};
  return facts;
}

TEST(Metrics, NumbersStandWhereTheyBelong) {
  const Scrape scrape = Read(RenderMetrics(Busy()));
  const std::pair<const char*, double> rows[] = {
      {R"(dart_block_source_total{source="cache"})", 11},
      {R"(dart_block_source_total{source="peer"})", 12},
      {R"(dart_block_source_total{source="origin"})", 13},
      {R"(dart_bytes_total{direction="peer_in"})", 70},
      {R"(dart_bytes_total{direction="origin_in"})", 1024},
      {R"(dart_passthrough_total{reason="range_unsupported"})", 3},
      {R"(dart_store_blocks{class="owned"})", 2},
      {R"(dart_store_blocks{class="borrowed"})", 1},
      {R"(dart_store_blocks{class="mem"})", 2},
      {R"(dart_store_slots{class="owned"})", 20},
      {R"(dart_store_slots{class="borrowed"})", 5},
      {R"(dart_store_slots{class="mem"})", 16},
      {"dart_store_admit_rejected_total", 17},
      {R"(dartfs_cache_used_bytes{class="owned"})", 5.0 * kMiB},
      {R"(dartfs_cache_limit_bytes{class="borrowed"})", 20.0 * kMiB},
      {"dartfs_cache_bypass", 1},
      {"dartfs_flights", 300},
      {"dartfs_mounts", 2},
      {"dartfs_tunnels", 21},
      {R"(dartfs_tunnels_total{result="made"})", 22},
      {R"(dartfs_tunnels_total{result="refused"})", 23},
      {R"(dartfs_tunnels_total{result="failed"})", 24},
      {R"(dartfs_tunnel_bytes_total{direction="up"})", 25},
      {R"(dartfs_tunnel_bytes_total{direction="down"})", 26},
      {"dartfs_registry_tokens", 31},
      {R"(dartfs_registry_token_requests_total{result="begun"})", 32},
      {R"(dartfs_registry_token_requests_total{result="failed"})", 33},
      {R"(dartfs_registry_token_requests_total{result="joined"})", 34},
      {R"(dartfs_registry_token_requests_total{result="refused"})", 35},
      {"dartfs_uptime_seconds", 1.5},
      {"dartfs_origins", 2},
      {"dartfs_origins_throttled", 1},
      {R"(dartfs_origin_calls{state="active"})", 3},
      {R"(dartfs_build_info{version=")" DARTFS_VERSION R"("})", 1},
  };
  for (const auto& [series, value] : rows) {
    ASSERT_TRUE(scrape.values.count(series)) << series;
    EXPECT_EQ(std::stod(scrape.values.at(series)), value) << series;
  }
}

TEST(Metrics, NoForeignTextIsALabel) {
  EXPECT_EQ(RenderMetrics(Busy()).find("evil"), std::string::npos);
}

TEST(Metrics, CountsAreExact) {
  MetricsFacts facts;
  facts.engine.origin_bytes = (uint64_t{1} << 53) - 1;
  const Scrape scrape = Read(RenderMetrics(facts));
  EXPECT_EQ(std::stod(scrape.values.at(R"(dart_bytes_total{direction="origin_in"})")),
            9007199254740991.0);
}

TEST(Metrics, FetchTimesAreCumulative) {
  core::LatencyHistogram histogram;
  histogram.Add(std::chrono::milliseconds(4));
  histogram.Add(std::chrono::milliseconds(90));
  histogram.Add(std::chrono::minutes(2));
  MetricsFacts facts;
  facts.engine.origin_fetches = histogram.Read();
  const Scrape scrape = Read(RenderMetrics(facts));
  const auto bucket = [&](const std::string& bound) {
    return scrape.values.at(R"(dart_block_fetch_seconds_bucket{source="origin",le=")" + bound +
                            "\"}");
  };
  EXPECT_EQ(bucket("0.005"), "1");
  EXPECT_EQ(bucket("0.05"), "1");
  EXPECT_EQ(bucket("0.1"), "2");
  EXPECT_EQ(bucket("60"), "2");
  EXPECT_EQ(bucket("+Inf"), "3");
  EXPECT_EQ(scrape.values.at(R"(dart_block_fetch_seconds_count{source="origin"})"), "3");
  EXPECT_DOUBLE_EQ(std::stod(scrape.values.at(R"(dart_block_fetch_seconds_sum{source="origin"})")),
                   120.094);
  EXPECT_EQ(scrape.values.at(R"(dart_block_fetch_seconds_count{source="peer"})"), "0");
}

TEST(Metrics, TrafficByPlane) {
  TrafficCounters counters;
  const auto count = [&](Plane plane, int status, uint64_t sent) {
    AccessRecord record;
    record.note.plane = plane;
    record.status = status;
    record.sent = sent;
    counters.Count(record);
  };
  count(Plane::kClient, 200, 10);
  count(Plane::kClient, 206, 20);
  count(Plane::kClient, 502, 1);
  count(Plane::kAdmin, 404, 5);
  count(Plane::kNone, 400, 7);
  count(Plane::kPeer, 999, 0);
  count(Plane::kPeer, -1, 0);
  MetricsFacts facts;
  facts.traffic = counters.Read();
  EXPECT_EQ(facts.traffic[static_cast<size_t>(Plane::kPeer)].answers[0], 2u);
  const Scrape scrape = Read(RenderMetrics(facts));
  const std::pair<const char*, const char*> rows[] = {
      {R"(dartfs_http_requests_total{plane="client",status="2xx"})", "2"},
      {R"(dartfs_http_requests_total{plane="client",status="5xx"})", "1"},
      {R"(dartfs_http_requests_total{plane="client",status="4xx"})", "0"},
      {R"(dartfs_http_requests_total{plane="admin",status="4xx"})", "1"},
      {R"(dartfs_http_requests_total{plane="none",status="4xx"})", "1"},
      {R"(dartfs_http_sent_bytes_total{plane="client"})", "31"},
      {R"(dart_bytes_total{direction="client"})", "31"},
  };
  for (const auto& [series, value] : rows) {
    ASSERT_TRUE(scrape.values.count(series)) << series;
    EXPECT_EQ(scrape.values.at(series), value) << series;
  }
}

}  // namespace
}  // namespace dartfs::httpd
