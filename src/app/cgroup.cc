#include "app/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {
namespace {

constexpr size_t kMostFileBytes = 64 * 1024;
// Version 1 writes "no limit" as the largest multiple of a page; nothing real is near it.
constexpr uint64_t kUnlimited = uint64_t{1} << 60;

// A place where the group's files may be: the tree's root, the group's path in it, the file's name.
struct Place {
  std::string root;
  std::string group;
  std::string file;
};

// Lines of /proc/self/cgroup: hierarchy:controllers:path (cgroups(7)).
std::vector<Place> Places(const std::string& table) {
  std::vector<Place> places;
  for (const std::string_view line : core::Split(table, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string group(line.substr(second + 1));
    if (controllers.empty()) {
      places.push_back({"/sys/fs/cgroup", group, "memory.max"});
      continue;
    }
    for (const std::string_view controller : core::Split(controllers, ',')) {
      if (controller != "memory") continue;
      places.push_back({"/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"});
    }
  }
  return places;
}

std::optional<uint64_t> LowestOnTheWayUp(const Place& place, const FileReader& read) {
  std::optional<uint64_t> lowest;
  std::string group = place.group == "/" ? "" : place.group;
  while (true) {
    const std::optional<std::string> text = read(place.root + group + "/" + place.file);
    const auto limit =
        text ? core::ParseUint(core::TrimAscii(*text)) : std::nullopt;  // "max": none
    if (limit && *limit < kUnlimited) lowest = std::min(lowest.value_or(*limit), *limit);
    if (group.empty()) return lowest;
    const size_t slash = group.rfind('/');
    group.resize(slash == std::string::npos ? 0 : slash);
  }
}

}  // namespace

std::optional<std::string> ReadSmallFile(const std::string& path) {
  const core::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < kMostFileBytes) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

std::optional<uint64_t> CgroupMemoryLimit(const FileReader& read) {
  const std::optional<std::string> table = read("/proc/self/cgroup");
  if (!table) return std::nullopt;
  std::optional<uint64_t> lowest;
  for (const Place& place : Places(*table)) {
    const std::optional<uint64_t> limit = LowestOnTheWayUp(place, read);
    if (limit) lowest = std::min(lowest.value_or(*limit), *limit);
  }
  return lowest;
}

}  // namespace dartfs::app
