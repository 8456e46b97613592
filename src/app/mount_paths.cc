#include "app/mount_paths.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace dartfs::app {
namespace {

std::vector<std::string> Components(std::string_view path) {
  std::vector<std::string> components;
  for (const std::string_view part : core::Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      components.emplace_back(part);
    } else if (!components.empty()) {
      components.pop_back();
    }
  }
  return components;
}

}  // namespace

std::optional<std::vector<std::string>> PathBelow(std::string_view mountpoint,
                                                  std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  const std::vector<std::string> root = Components(mountpoint);
  std::vector<std::string> components = Components(path);
  if (components.size() < root.size() ||
      !std::equal(root.begin(), root.end(), components.begin())) {
    return std::nullopt;
  }
  components.erase(components.begin(),
                   components.begin() + static_cast<std::ptrdiff_t>(root.size()));
  return components;
}

core::Result<core::Url> UrlOfPath(const fs::Namespace& names,
                                  const std::vector<std::string>& components) {
  TRY_ASSIGN(const fs::DirRef dir,
             DirOfPath(names, std::span(components).first(components.size() - 1)));
  return names.UrlOf(dir, components.back());
}

std::string DigestOfPath(const fs::Namespace& names, const std::vector<std::string>& components) {
  const auto dir = DirOfPath(names, std::span(components).first(components.size() - 1));
  return dir ? names.DigestOf(*dir, components.back()) : "";
}

core::Result<fs::DirRef> DirOfPath(const fs::Namespace& names,
                                   std::span<const std::string> components) {
  fs::DirRef dir = names.Root();
  for (const std::string& component : components) {
    TRY_ASSIGN(fs::DirRef next, names.DirOf(dir, component));
    dir = std::move(next);
  }
  return dir;
}

}  // namespace dartfs::app
