#include "app/option_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <vector>

#include "core/base/text.h"
#include "core/base/wire_id.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::MakeError;
using core::Status;

constexpr uint64_t kMinCacheBytes = uint64_t{16} << 20;
constexpr uint64_t kMinInflightBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxReadAheadBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxConnections = 1024;

Status Bad(std::string expected) { return MakeError(Code::kInvalidArgument, std::move(expected)); }

Status SetSwitch(bool& field, std::string_view value) {
  if (value != "true" && value != "false") return Bad("expected true or false");
  field = value == "true";
  return {};
}

Status SetSize(uint64_t& field, std::string_view value, uint64_t min, uint64_t max) {
  const std::optional<uint64_t> bytes = core::ParseSize(value);
  if (!bytes) return Bad("expected a size such as 10GiB (powers of 1024) or 10GB (powers of 1000)");
  if (*bytes < min || *bytes > max) {
    return Bad("expected a size from " + core::FormatSize(min) + " to " + core::FormatSize(max));
  }
  field = *bytes;
  return {};
}

Status SetText(std::string& field, std::string_view value) {
  if (value.empty() || value.find('\0') != std::string_view::npos) return Bad("expected a value");
  field = value;
  return {};
}

template <typename Id>
Status SetId(std::optional<Id>& field, std::string_view value) {
  const std::optional<uint64_t> number = core::ParseUint(value);
  if (!number || *number >= UINT32_MAX) return Bad("expected a number");
  field = static_cast<Id>(*number);
  return {};
}

Status SetNamespace(Options& options, std::string_view value) {
  TRY(core::ValidateNamespace(value));
  options.cache_namespace = value;
  return {};
}

Status SetTtl(Options& options, std::string_view value) {
  const auto ttl = core::ParseDuration(value);
  if (!ttl) return Bad("expected a time such as 60s, 5m or 1h");
  options.ttl = *ttl;
  return {};
}

Status SetTimeout(Options& options, std::string_view value) {
  if (value == "none") {
    options.timeout = std::nullopt;
    return {};
  }
  const auto timeout = core::ParseDuration(value);
  if (!timeout || timeout->count() == 0) return Bad("expected a time such as 60s, or none");
  options.timeout = *timeout;
  return {};
}

Status SetConnections(Options& options, std::string_view value) {
  const std::optional<uint64_t> count = core::ParseUint(value);
  if (!count || *count == 0 || *count > kMaxConnections) return Bad("expected a number, 1 to 1024");
  options.connections = static_cast<size_t>(*count);
  return {};
}

Status SetIgnoreQuery(Options& options, std::string_view value) {
  for (const std::string_view name : core::Split(value, ',')) {
    if (name.empty()) return Bad("expected names of query parameters");
    options.ignore_query.emplace_back(name);
  }
  return {};
}

Status SetTrustedOrigins(Options& options, std::string_view value) {
  for (const std::string_view pattern : core::Split(value, ',')) {
    if (pattern.empty()) return Bad("expected host names or *.domain patterns");
    options.trusted_origins.emplace_back(pattern);
  }
  return {};
}

Status SetDiskIo(Options& options, std::string_view value) {
  using Backend = core::DiskIoOptions::Backend;
  if (value == "auto") {
    options.disk_io = Backend::kAuto;
  } else if (value == "uring") {
    options.disk_io = Backend::kUring;
  } else if (value == "pool") {
    options.disk_io = Backend::kPool;
  } else {
    return Bad("expected auto, uring or pool");
  }
  return {};
}

Status SetUmask(Options& options, std::string_view value) {
  unsigned bits = 0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), bits, 8);
  if (failure != std::errc() || end != value.data() + value.size() || bits > 0777) {
    return Bad("expected an octal number, 000 to 777");
  }
  options.umask = bits;
  return {};
}

Status SetLevel(Options& options, std::string_view value) {
  constexpr std::array<std::string_view, 5> kLevels = {"trace", "debug", "info", "warn", "error"};
  if (std::find(kLevels.begin(), kLevels.end(), value) == kLevels.end()) {
    return Bad("expected trace, debug, info, warn or error");
  }
  options.log_level = value;
  return {};
}

Status SetForeground(Options& options, std::string_view value) {
  bool on = false;
  TRY(SetSwitch(on, value));
  options.foreground = options.foreground || on;  // --debug may have set it
  return {};
}

// Foreground with everything logged; a log level given besides keeps its value, since rows are
// applied in the order of the table and "debug" stands first.
Status SetDebug(Options& options, std::string_view value) {
  bool on = false;
  TRY(SetSwitch(on, value));
  if (on) {
    options.foreground = true;
    options.log_level = "debug";
  }
  return {};
}

