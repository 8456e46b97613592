#include "app/admin_reports.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/text.h"
#include "core/engine/engine.h"
#include "httpd/metrics.h"

namespace dartfs::app {
namespace {

using nlohmann::json;

json PlaneReport(const httpd::PlaneTraffic& plane) {
  json answers = json::object();
  for (size_t digit = 1; digit < httpd::kStatusClasses; ++digit) {
    answers[std::to_string(digit) + "xx"] = plane.answers[digit];
  }
  return {{"answers", std::move(answers)}, {"sent_bytes", plane.sent}};
}

json HttpReport(const AdminFacts& facts) {
  constexpr std::array<const char*, httpd::kPlanes> kPlaneNames = {"none", "client", "peer",
                                                                   "admin"};
  json planes = json::object();
  for (size_t i = 0; i < httpd::kPlanes; ++i) {
    planes[kPlaneNames[i]] = PlaneReport(facts.traffic[i]);
  }
  return {{"connections", facts.server.connections},
          {"accepted", facts.server.accepted},
          {"refused", facts.server.refused},
          {"cut_off", facts.server.cut_off},
          {"passed_answers", facts.passed_answers},
          {"passed_bytes", facts.passed_bytes},
          {"dropped_access_lines", facts.dropped_access_lines},
          {"planes", std::move(planes)}};
}

}  // namespace

std::string AdminStats(const AdminFacts& facts, core::Engine& engine) {
  constexpr double kMsPerSecond = 1000;
  json report = StatusReport(facts.node, engine);
  // Paths are bytes; whoever reads this reads text.
  for (json& mount : report["mounts"]) {
    mount["mountpoint"] = core::EscapeForeign(mount["mountpoint"].get_ref<const std::string&>());
  }
  report["self_id"] = core::EscapeForeign(facts.self_id);
  report["cached_blocks"] = report["cache"]["blocks"];
  report["uptime_seconds"] = report["uptime_ms"].get<double>() / kMsPerSecond;
  report["http"] = HttpReport(facts);
  return report.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
}

std::string AdminMetrics(const AdminFacts& facts, core::Engine& engine) {
  httpd::MetricsFacts metrics;
  metrics.engine = engine.Stats();
  metrics.store = engine.store().Stats();
  metrics.origins = engine.http().Origins();
  metrics.block_size = facts.block_size;
  metrics.server = facts.server;
  metrics.traffic = facts.traffic;
  metrics.passed_answers = facts.passed_answers;
  metrics.passed_bytes = facts.passed_bytes;
  metrics.mounts = facts.node.mounts.size();
  metrics.dropped_access_lines = facts.dropped_access_lines;
  metrics.tunnels = facts.tunnels;
  metrics.tokens = facts.tokens;
  metrics.uptime = core::RealClock().Now() - facts.node.started;
  return httpd::RenderMetrics(metrics);
}

}  // namespace dartfs::app
