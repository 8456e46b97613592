#include "httpd/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <utility>

namespace dartfs::httpd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

using Labels = std::vector<std::pair<const char*, std::string>>;
struct Sample {
  Labels labels;
  double value = 0;
};
using Families = std::vector<MetricFamily>;

double Number(uint64_t value) { return static_cast<double>(value); }
double Seconds(core::Duration d) { return std::chrono::duration<double>(d).count(); }

std::vector<ClientMetric::Label> ToLabels(const Labels& labels) {
  std::vector<ClientMetric::Label> made;
  for (const auto& [name, value] : labels) made.push_back({name, value});
  return made;
}

void Add(Families& out, MetricType type, const char* name, const char* help,
         const std::vector<Sample>& samples) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  for (const Sample& sample : samples) {
    ClientMetric metric;
    metric.label = ToLabels(sample.labels);
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = sample.value;
    family.metric.push_back(std::move(metric));
  }
  out.push_back(std::move(family));
}

void Counter(Families& out, const char* name, const char* help,
             const std::vector<Sample>& samples) {
  Add(out, MetricType::Counter, name, help, samples);
}
void Counter(Families& out, const char* name, const char* help, uint64_t value) {
  Counter(out, name, help, {Sample{{}, Number(value)}});
}
void Gauge(Families& out, const char* name, const char* help, const std::vector<Sample>& samples) {
  Add(out, MetricType::Gauge, name, help, samples);
}
void Gauge(Families& out, const char* name, const char* help, double value) {
  Gauge(out, name, help, {Sample{{}, value}});
}

ClientMetric HistogramOf(const char* source, const core::LatencyCounts& counts) {
  ClientMetric metric;
  metric.label = ToLabels({{"source", source}});
  uint64_t sum = 0;
  for (size_t i = 0; i < counts.buckets.size(); ++i) {
    sum += counts.buckets[i];
    const bool last = i == core::kLatencyBounds.size();
    metric.histogram.bucket.push_back(
        {sum, last ? std::numeric_limits<double>::infinity() : Seconds(core::kLatencyBounds[i])});
  }
  metric.histogram.sample_count = sum;
  metric.histogram.sample_sum = Seconds(counts.sum);
  return metric;
}

// Labels and their order: as on the dashboards that there are.
void AddReads(Families& out, const MetricsFacts& facts) {
  const core::EngineStats& engine = facts.engine;
  const PlaneTraffic& client = facts.traffic[static_cast<size_t>(Plane::kClient)];
  Counter(out, "dart_block_source_total", "Block reads, by where the block came from.",
          {{{{"source", "cache"}}, Number(engine.cache_reads)},
           {{{"source", "peer"}}, Number(engine.peer_reads)},
           {{{"source", "origin"}}, Number(engine.origin_reads)}});
  Counter(out, "dart_bytes_total", "Bytes of bodies on the wire.",
          {{{{"direction", "client"}}, Number(client.sent)},
           {{{"direction", "peer_in"}}, Number(engine.peer_bytes)},
           {{{"direction", "origin_in"}}, Number(engine.origin_bytes + facts.passed_bytes)}});
  Counter(out, "dart_passthrough_total", "Requests relayed verbatim and uncached.",
          {{{{"reason", "range_unsupported"}}, Number(facts.passed_answers)}});
  MetricFamily fetches;
  fetches.name = "dart_block_fetch_seconds";
  fetches.help = "How long whole blocks took from their first wanting to their last byte.";
  fetches.type = MetricType::Histogram;
  fetches.metric = {HistogramOf("peer", engine.peer_fetches),
                    HistogramOf("origin", engine.origin_fetches)};
  out.push_back(std::move(fetches));
}

// Nothing of a cluster happens here yet; dashboards find their series all the same.
void AddCluster(Families& out) {
  Counter(out, "dart_relay_total", "Block requests of peers that needed more than the store.",
          {{{{"result", "served"}}, 0}, {{{"result", "declined"}}, 0}});
  Counter(
      out, "dart_hedge_total", "Second requests sent for a slow block, and who won.",
      {{{{"event", "fired"}}, 0}, {{{"event", "primary_won"}}, 0}, {{{"event", "backup_won"}}, 0}});
  Counter(out, "dart_peer_failover_total", "Failures of peers passed on to the next source.",
          uint64_t{0});
  Gauge(out, "dart_peer_circuits_open", "Peers left alone after failures.", 0.0);
}

