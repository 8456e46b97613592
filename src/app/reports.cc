#include "app/reports.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <span>

#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/engine/engine.h"

namespace dartfs::app {
namespace {

using core::EscapeForeign;
using core::ToMillis;
using nlohmann::json;

json CacheReport(const std::string& dir, const core::StoreStats& stats) {
  return {{"dir", EscapeForeign(dir)},
          {"limit_bytes", stats.limit_bytes},
          {"used_bytes", stats.used_bytes},
          {"blocks", stats.blocks},
          {"objects", stats.objects},
          {"owned_bytes", stats.owned_bytes},
          {"borrowed_bytes", stats.borrowed_bytes},
          {"owned_limit_bytes", stats.owned_limit_bytes},
          {"lent_bytes", stats.lent_bytes},
          {"pinned_bytes", stats.pinned_bytes},
          {"not_admitted_blocks", stats.not_admitted_blocks},
          {"commit_seq", stats.commit_seq},
          {"pending_blocks", stats.pending_blocks},
          {"evicted_blocks", stats.evicted_blocks},
          {"corrupt_granules", stats.corrupt_granules},
          {"corrupt_records", stats.corrupt_records},
          {"write_errors", stats.write_errors},
          {"bypass", stats.bypass},
          {"bypass_reason", EscapeForeign(stats.bypass_reason)},
          {"disk_io", stats.disk_io}};
}

json FlightsReport(const std::vector<core::FlightReport>& flights) {
  json list = json::array();
  for (const core::FlightReport& flight : flights) {
    list.push_back({{"url", flight.url},
                    {"block", flight.block},
                    {"received_bytes", flight.received},
                    {"length_bytes", flight.length},
                    {"age_ms", flight.age_ms},
                    {"waiters", flight.waiters},
                    {"source", flight.source},
                    {"priority", flight.priority},
                    {"attempt", flight.attempt}});
  }
  return list;
}

json OriginsReport(const std::vector<core::OriginStatus>& origins) {
  json list = json::array();
  for (const core::OriginStatus& origin : origins) {
    list.push_back({{"authority", EscapeForeign(origin.authority)},
                    {"active", origin.active},
                    {"queued", origin.queued},
                    {"throttled_ms", origin.throttled_ms},
                    {"calls", origin.calls},
                    {"failures", origin.failures},
                    {"bytes", origin.bytes},
                    {"last_error", origin.last_error},
                    {"last_error_age_ms", origin.last_error_age_ms}});
  }
  return list;
}

json EngineReport(const core::EngineStats& stats) {
  return {
      {"bytes",
       {{"origin", stats.origin_bytes},
        {"peer", stats.peer_bytes},
        {"cache", stats.cache_bytes},
        {"memory", stats.memory_bytes}}},
      {"reads",
       {{"cache", stats.cache_reads}, {"peer", stats.peer_reads}, {"origin", stats.origin_reads}}},
      {"inflight", {{"bytes", stats.inflight_bytes}, {"limit_bytes", stats.inflight_limit_bytes}}},
      {"flights_started", stats.flights_started},
      {"flights_failed", stats.flights_failed},
      {"retries", stats.retries},
      {"refetched_corrupt", stats.refetched_corrupt},
      {"wrong_digests", stats.wrong_digests},
      {"flights_under_way", stats.flights_under_way},
      {"flights", FlightsReport(stats.flights)}};
}

// Runs of present blocks as [first, last].
json RangesOf(const std::vector<bool>& present) {
  json ranges = json::array();
  for (size_t i = 0; i < present.size(); ++i) {
    if (!present[i]) continue;
    const size_t first = i;
    while (i + 1 < present.size() && present[i + 1]) ++i;
    ranges.push_back({first, i});
  }
  return ranges;
}

json ErrorReport(const core::Error& error, int64_t age_ms) {
  return {{"code", core::CodeName(error.code)},
          {"message", error.context},
          {"http_status", error.http_status},
          {"age_ms", age_ms}};
}

json ObjectReport(const core::Object& object, core::Store& store) {
  const core::Object::Facts& facts = object.facts();
  const core::ObjectMeta& meta = facts.meta;
  json report = {
      {"version", EscapeForeign(meta.version)}, {"unversioned", meta.volatile_version},
      {"store_key", object.key().ToHex()},      {"size_bytes", meta.size},
      {"etag", EscapeForeign(meta.etag)},       {"content_type", EscapeForeign(meta.content_type)},
      {"range_blind", facts.range_blind},       {"immutable", facts.immutable},
      {"superseded", object.superseded()}};
  if (meta.last_modified >= 0) report["last_modified"] = core::FormatHttpDate(meta.last_modified);
  if (facts.identity.content_addressed()) report["verified"] = object.verified();
  if (object.stored() == nullptr) return report;
  report["pinned"] = store.IsPinned(*object.stored());
  const std::vector<bool> present = store.PresentMap(*object.stored());
  report["blocks"] = {{"held", store.PresentBlocks(*object.stored())},
                      {"total", present.size()},
                      {"ranges", RangesOf(present)}};
  return report;
}

}  // namespace

std::string ShowWithoutQuery(const std::string& id) {
  constexpr size_t kHashBytes = 6;
  const size_t mark = id.find('?');
  std::string shown = core::RedactUrl(id.substr(0, mark));
  if (mark == std::string::npos) return shown;
  const auto hash = core::Sha256(id.substr(mark + 1));
  return shown + "?sha256:" + core::HexEncode(std::span(hash).first(kHashBytes));
}

json MountReport(const MountFacts& mount) {
  json requests = json::object();
  for (const auto& [kind, count] : mount.requests) {
    if (count > 0) requests[kind] = count;
  }
  json options = json::object();
  for (const auto& [name, value] : mount.options) options[name] = EscapeForeign(value);
  // The path as it is: dartfsctl compares it with the user's.
  return {{"mountpoint", mount.mountpoint},
          {"source", mount.source},
          {"age_ms", ToMillis(mount.age)},
          {"open_files", mount.open_files},
          {"open_dirs", mount.open_dirs},
          {"nodes", mount.nodes},
          {"waiting", mount.waiting},
          {"requests", std::move(requests)},
          {"passthrough",
           {{"state", EscapeForeign(mount.passthrough)},
            {"files", mount.passthrough_files},
            {"opens", mount.passthrough_opens}}},
          {"options", std::move(options)}};
}

json StatusReport(const NodeFacts& facts, core::Engine& engine) {
  json report = EngineReport(engine.Stats());
  report["version"] = DARTFS_VERSION;
  report["pid"] = getpid();
  report["uptime_ms"] = ToMillis(core::RealClock().Now() - facts.started);
  report["stays"] = facts.stays;
  report["mounts"] = json::array();
  for (const MountFacts& mount : facts.mounts) report["mounts"].push_back(MountReport(mount));
  report["cache"] = CacheReport(facts.cache_dir, engine.store().Stats());
  report["origins"] = OriginsReport(engine.http().Origins());
  return report;
}

json ExplainReport(const core::Url& url, const std::string& digest, core::Engine& engine) {
  const core::UrlReport known = engine.Explain(url, digest);
  json report = {{"url", known.identity.redacted_url},
                 {"local_id", ShowWithoutQuery(known.identity.local_id)},
                 {"wire_id", EscapeForeign(known.identity.wire_id)},
                 {"opened", known.object != nullptr}};
  if (known.identity.digest) report["digest"] = known.identity.digest->ToString();
  if (known.object != nullptr) {
    report["ttl_left_ms"] = known.ttl_left_ms;
    report["object"] = ObjectReport(*known.object, engine.store());
  }
  if (known.last_error) {
    report["last_error"] = ErrorReport(*known.last_error, known.last_error_age_ms);
  }
  return report;
}

void AddListingReport(json& report, const fs::ListingReport& known) {
  if (known.listing == nullptr && known.problem == nullptr) return;
  json listing = {{"held", known.listing != nullptr}};
  if (known.listing != nullptr) {
    listing["names"] = known.listing->entries.size();
    listing["complete"] = known.listing->complete;
  }
  if (known.problem != nullptr) {
    listing["last_error"] = ErrorReport(*known.problem, known.problem_age_ms);
  }
  report["listing"] = std::move(listing);
}

}  // namespace dartfs::app
