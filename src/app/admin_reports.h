// What /admin/stats and /metrics say: a node's parts, put together as `status` has them (reports),
// with HTTP beside. May wait for locks of the parts; asks no origin and touches no mount.
#pragma once

#include <cstdint>
#include <string>

#include "app/reports.h"
#include "core/base/grid.h"
#include "httpd/registry_tokens.h"
#include "httpd/server.h"
#include "httpd/traffic.h"
#include "httpd/tunnel_relay.h"

namespace dartfs::app {

struct AdminFacts {
  NodeFacts node;
  std::string self_id;
  httpd::ServerStats server;
  httpd::Traffic traffic{};
  uint64_t passed_answers = 0;  // of range-blind origins, relayed as they came
  uint64_t passed_bytes = 0;    // of those
  uint64_t dropped_access_lines = 0;
  httpd::TunnelTotals tunnels{};
  httpd::RegistryTokensStats tokens{};
  uint64_t block_size = core::Grid().block_size;  // bytes
};

// JSON text: the fields of `status` (CONTROL.md) and `self_id`, `cached_blocks`, `uptime_seconds`,
// `http`. Only ASCII, whatever the names are.
std::string AdminStats(const AdminFacts& facts, core::Engine& engine);

// Prometheus text format 0.0.4.
std::string AdminMetrics(const AdminFacts& facts, core::Engine& engine);

}  // namespace dartfs::app
