// The part of the options that depends on the machine.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>

#include "app/cgroup.h"
#include "app/options.h"

namespace dartfs::app {
namespace {

constexpr uint64_t kMostInflightBytes = uint64_t{256} << 20;
constexpr uint64_t kLeastInflightBytes = uint64_t{16} << 20;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before threads start
  return value == nullptr ? "" : value;
}

void MakeAbsolute(std::string& path, const std::string& working_dir) {
  if (!path.empty() && !path.starts_with('/')) path = working_dir + "/" + path;
}

}  // namespace

Surroundings CurrentSurroundings() {
  Surroundings found;
  found.uid = geteuid();
  found.home = Variable("HOME");
  found.xdg_cache_home = Variable("XDG_CACHE_HOME");
  std::array<char, PATH_MAX> buffer{};
  if (getcwd(buffer.data(), buffer.size()) != nullptr) found.working_dir = buffer.data();
  found.memory_limit = CgroupMemoryLimit(ReadSmallFile);
  return found;
}

core::Result<std::string> DefaultCacheDir(const Surroundings& surroundings) {
  if (surroundings.uid == 0) return std::string("/var/cache/dartfs");
  // A relative $XDG_CACHE_HOME is to be ignored (XDG base directory specification).
  if (surroundings.xdg_cache_home.starts_with('/')) return surroundings.xdg_cache_home + "/dartfs";
  if (surroundings.home.starts_with('/')) return surroundings.home + "/.cache/dartfs";
  return core::MakeError(core::Code::kInvalidArgument,
                         "no $HOME to keep the cache in: name a directory with --cache-dir");
}

core::Status ResolveDefaults(Options& options, const Surroundings& surroundings) {
  if (options.cache_dir.empty()) {
    TRY_ASSIGN(options.cache_dir, DefaultCacheDir(surroundings));
  }
  if (options.inflight == 0) {
    const uint64_t share = surroundings.memory_limit.value_or(UINT64_MAX) / 8;
    options.inflight = std::clamp(share, kLeastInflightBytes, kMostInflightBytes);
  }
  for (std::string* path :
       {&options.cache_dir, &options.ca_file, &options.log_file, &options.pid_file,
        &options.mountpoint, &options.access_log, &options.registry_auth}) {
    MakeAbsolute(*path, surroundings.working_dir);
  }
  return {};
}

}  // namespace dartfs::app
