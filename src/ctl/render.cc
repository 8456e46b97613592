#include "ctl/render.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "app/json_fields.h"
#include "core/base/text.h"
#include "ctl/progress.h"

namespace dartfs::ctl {
namespace {

using app::BoolField;
using app::Field;
using app::NumberField;
using app::TextField;
using nlohmann::json;

constexpr std::string_view kNothing = "-";
const json kEmpty = json::object();

const json& Part(const json& object, const char* name) {
  const json* field = Field(object, name);
  return field == nullptr ? kEmpty : *field;
}

// From another process: may hold what a terminal must not get.
std::string Text(const json& object, const char* name) {
  const auto text = TextField(object, name);
  if (!text || text->empty()) return std::string(kNothing);
  std::string shown;
  for (const char c : *text) shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return shown;
}

int64_t Number(const json& object, const char* name) {
  return NumberField(object, name).value_or(0);
}

std::string Size(const json& object, const char* name) {
  return core::FormatSize(static_cast<uint64_t>(std::max<int64_t>(Number(object, name), 0)));
}

std::string Seconds(int64_t ms) {
  if (ms < 10'000) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000);
  if (ms < 120'000) return fmt::format("{} s", ms / 1000);
  if (ms < 7'200'000) return fmt::format("{} min", ms / 60'000);
  return fmt::format("{} h", ms / 3'600'000);
}

void Line(std::string& out, std::string_view label, std::string_view value) {
  out += fmt::format("{:<12}{}\n", label, value);
}

std::string CacheLine(const json& cache) {
  const int64_t limit = std::max<int64_t>(Number(cache, "limit_bytes"), 1);
  const double share =
      100.0 * static_cast<double>(Number(cache, "used_bytes")) / static_cast<double>(limit);
  return fmt::format("{} of {} ({:.1f} %), {} blocks of {} objects", Size(cache, "used_bytes"),
                     Size(cache, "limit_bytes"), share, Number(cache, "blocks"),
                     Number(cache, "objects"));
}

void AddCache(std::string& out, const json& cache) {
  Line(out, "cache", Text(cache, "dir"));
  Line(out, "", CacheLine(cache));
  Line(out, "",
       fmt::format("last durable commit {}, {} blocks not yet durable", Number(cache, "commit_seq"),
                   Number(cache, "pending_blocks")));
  Line(out, "",
       fmt::format("evicted {} blocks, disk I/O by {}", Number(cache, "evicted_blocks"),
                   Text(cache, "disk_io")));
  if (Number(cache, "lent_bytes") + Number(cache, "pinned_bytes") > 0) {
    Line(out, "",
         fmt::format("not to be evicted: {} that the kernel reads by itself, {} pinned",
                     Size(cache, "lent_bytes"), Size(cache, "pinned_bytes")));
  }
  const int64_t corrupt = Number(cache, "corrupt_granules") + Number(cache, "corrupt_records");
  if (corrupt + Number(cache, "write_errors") > 0) {
    Line(out, "",
         fmt::format("found corrupt: {} granules, {} records; write errors: {}",
                     Number(cache, "corrupt_granules"), Number(cache, "corrupt_records"),
                     Number(cache, "write_errors")));
  }
  if (BoolField(cache, "bypass").value_or(false)) {
    Line(out, "", "BYPASS, nothing is kept: " + Text(cache, "bypass_reason"));
  }
}

void AddTraffic(std::string& out, const json& status) {
  const json& bytes = Part(status, "bytes");
  const json& reads = Part(status, "reads");
  Line(out, "fetched",
       fmt::format("{} from origins, {} from peers", Size(bytes, "origin"), Size(bytes, "peer")));
  Line(out, "read",
       fmt::format("{} from the cache, {} as they arrived", Size(bytes, "cache"),
                   Size(bytes, "memory")));
  Line(out, "block reads",
       fmt::format("{} cache, {} peer, {} origin", Number(reads, "cache"), Number(reads, "peer"),
                   Number(reads, "origin")));
  const json& inflight = Part(status, "inflight");
  Line(out, "in flight",
       fmt::format("{} of {}; {} fetches begun, {} failed, {} retries", Size(inflight, "bytes"),
                   Size(inflight, "limit_bytes"), Number(status, "flights_started"),
                   Number(status, "flights_failed"), Number(status, "retries")));
}

void AddFlights(std::string& out, const json& flights) {
  for (const json& flight : flights) {
    out += fmt::format("  block {} of {}: {} of {} in {}, from {}, {}, {} waiting, attempt {}\n",
                       Number(flight, "block"), Text(flight, "url"), Size(flight, "received_bytes"),
                       Size(flight, "length_bytes"), Seconds(Number(flight, "age_ms")),
                       Text(flight, "source"), Text(flight, "priority"), Number(flight, "waiters"),
                       Number(flight, "attempt"));
  }
}

void AddOrigins(std::string& out, const json& origins) {
  for (const json& origin : origins) {
    Line(out, "origin", Text(origin, "authority"));
    Line(out, "",
         fmt::format("{} active, {} queued; {} in {} requests, {} failed", Number(origin, "active"),
                     Number(origin, "queued"), Size(origin, "bytes"), Number(origin, "calls"),
                     Number(origin, "failures")));
    if (Number(origin, "throttled_ms") > 0) {
      Line(out, "", "asked us to wait " + Seconds(Number(origin, "throttled_ms")));
    }
    if (TextField(origin, "last_error").value_or("").empty()) continue;
    Line(out, "",
         fmt::format("last error {} ago: {}", Seconds(Number(origin, "last_error_age_ms")),
                     Text(origin, "last_error")));
  }
}

void AddBlocks(std::string& out, const json& object) {
  const json* blocks = Field(object, "blocks");
  if (blocks == nullptr) return;
  constexpr size_t kMostRanges = 16;
  Line(out, "blocks",
       fmt::format("{} of {} held", Number(*blocks, "held"), Number(*blocks, "total")));
  const json& ranges = Part(*blocks, "ranges");
  std::string list;
  size_t shown = 0;
  for (const json& range : ranges) {
    if (!range.is_array() || range.size() != 2 || !range[0].is_number() || !range[1].is_number()) {
      continue;
    }
    if (++shown > kMostRanges) break;
    list += fmt::format("{}{}-{}", list.empty() ? "" : " ", range[0].get<int64_t>(),
                        range[1].get<int64_t>());
  }
  if (ranges.size() > kMostRanges) list += " ...";
  if (!list.empty()) Line(out, "", list);
}

std::string Flags(const json& object) {
  std::string flags;
  for (const char* name :
       {"immutable", "unversioned", "verified", "range_blind", "superseded", "pinned"}) {
    if (BoolField(object, name).value_or(false))
      flags += (flags.empty() ? "" : ", ") + std::string(name);
  }
  return flags;
}

void AddObject(std::string& out, const json& object) {
  Line(out, "size",
       fmt::format("{} ({} bytes)", Size(object, "size_bytes"), Number(object, "size_bytes")));
  Line(out, "version", Text(object, "version"));
  Line(out, "modified", Text(object, "last_modified"));
  Line(out, "type", Text(object, "content_type"));
  Line(out, "store key", Text(object, "store_key"));
  if (const std::string flags = Flags(object); !flags.empty()) Line(out, "flags", flags);
  AddBlocks(out, object);
}

std::string ErrorText(const json& error) {
  return fmt::format("{} ago: {}: {}", Seconds(Number(error, "age_ms")), Text(error, "code"),
                     Text(error, "message"));
}

void AddListing(std::string& out, const json& listing) {
  const bool held = BoolField(listing, "held").value_or(false);
  const bool complete = BoolField(listing, "complete").value_or(false);
  Line(out, "listing",
       held ? fmt::format("{} names{}", Number(listing, "names"),
                          complete ? "" : "; others can be looked up")
            : std::string("none: names can only be looked up"));
  if (const json* error = Field(listing, "last_error")) {
    Line(out, "", "last error " + ErrorText(*error));
  }
}

std::string PassthroughText(const json& passthrough) {
  const std::string state = Text(passthrough, "state");
  if (state != "on") return "no passthrough: " + state;
  return fmt::format("passthrough: the kernel reads {} open files by itself, {} opens so far",
                     Number(passthrough, "files"), Number(passthrough, "opens"));
}

// What a job that is over has done.
std::string Outcome(const json& job) {
  const json& objects = Part(job, "objects");
  const json& bytes = Part(job, "bytes");
  const std::string verb = TextField(job, "verb").value_or("");
  std::string out =
      fmt::format("{} of {} objects", Number(objects, "done"), Number(objects, "found"));
  if (verb == "warm") {
    out += fmt::format(", {} of {} held", Size(bytes, "done"), Size(bytes, "total"));
  } else if (verb == "evict") {
    out += fmt::format(", {} given up", Size(bytes, "done"));
  } else if (verb == "verify") {
    out += Number(bytes, "done") == 0
               ? ", all that is held was checked before, since the node started"
               : fmt::format(", {} read and checked", Size(bytes, "done"));
    out += fmt::format(", {} damaged granules", Number(job, "bad_granules"));
  }
  return out;
}

}  // namespace

std::string RenderStatus(const json& status) {
  std::string out;
  Line(out, "node",
       fmt::format("dartfs {}, PID {}, up {}", Text(status, "version"), Number(status, "pid"),
                   Seconds(Number(status, "uptime_ms"))));
  for (const json& mount : Part(status, "mounts")) {
    Line(out, "mount", Text(mount, "mountpoint") + " shows " + Text(mount, "source"));
  }
  if (Part(status, "mounts").empty()) Line(out, "mount", "none at present");
  AddCache(out, Part(status, "cache"));
  AddTraffic(out, status);
  AddFlights(out, Part(status, "flights"));
  AddOrigins(out, Part(status, "origins"));
  return out;
}

std::string RenderExplain(const json& explained) {
  std::string out;
  Line(out, "URL", Text(explained, "url"));
  Line(out, "local ID", Text(explained, "local_id"));
  Line(out, "wire ID", Text(explained, "wire_id"));
  if (Field(explained, "digest") != nullptr) Line(out, "digest", Text(explained, "digest"));
  if (const json* object = Field(explained, "object")) {
    AddObject(out, *object);
    const int64_t left_ms = Number(explained, "ttl_left_ms");
    Line(out, "holds",
         left_ms > 0 ? "for " + Seconds(left_ms) + ", then the origin is asked again"
                     : "no longer: the origin is asked at the next open");
  }
  const json* const listing = Field(explained, "listing");
  const json* const error = Field(explained, "last_error");
  if (listing != nullptr) AddListing(out, *listing);
  if (listing == nullptr && Field(explained, "object") == nullptr) {
    Line(out, "object", "not opened since the node started, if it is there at all");
  }
  if (listing == nullptr || error != nullptr) {
    Line(out, "last error", error == nullptr ? "none" : ErrorText(*error));
  }
  return out;
}

std::string RenderMounts(const json& status) {
  std::string out;
  for (const json& mount : Part(status, "mounts")) {
    Line(out, "mount", Text(mount, "mountpoint"));
    Line(out, "", "shows " + Text(mount, "source") + ", for " + Seconds(Number(mount, "age_ms")));
    Line(out, "",
         fmt::format("open: {} files, {} directories; {} names known, {} requests waiting",
                     Number(mount, "open_files"), Number(mount, "open_dirs"),
                     Number(mount, "nodes"), Number(mount, "waiting")));
    if (const json* passthrough = Field(mount, "passthrough")) {
      Line(out, "", PassthroughText(*passthrough));
    }
    std::string options;
    for (const auto& [name, unused] : Part(mount, "options").items()) {
      options +=
          (options.empty() ? "" : ", ") + name + " " + Text(Part(mount, "options"), name.c_str());
    }
    Line(out, "", options);
  }
  return out.empty() ? "none at present\n" : out;
}

std::string RenderJobs(const json& jobs) {
  std::string out;
  for (const json& job : Part(jobs, "jobs")) {
    const bool over = Text(job, "state") != "running";
    out += fmt::format("job {:<4} {:<10} {} {}\n", Number(job, "job"), Text(job, "state"),
                       Text(job, "verb"), Text(job, "what"));
    out += fmt::format("         {}, {}\n", over ? Outcome(job) : ProgressText(job, 0),
                       Seconds(NumberField(job, "took_ms").value_or(Number(job, "age_ms"))));
  }
  return out.empty() ? "none\n" : out;
}

std::string RenderStarted(const json& started) {
  return fmt::format("job {0} has begun (dartfsctl jobs; dartfsctl cancel {0})\n",
                     Number(started, "job"));
}

std::string RenderJobEnd(const json& job) {
  std::string out = fmt::format("{} {}: {}, {}\n", Text(job, "verb"), Text(job, "state"),
                                Outcome(job), Seconds(Number(job, "took_ms")));
  for (const json& error : Part(job, "errors")) {
    out += "  " + Text({{"text", error}}, "text") + "\n";
  }
  return out;
}

std::string RenderCancelled(const json& answer) {
  return BoolField(answer, "cancelled").value_or(false) ? "cancelled\n" : "it was over already\n";
}

std::string RenderSet(const json& answer) {
  return Text(answer, "name") + " is " + Text(answer, "value") + "\n";
}

}  // namespace dartfs::ctl
