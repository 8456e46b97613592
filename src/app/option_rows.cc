// The rows of the table of options: what each is called, takes, sets and shows.
#include <algorithm>
#include <array>
#include <charconv>

#include "app/option_table.h"
#include "core/base/text.h"
#include "core/base/url.h"
#include "core/base/wire_id.h"
#include "core/io/origin_policy.h"
#include "httpd/door.h"
#include "httpd/listen.h"
#include "httpd/registry_upstreams.h"
#include "httpd/token_request.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::MakeError;
using core::Status;
using Backend = core::DiskIoOptions::Backend;

constexpr uint64_t kMinCacheBytes = uint64_t{16} << 20;
constexpr uint64_t kMinInflightBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxReadAheadBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxConnections = 1024;

Status Bad(std::string expected) { return MakeError(Code::kInvalidArgument, std::move(expected)); }

Status SetBool(bool& field, std::string_view value) {
  if (value != "true" && value != "false") return Bad("expected true or false");
  field = value == "true";
  return {};
}

std::string ShowBool(bool on) { return on ? "true" : "false"; }

template <bool Options::*kField>
Status SetSwitch(Options& options, std::string_view value) {
  return SetBool(options.*kField, value);
}

template <bool Options::*kField>
std::string ShowSwitch(const Options& options) {
  return ShowBool(options.*kField);
}

template <uint64_t Options::*kField, uint64_t kMin, uint64_t kMax>
Status SetSize(Options& options, std::string_view value) {
  const std::optional<uint64_t> bytes = core::ParseSize(value);
  if (!bytes) return Bad("expected a size such as 10GiB (powers of 1024) or 10GB (powers of 1000)");
  if (*bytes < kMin || *bytes > kMax) {
    return Bad("expected a size from " + core::FormatSize(kMin) + " to " + core::FormatSize(kMax));
  }
  options.*kField = *bytes;
  return {};
}

// Exact, unlike what is printed for people.
template <uint64_t Options::*kField>
std::string ShowSize(const Options& options) {
  constexpr std::array<std::pair<int, const char*>, 3> kUnits = {
      {{30, "GiB"}, {20, "MiB"}, {10, "KiB"}}};
  const uint64_t bytes = options.*kField;
  for (const auto& [shift, unit] : kUnits) {
    if (bytes != 0 && bytes >> shift << shift == bytes) {
      return std::to_string(bytes >> shift) + unit;
    }
  }
  return std::to_string(bytes);
}

template <std::string Options::*kField>
Status SetText(Options& options, std::string_view value) {
  if (value.empty() || value.find('\0') != std::string_view::npos) return Bad("expected a value");
  options.*kField = value;
  return {};
}

template <std::string Options::*kField>
std::string ShowText(const Options& options) {
  return options.*kField;
}

template <auto kField>
Status SetId(Options& options, std::string_view value) {
  const std::optional<uint64_t> number = core::ParseUint(value);
  if (!number || *number >= UINT32_MAX) return Bad("expected a number");
  options.*kField = static_cast<uint32_t>(*number);
  return {};
}

template <auto kField>
std::string ShowId(const Options& options) {
  return options.*kField ? std::to_string(*(options.*kField)) : "";
}

Status SetNamespace(Options& options, std::string_view value) {
  TRY(core::ValidateNamespace(value));
  options.cache_namespace = value;
  return {};
}