void AddStore(Families& out, const MetricsFacts& facts) {
  const core::StoreStats& store = facts.store;
  const uint64_t block = std::max<uint64_t>(1, facts.block_size);
  const uint64_t borrowed_limit = store.limit_bytes - store.owned_limit_bytes;
  const auto by_class = [](double owned, double borrowed) {
    return std::vector<Sample>{{{{"class", "owned"}}, owned}, {{{"class", "borrowed"}}, borrowed}};
  };
  auto blocks = by_class(Number(store.owned_blocks), Number(store.borrowed_blocks));
  blocks.push_back({{{"class", "mem"}}, Number(facts.engine.inflight_bytes / block)});
  auto slots = by_class(Number(store.owned_limit_bytes / block), Number(borrowed_limit / block));
  slots.push_back({{{"class", "mem"}}, Number(facts.engine.inflight_limit_bytes / block)});
  Gauge(out, "dart_store_blocks", "Blocks held.", blocks);
  Gauge(out, "dart_store_slots", "Whole blocks there is room for.", slots);
  Counter(out, "dart_store_admit_rejected_total", "Relayed blocks that were not worth their place.",
          store.not_admitted_blocks);
  Gauge(out, "dartfs_cache_used_bytes", "Bytes of blocks held.",
        by_class(Number(store.owned_bytes), Number(store.borrowed_bytes)));
  Gauge(out, "dartfs_cache_limit_bytes",
        "Bytes guaranteed to a class; either may use what is free.",
        by_class(Number(store.owned_limit_bytes), Number(borrowed_limit)));
  Gauge(out, "dartfs_cache_objects", "Objects in the cache.", Number(store.objects));
  Gauge(out, "dartfs_cache_pinned_bytes", "Bytes of objects the operator keeps.",
        Number(store.pinned_bytes));
  Gauge(out, "dartfs_cache_lent_bytes", "Bytes of files that the kernel reads by itself.",
        Number(store.lent_bytes));
  Gauge(out, "dartfs_cache_pending_blocks", "Blocks held that a crash would lose.",
        Number(store.pending_blocks));
  Gauge(out, "dartfs_cache_bypass", "1 while the disk keeps nothing new.",
        store.bypass ? 1.0 : 0.0);
  Counter(out, "dartfs_cache_evicted_blocks_total", "Blocks that had to go.", store.evicted_blocks);
  Counter(out, "dartfs_cache_corrupt_granules_total", "Granules that failed their checksum.",
          store.corrupt_granules);
  Counter(out, "dartfs_cache_corrupt_records_total", "Records of the index that failed theirs.",
          store.corrupt_records);
  Counter(out, "dartfs_cache_write_errors_total", "Writes that the disk refused.",
          store.write_errors);
}

void AddFlights(Families& out, const core::EngineStats& engine) {
  Gauge(out, "dartfs_flights", "Blocks being fetched.", Number(engine.flights_under_way));
  Counter(out, "dartfs_flights_started_total", "Blocks that began to be fetched.",
          engine.flights_started);
  Counter(out, "dartfs_flights_failed_total", "Blocks that nobody could give.",
          engine.flights_failed);
  Counter(out, "dartfs_fetch_retries_total", "Further attempts at a block.", engine.retries);
  Gauge(out, "dartfs_inflight_bytes", "Memory of blocks being fetched.",
        Number(engine.inflight_bytes));
  Gauge(out, "dartfs_inflight_limit_bytes", "Most that may be.",
        Number(engine.inflight_limit_bytes));
  Counter(out, "dartfs_read_bytes_total", "Bytes given to readers, by where they lay.",
          {{{{"from", "disk"}}, Number(engine.cache_bytes)},
           {{{"from", "memory"}}, Number(engine.memory_bytes)}});
  Counter(out, "dartfs_refetched_corrupt_total", "Blocks fetched again as their copy was damaged.",
          engine.refetched_corrupt);
  Counter(out, "dartfs_wrong_digests_total",
          "Objects whose bytes were not what their digest names.", engine.wrong_digests);
}