constexpr OptionRow kTable[] = {
    {"debug", "-d", "", "log everything, stay in the foreground", SetDebug},
    {"foreground", "-f", "", "stay in the foreground, log to stderr", SetForeground},
    {"cache-dir", "", "DIR", "the cache directory [/var/cache/dartfs; users: ~/.cache/dartfs]",
     [](Options& o, std::string_view v) { return SetText(o.cache_dir, v); }},
    {"cache-size", "", "SIZE", "most bytes the cache may hold [10GiB]",
     [](Options& o, std::string_view v) {
       return SetSize(o.cache_size, v, kMinCacheBytes, INT64_MAX);
     }},
    {"namespace", "", "NAME", "keeps objects apart from those of other namespaces [dart]",
     SetNamespace},
    {"ttl", "", "TIME", "how long a size and version hold before they are asked for again [60s]",
     SetTtl},
    {"immutable", "", "", "objects never change: ask for size and version once",
     [](Options& o, std::string_view v) { return SetSwitch(o.immutable, v); }},
    {"timeout", "", "TIME", "a read fails after so long; none: it waits for ever [60s]",
     SetTimeout},
    {"connections", "", "N", "most connections to one origin [16]", SetConnections},
    {"inflight", "", "SIZE",
     "most memory for bytes under way [256MiB, or 1/8 of the cgroup's limit]",
     [](Options& o, std::string_view v) {
       return SetSize(o.inflight, v, kMinInflightBytes, INT64_MAX);
     }},
    {"read-ahead", "", "SIZE",
     "furthest that one sequential reader is read ahead; 0: not at all [128MiB]",
     [](Options& o, std::string_view v) {
       return SetSize(o.read_ahead, v, 0, kMaxReadAheadBytes);
     }},
    {"ignore-query", "", "NAMES", "query parameters that do not tell objects apart (repeatable)",
     SetIgnoreQuery, true},
    {"oci-digest-only", "", "", "take only <algorithm>:<hex> for a digest, not the blobs/ layout",
     [](Options& o, std::string_view v) { return SetSwitch(o.oci_digest_only, v); }},
    {"trusted-origins", "", "HOSTS",
     "hosts that share content-addressed objects before they are verified (repeatable)",
     SetTrustedOrigins, true},
    {"spool-limit", "", "SIZE", "largest object fetched whole where ranges are not served [16GiB]",
     [](Options& o, std::string_view v) { return SetSize(o.spool_limit, v, 0, INT64_MAX); }},
    {"allow-link-local", "", "", "allow origins on link-local and metadata addresses",
     [](Options& o, std::string_view v) { return SetSwitch(o.allow_link_local, v); }},
    {"ca-file", "", "FILE", "certificates to trust instead of the system's",
     [](Options& o, std::string_view v) { return SetText(o.ca_file, v); }},
    {"disk-io", "", "HOW", "auto, uring or pool [auto]", SetDiskIo},
    {"allow-other", "", "", "let all users read the mount",
     [](Options& o, std::string_view v) { return SetSwitch(o.allow_other, v); }},
    {"uid", "", "ID", "owner shown for all files [who mounts]",
     [](Options& o, std::string_view v) { return SetId(o.uid, v); }},
    {"gid", "", "ID", "group shown for all files [who mounts]",
     [](Options& o, std::string_view v) { return SetId(o.gid, v); }},
    {"umask", "", "MODE", "permission bits taken off 0444 and 0555, octal [000]", SetUmask},
    {"noexec", "", "", "refuse to run programs from the mount",
     [](Options& o, std::string_view v) { return SetSwitch(o.noexec, v); }},
    {"log-level", "", "LEVEL", "trace, debug, info, warn or error [info]", SetLevel},
    {"log-file", "", "FILE", "log there [foreground: stderr; background: syslog]",
     [](Options& o, std::string_view v) { return SetText(o.log_file, v); }},
    {"pid-file", "", "FILE", "write the process ID there once mounted",
     [](Options& o, std::string_view v) { return SetText(o.pid_file, v); }},
};

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return x == y || ((x == '-' || x == '_') && (y == '-' || y == '_'));
  });
}

// Levenshtein distance, dashes and underscores alike.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = SameName(a.substr(i, 1), b.substr(j, 1)) ? 0 : 1;
      const size_t best = std::min({row[j] + 1, row[j + 1] + 1, diagonal + change});
      diagonal = row[j + 1];
      row[j + 1] = best;
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const OptionRow> OptionTable() { return kTable; }

const OptionRow* FindOption(std::string_view name) {
  const auto* const row =
      std::find_if(std::begin(kTable), std::end(kTable),
                   [name](const OptionRow& candidate) { return SameName(candidate.name, name); });
  return row == std::end(kTable) ? nullptr : row;
}

std::string Suggest(std::string_view name, std::string_view prefix, char separator) {
  constexpr size_t kLongestName = 64;  // a longer one is no slip of the finger
  if (name.empty() || name.size() > kLongestName) return "";
  const OptionRow* best = nullptr;
  size_t best_distance = name.size() / 3 + 1;
  for (const OptionRow& row : kTable) {
    const size_t distance = Distance(name, row.name);
    if (distance <= best_distance && (best == nullptr || distance < best_distance)) {
      best = &row;
      best_distance = distance;
    }
  }
  if (best == nullptr) return "";
  std::string shown(best->name);
  std::replace(shown.begin(), shown.end(), '-', separator);
  return "; did you mean " + std::string(prefix) + shown + "?";
}

bool IsMountWord(std::string_view word) {
  constexpr std::string_view kWords[] = {
      "ro",
      "rw",
      "dev",
      "nodev",
      "suid",
      "nosuid",
      "exec",
      "auto",
      "noauto",
      "user",
      "nouser",
      "users",
      "owner",
      "group",
      "defaults",
      "_netdev",
      "nofail",
      "nonempty",
      "atime",
      "noatime",
      "diratime",
      "relatime",
      "norelatime",
      "nodiratime",
      "async",
      "sync",
      "dirsync",
      "lazytime",
      "nolazytime",
      "strictatime",
      "silent",
      "loud",
      "mand",
      "nomand",
      "iversion",
      "noiversion",
      "nosymfollow",
      "symfollow",
      "nostrictatime",
      "auto_unmount",
      "default_permissions",
  };
  // mount(8) adds user= by itself; the others are options of every FUSE program.
  constexpr std::string_view kBeginnings[] = {
      "x-", "X-", "comment=", "user=", "fsname=", "subtype=", "max_read="};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [word](std::string_view begin) { return word.starts_with(begin); }) ||
         std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

}  // namespace dartfs::app
