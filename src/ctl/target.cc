#include "ctl/target.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <deque>
#include <optional>
#include <string_view>

#include "core/base/text.h"

namespace dartfs::ctl {
namespace {

std::string WorkingDirectory() {
  std::array<char, PATH_MAX> buffer{};
  return getcwd(buffer.data(), buffer.size()) == nullptr ? "" : std::string(buffer.data());
}

std::optional<std::string> LinkTarget(const std::string& path) {
  std::array<char, PATH_MAX> buffer;
  const ssize_t length = readlink(path.c_str(), buffer.data(), buffer.size());
  if (length <= 0) return std::nullopt;
  return std::string(buffer.data(), static_cast<size_t>(length));
}

// Puts the components of `path` before those of `rest`.
void Prepend(std::string_view path, std::deque<std::string>& rest) {
  const std::vector<std::string_view> parts = core::Split(path, '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!part->empty() && *part != ".") rest.emplace_front(*part);
  }
}

}  // namespace

bool IsUrl(const std::string& target) { return target.find("://") != std::string::npos; }

std::string ResolveUpToMount(const std::string& path, const std::vector<std::string>& mountpoints) {
  constexpr int kMostLinks = 40;  // as the kernel's own limit
  std::deque<std::string> rest;
  Prepend(path.starts_with('/') ? path : WorkingDirectory() + "/" + path, rest);
  std::string done;
  int links = 0;
  while (!rest.empty()) {
    const std::string part = rest.front();
    rest.pop_front();
    if (part == "..") {
      done.resize(std::min(done.size(), done.rfind('/')));
      continue;
    }
    std::string next = done;
    next.append("/").append(part);
    if (std::find(mountpoints.begin(), mountpoints.end(), next) != mountpoints.end()) {
      done = next;
      break;
    }
    const auto link = links < kMostLinks ? LinkTarget(next) : std::nullopt;
    if (link) {
      ++links;
      if (link->starts_with('/')) done.clear();
      Prepend(*link, rest);
    } else {
      done = next;
    }
  }
  for (const std::string& part : rest) done.append("/").append(part);
  return done.empty() ? "/" : done;
}

}  // namespace dartfs::ctl