void AddHttp(Families& out, const MetricsFacts& facts) {
  constexpr std::array<const char*, kPlanes> kPlaneNames = {"none", "client", "peer", "admin"};
  std::vector<Sample> requests;
  std::vector<Sample> bytes;
  for (size_t i = 0; i < kPlanes; ++i) {
    const PlaneTraffic& plane = facts.traffic[i];
    for (size_t digit = 1; digit < kStatusClasses; ++digit) {
      requests.push_back({{{"plane", kPlaneNames[i]}, {"status", std::to_string(digit) + "xx"}},
                          Number(plane.answers[digit])});
    }
    bytes.push_back({{{"plane", kPlaneNames[i]}}, Number(plane.sent)});
  }
  Counter(out, "dartfs_http_requests_total", "HTTP requests answered.", requests);
  Counter(out, "dartfs_http_sent_bytes_total", "Bytes of bodies sent to HTTP clients.", bytes);
  Gauge(out, "dartfs_http_connections", "HTTP connections open.", Number(facts.server.connections));
  Counter(out, "dartfs_http_connections_accepted_total", "HTTP connections accepted.",
          facts.server.accepted);
  Counter(out, "dartfs_http_connections_refused_total", "HTTP connections beyond the limit.",
          facts.server.refused);
  Counter(out, "dartfs_http_cut_off_total", "Answers that did not go out whole.",
          facts.server.cut_off);
  Counter(out, "dartfs_access_log_dropped_total", "Lines that the access log had to drop.",
          facts.dropped_access_lines);
}

void AddTunnels(Families& out, const TunnelTotals& tunnels) {
  Gauge(out, "dartfs_tunnels", "Tunnels of CONNECT open or being made.", Number(tunnels.open));
  Counter(out, "dartfs_tunnels_total", "What became of requests for a tunnel.",
          {{{{"result", "made"}}, Number(tunnels.total)},
           {{{"result", "refused"}}, Number(tunnels.refused)},
           {{{"result", "failed"}}, Number(tunnels.failed)}});
  Counter(out, "dartfs_tunnel_bytes_total", "Bytes through tunnels.",
          {{{{"direction", "up"}}, Number(tunnels.up)},
           {{{"direction", "down"}}, Number(tunnels.down)}});
}

void AddTokens(Families& out, const RegistryTokensStats& tokens) {
  Gauge(out, "dartfs_registry_tokens", "Registry tokens and logins held.", Number(tokens.tokens));
  Counter(out, "dartfs_registry_token_requests_total", "Tokens asked for, by what came of it.",
          {{{{"result", "begun"}}, Number(tokens.exchanges)},
           {{{"result", "failed"}}, Number(tokens.failures)},
           {{{"result", "joined"}}, Number(tokens.joined)},
           {{{"result", "refused"}}, Number(tokens.refused)}});
}

void AddNode(Families& out, const MetricsFacts& facts) {
  double active = 0;
  double queued = 0;
  for (const core::OriginStatus& origin : facts.origins) {
    active += origin.active;
    queued += origin.queued;
  }
  const auto throttled =
      std::count_if(facts.origins.begin(), facts.origins.end(),
                    [](const core::OriginStatus& origin) { return origin.throttled_ms > 0; });
  Gauge(out, "dartfs_origins", "Origins known at present.", Number(facts.origins.size()));
  Gauge(out, "dartfs_origins_throttled", "Origins that asked to be left alone for a while.",
        static_cast<double>(throttled));
  Gauge(out, "dartfs_origin_calls", "Requests of origins at present.",
        {{{{"state", "active"}}, active}, {{{"state", "queued"}}, queued}});
  Gauge(out, "dartfs_mounts", "Mounts of this node.", Number(facts.mounts));
  Gauge(out, "dartfs_uptime_seconds", "Since the node started.", Seconds(facts.uptime));
  Gauge(out, "dartfs_build_info", "Always 1; the version is a label.",
        {{{{"version", DARTFS_VERSION}}, 1}});
}

}  // namespace

std::string RenderMetrics(const MetricsFacts& facts) {
  Families families;
  AddReads(families, facts);
  AddCluster(families);
  AddStore(families, facts);
  AddFlights(families, facts.engine);
  AddHttp(families, facts);
  AddTunnels(families, facts.tunnels);
  AddTokens(families, facts.tokens);
  AddNode(families, facts);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace dartfs::httpd
