// Options: everything a mount can be told, whether on the command line, in `-o` or in a TOML file.
// One table (option_table.h) names them; a value's place of highest precedence wins as a whole:
// command line, then `-o`, then the file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/io/disk_io.h"
#include "fs/auto_fill.h"

namespace dartfs::app {

inline constexpr const char* kDefaultListen = "127.0.0.1:8145";

struct Options {
  std::string source;      // as given: may hold a login or a query, never shown as it is
  std::string mountpoint;  // absolute after ResolveDefaults
  bool no_mount = false;   // a node that stays, without a mount of its own; then the two are empty

  std::string cache_dir;                     // empty: the user's default
  uint64_t cache_size = uint64_t{10} << 30;  // bytes
  std::string cache_namespace = "dart";
  core::Duration ttl = std::chrono::seconds(60);
  bool immutable = false;
  std::optional<core::Duration> timeout = std::chrono::seconds(60);  // of a read; nullopt: for ever
  size_t connections = 16;                                           // per origin
  uint64_t inflight = 0;                      // bytes; 0: by the memory limit
  uint64_t read_ahead = uint64_t{128} << 20;  // bytes, of one stream
  std::vector<std::string> ignore_query;
  bool oci_digest_only = false;
  std::vector<std::string> trusted_origins;
  uint64_t spool_limit = uint64_t{16} << 30;  // bytes
  bool allow_link_local = false;
  std::string ca_file;
  core::DiskIoOptions::Backend disk_io = core::DiskIoOptions::Backend::kAuto;

  bool passthrough = true;
  fs::FillMode fill = fs::FillMode::kAuto;
  bool allow_other = false;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<mode_t> umask;  // taken off 0444 and 0555
  bool noexec = false;

  // The HTTP door.
  std::string listen;  // host:port; "none": no client plane; empty: kDefaultListen
  std::string admin;   // host:port of the admin plane; empty: with `listen`
  std::string prefix = "dart";
  std::string origin;              // URL of the fixed origin; may hold a login; empty: none
  std::vector<std::string> hosts;  // names of the listener, beside addresses and this machine's own
  std::vector<std::string> proxy_https;
  std::vector<std::string> pass_redirects;
  std::vector<uint16_t> connect_ports;  // of tunnels; empty: none are made
  std::string registry;                 // URL; may hold a login; empty: none
  std::vector<std::string> registry_allow;
  std::string registry_auth;  // a file of logins
  std::vector<std::string> registry_realm;
  std::vector<std::string> origin_allow;
  std::vector<std::string> origin_deny;
  std::string access_log;
  size_t http_threads = 0;         // 0: by the number of processors
  size_t max_connections = 16384;  // of clients

  std::string log_level = "info";
  std::string log_file;  // empty: stderr in the foreground, syslog in the background
  std::string pid_file;
  bool foreground = false;
};

struct OptionRow;

enum class Action { kRun, kHelp, kVersion, kCheckConfig };

struct Invocation {
  Action action = Action::kRun;
  Options options;
  std::vector<const OptionRow*> given;  // the options that were named somewhere
};

// What main got, without the program's name. Reads the file named by --config, a relative name from
// `working_dir`. Errors say which option is wrong, where it stood, and what would be right; no
// secret is quoted. `options` is checked by itself, but not yet against the machine
// (ResolveDefaults does that).
core::Result<Invocation> ParseCommandLine(const std::vector<std::string>& arguments,
                                          const std::string& working_dir = ".");

// The text of --help.
std::string HelpText();

// The machine as the defaults see it; a test makes its own.
struct Surroundings {
  uid_t uid = 0;
  std::string home = {};            // $HOME
  std::string xdg_cache_home = {};  // $XDG_CACHE_HOME
  std::string working_dir = {};
  std::optional<uint64_t> memory_limit = {};  // bytes, of the cgroup
};
Surroundings CurrentSurroundings();

// Fills in what depends on the machine (cache directory, in-flight memory) and makes paths
// absolute.
core::Status ResolveDefaults(Options& options, const Surroundings& surroundings);

// The cache directory of a user who names none. kInvalidArgument without a home.
core::Result<std::string> DefaultCacheDir(const Surroundings& surroundings);

}  // namespace dartfs::app