std::string ShowTime(core::Duration time) {
  const int64_t ms = core::ToMillis(time);
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + "s" : std::to_string(ms) + "ms";
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

template <std::vector<std::string> Options::*kField>
std::string ShowList(const Options& options) {
  std::string text;
  for (const std::string& item : options.*kField) text += (text.empty() ? "" : ",") + item;
  return text;
}

template <std::vector<std::string> Options::*kField>
Status SetHosts(Options& options, std::string_view value) {
  for (const std::string_view pattern : core::Split(value, ',')) {
    if (pattern.empty() || pattern.find('/') != std::string_view::npos) {
      return Bad("expected host names, host:port or *.domain patterns");
    }
    (options.*kField).emplace_back(pattern);
  }
  return {};
}

// What `kParse` takes, separated by commas; kept as written.
template <std::vector<std::string> Options::*kField, auto kParse>
Status SetParsed(Options& options, std::string_view value) {
  for (const std::string_view each : core::Split(value, ',')) {
    TRY(kParse(each));
    (options.*kField).emplace_back(each);
  }
  return {};
}

Status SetRegistry(Options& options, std::string_view value) {
  TRY(httpd::ParseRegistryUrl(value));
  options.registry = value;
  return {};
}

Status SetListen(Options& options, std::string_view value) {
  if (value != "none") TRY(httpd::ParseHostPort(value));
  options.listen = value;
  return {};
}

Status SetAdmin(Options& options, std::string_view value) {
  TRY(httpd::ParseHostPort(value));
  options.admin = value;
  return {};
}

Status SetPrefix(Options& options, std::string_view value) {
  if (!httpd::IsUsablePrefix(value)) {
    return Bad(
        "expected one path segment of letters, digits, '-', '.', '_' or '~' that is not the "
        "name of another service");
  }
  options.prefix = value;
  return {};
}

template <std::string Options::*kField>
Status SetUrl(Options& options, std::string_view value) {
  const auto url = core::ParseUrl(value);
  if (!url) return Bad("expected an http or https URL");
  if (url->query) return Bad("expected a URL without a query");
  options.*kField = value;
  return {};
}

// Without the login.
template <std::string Options::*kField>
std::string ShowUrl(const Options& options) {
  const std::string& value = options.*kField;
  return value.empty() ? "" : core::RedactUrl(value);
}

Status SetConnect(Options& options, std::string_view value) {
  for (const std::string_view text : core::Split(value, ',')) {
    const auto port = core::ParseUint(text);
    if (!port || *port == 0 || *port > UINT16_MAX) return Bad("expected port numbers, such as 443");
    options.connect_ports.push_back(static_cast<uint16_t>(*port));
  }
  return {};
}

std::string ShowConnect(const Options& options) {
  std::string text;
  for (const uint16_t port : options.connect_ports) {
    text += (text.empty() ? "" : ",") + std::to_string(port);
  }
  return text;
}

template <size_t Options::*kField, uint64_t kMin, uint64_t kMax>
Status SetCount(Options& options, std::string_view value) {
  const auto count = core::ParseUint(value);
  if (!count || *count < kMin || *count > kMax) {
    return Bad("expected a number, " + std::to_string(kMin) + " to " + std::to_string(kMax));
  }
  options.*kField = static_cast<size_t>(*count);
  return {};
}

template <size_t Options::*kField>
std::string ShowCount(const Options& options) {
  return options.*kField == 0 ? "" : std::to_string(options.*kField);
}

Status SetDiskIo(Options& options, std::string_view value) {
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

std::string ShowDiskIo(const Options& options) {
  if (options.disk_io == Backend::kAuto) return "auto";
  return options.disk_io == Backend::kUring ? "uring" : "pool";
}

Status SetPassthrough(Options& options, std::string_view value) {
  if (value != "auto" && value != "off") return Bad("expected auto or off");
  options.passthrough = value == "auto";
  return {};
}

Status SetFill(Options& options, std::string_view value) {
  if (value == "auto") {
    options.fill = fs::FillMode::kAuto;
  } else if (value == "off") {
    options.fill = fs::FillMode::kOff;
  } else if (value == "all") {
    options.fill = fs::FillMode::kAll;
  } else {
    return Bad("expected auto, off or all");
  }
  return {};
}

std::string ShowFill(const Options& options) {
  if (options.fill == fs::FillMode::kAuto) return "auto";
  return options.fill == fs::FillMode::kOff ? "off" : "all";
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

std::string ShowUmask(const Options& options) {
  constexpr int kOctal = 8;
  if (!options.umask) return "";
  std::array<char, 8> digits{};
  char* const end =
      std::to_chars(digits.data(), digits.data() + digits.size(), *options.umask, kOctal).ptr;
  return "0" + std::string(digits.data(), end);
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
  TRY(SetBool(on, value));
  options.foreground = options.foreground || on;  // --debug may have set it
  return {};
}

// Foreground with everything logged; a log level given besides keeps its value, since rows are
// applied in the order of the table and "debug" stands first.
Status SetDebug(Options& options, std::string_view value) {
  bool on = false;
  TRY(SetBool(on, value));
  if (on) {
    options.foreground = true;
    options.log_level = "debug";
  }
  return {};
}

using enum OptionKind;

constexpr OptionRow kTable[] = {
    {"debug", "-d", "", "log everything, stay in the foreground", kProcess, SetDebug,
     ShowSwitch<&Options::foreground>},
    {"foreground", "-f", "", "stay in the foreground, log to stderr", kProcess, SetForeground,
     ShowSwitch<&Options::foreground>},
    {"no-mount", "", "", "be a node without a mount of its own, and stay (the service)", kProcess,
     SetSwitch<&Options::no_mount>, ShowSwitch<&Options::no_mount>},
    {"cache-dir", "", "DIR", "the cache directory [/var/cache/dartfs; users: ~/.cache/dartfs]",
     kNode, SetText<&Options::cache_dir>, ShowText<&Options::cache_dir>},
    {"cache-size", "", "SIZE", "most bytes the cache may hold [10GiB]", kNode,
     SetSize<&Options::cache_size, kMinCacheBytes, INT64_MAX>, ShowSize<&Options::cache_size>},
    {"namespace", "", "NAME", "keeps objects apart from those of other namespaces [dart]", kNode,
     SetNamespace, ShowText<&Options::cache_namespace>},
    {"ttl", "", "TIME", "how long a size and version hold before they are asked for again [60s]",
     kMount, SetTtl, [](const Options& o) { return ShowTime(o.ttl); }},
    {"immutable", "", "", "objects never change: ask for size and version once", kMount,
     SetSwitch<&Options::immutable>, ShowSwitch<&Options::immutable>},
    {"timeout", "", "TIME", "a read fails after so long; none: it waits for ever [60s]", kMount,
     SetTimeout,
     [](const Options& o) { return o.timeout ? ShowTime(*o.timeout) : std::string("none"); }},
    {"passthrough", "", "HOW",
     "auto: the kernel reads complete files by itself where it can; off: never [auto]", kMount,
     SetPassthrough, [](const Options& o) { return std::string(o.passthrough ? "auto" : "off"); }},
    {"fill", "", "WHICH",
     "complete in the background: auto (what is half read and fits well), off, all [auto]", kMount,
     SetFill, ShowFill},
    {"connections", "", "N", "most connections to one origin [16]", kNode, SetConnections,
     [](const Options& o) { return std::to_string(o.connections); }},
    {"inflight", "", "SIZE",
     "most memory for bytes under way [256MiB, or 1/8 of the cgroup's limit]", kNode,
     SetSize<&Options::inflight, kMinInflightBytes, INT64_MAX>, ShowSize<&Options::inflight>},
    {"read-ahead", "", "SIZE",
     "furthest that one sequential reader is read ahead; 0: not at all [128MiB]", kNode,
     SetSize<&Options::read_ahead, 0, kMaxReadAheadBytes>, ShowSize<&Options::read_ahead>},
    {"ignore-query", "", "NAMES", "query parameters that do not tell objects apart (repeatable)",
     kNode, SetIgnoreQuery, ShowList<&Options::ignore_query>, true},
    {"oci-digest-only", "", "", "take only <algorithm>:<hex> for a digest, not the blobs/ layout",
     kNode, SetSwitch<&Options::oci_digest_only>, ShowSwitch<&Options::oci_digest_only>},
    {"trusted-origins", "", "HOSTS",
     "hosts that share content-addressed objects before they are verified (repeatable)", kNode,
     SetTrustedOrigins, ShowList<&Options::trusted_origins>, true},
    {"spool-limit", "", "SIZE", "largest object fetched whole where ranges are not served [16GiB]",
     kNode, SetSize<&Options::spool_limit, 0, INT64_MAX>, ShowSize<&Options::spool_limit>},
    {"allow-link-local", "", "", "allow origins on link-local and metadata addresses", kNode,
     SetSwitch<&Options::allow_link_local>, ShowSwitch<&Options::allow_link_local>},
    {"ca-file", "", "FILE", "certificates to trust instead of the system's", kNode,
     SetText<&Options::ca_file>, ShowText<&Options::ca_file>},
    {"disk-io", "", "HOW", "auto, uring or pool [auto]", kNode, SetDiskIo, ShowDiskIo},
    {"listen", "", "HOST:PORT",
     "serve the cache over HTTP there; none: not at all [127.0.0.1:8145]", kNode, SetListen,
     ShowText<&Options::listen>},
    {"admin", "", "HOST:PORT",
     "metrics and the operator's page there [with --listen while that is loopback]", kNode,
     SetAdmin, ShowText<&Options::admin>},
    {"prefix", "", "NAME", "any URL is served as /NAME/<URL> [dart]", kNode, SetPrefix,
     ShowText<&Options::prefix>},
    {"origin", "", "URL", "serve what lies below URL under the listener's root", kNode,
     SetUrl<&Options::origin>, ShowUrl<&Options::origin>},
    {"host", "", "NAMES",
     "names by which HTTP clients may call this node, beside its own and addresses (repeatable)",
     kNode, SetHosts<&Options::hosts>, ShowList<&Options::hosts>, true},
    {"proxy-https", "", "HOSTS",
     "as a proxy, ask these hosts by https for what clients ask by http (repeatable)", kNode,
     SetHosts<&Options::proxy_https>, ShowList<&Options::proxy_https>, true},
    {"pass-redirects", "", "HOSTS",
     "hosts whose redirects HTTP clients are given instead of what lies behind (repeatable)", kNode,
     SetHosts<&Options::pass_redirects>, ShowList<&Options::pass_redirects>, true},
    {"connect", "", "PORTS", "as a proxy, make tunnels (CONNECT) to these ports (repeatable)",
     kNode, SetConnect, ShowConnect, true},
    {"registry", "", "URL", "be a mirror of that container registry at /v2/", kNode, SetRegistry,
     ShowText<&Options::registry>},
    {"registry-allow", "", "HOSTS",
     "registries that clients of the mirror may name with ns= (repeatable)", kNode,
     SetParsed<&Options::registry_allow, httpd::ParseRegistryPattern>,
     ShowList<&Options::registry_allow>, true},
    {"registry-auth", "", "FILE", "logins for registries: a docker config.json, or DART's form",
     kNode, SetText<&Options::registry_auth>, ShowText<&Options::registry_auth>},
    {"registry-realm", "", "HOSTS",
     "token servers that may get a registry's login, as host or registry=host (repeatable)", kNode,
     SetParsed<&Options::registry_realm, httpd::ParseTrustedRealm>,
     ShowList<&Options::registry_realm>, true},
    {"origin-allow", "", "RULES",
     "ask only these origins: host, *.domain, network/bits, each with :port or without "
     "(repeatable)",
     kNode, SetParsed<&Options::origin_allow, core::ParseOriginRule>,
     ShowList<&Options::origin_allow>, true},
    {"origin-deny", "", "RULES", "never ask these origins (repeatable)", kNode,
     SetParsed<&Options::origin_deny, core::ParseOriginRule>, ShowList<&Options::origin_deny>,
     true},
    {"access-log", "", "FILE", "write a line for each HTTP request there", kNode,
     SetText<&Options::access_log>, ShowText<&Options::access_log>},
    {"http-threads", "", "N", "threads that serve HTTP [as many as processors, 4 at most]", kNode,
     SetCount<&Options::http_threads, 1, 256>, ShowCount<&Options::http_threads>},
    {"max-connections", "", "N", "most HTTP connections; more are told to come back [16384]", kNode,
     SetCount<&Options::max_connections, 1, 1'000'000>, ShowCount<&Options::max_connections>},
    {"allow-other", "", "", "let all users read the mount", kMount,
     SetSwitch<&Options::allow_other>, ShowSwitch<&Options::allow_other>},
    {"uid", "", "ID", "owner shown for all files [who mounts]", kMount, SetId<&Options::uid>,
     ShowId<&Options::uid>},
    {"gid", "", "ID", "group shown for all files [who mounts]", kMount, SetId<&Options::gid>,
     ShowId<&Options::gid>},
    {"umask", "", "MODE", "permission bits taken off 0444 and 0555, octal [000]", kMount, SetUmask,
     ShowUmask},
    {"noexec", "", "", "refuse to run programs from the mount", kMount, SetSwitch<&Options::noexec>,
     ShowSwitch<&Options::noexec>},
    {"log-level", "", "LEVEL", "trace, debug, info, warn or error [info]", kNode, SetLevel,
     ShowText<&Options::log_level>},
    {"log-file", "", "FILE", "log there [foreground: stderr; background: syslog]", kNode,
     SetText<&Options::log_file>, ShowText<&Options::log_file>},
    {"pid-file", "", "FILE", "write the process ID there once mounted", kNode,
     SetText<&Options::pid_file>, ShowText<&Options::pid_file>},
};

}  // namespace

std::span<const OptionRow> OptionTable() { return kTable; }

}  // namespace dartfs::app
