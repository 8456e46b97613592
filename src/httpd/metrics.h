// What a node counts, for Prometheus: the names of METRICS (dart_*) that dashboards know already,
// and dartfs_* for the rest. Label values come from fixed sets. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "core/engine/engine.h"
#include "httpd/registry_tokens.h"
#include "httpd/server.h"
#include "httpd/traffic.h"
#include "httpd/tunnel_relay.h"

namespace dartfs::httpd {

// One look at all of a node's parts.
struct MetricsFacts {
  core::EngineStats engine;
  core::StoreStats store;
  std::vector<core::OriginStatus> origins;
  uint64_t block_size = 0;  // bytes
  ServerStats server;
  Traffic traffic;
  uint64_t passed_answers = 0;  // of range-blind origins, relayed as they came
  uint64_t passed_bytes = 0;    // of those
  uint64_t mounts = 0;
  uint64_t dropped_access_lines = 0;
  TunnelTotals tunnels;
  RegistryTokensStats tokens;
  core::Duration uptime{};
};

inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// Text format 0.0.4.
std::string RenderMetrics(const MetricsFacts& facts);

}  // namespace dartfs::httpd
