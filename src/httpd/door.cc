#include "httpd/door.h"

#include <algorithm>
#include <array>
#include <optional>

namespace dartfs::httpd {
namespace {

// Whether the path is `root` or lies below it.
bool IsBelow(std::string_view target, std::string_view root) {
  if (!target.starts_with(root)) return false;
  target.remove_prefix(root.size());
  return target.empty() || target.front() == '/' || target.front() == '?';
}

bool IsAdmin(std::string_view target) {
  constexpr std::array<std::string_view, 4> kRoots = {"/healthz", "/readyz", "/metrics", "/admin"};
  return std::any_of(kRoots.begin(), kRoots.end(),
                     [target](std::string_view root) { return IsBelow(target, root); });
}

bool IsPeer(std::string_view target) {
  return IsBelow(target, "/peer/v1") || IsBelow(target, "/tracker/v1");
}

// What follows "/<prefix>/".
std::optional<std::string_view> Embedded(std::string_view target, std::string_view prefix) {
  if (prefix.empty() || target.size() < prefix.size() + 2) return std::nullopt;
  if (target.substr(1, prefix.size()) != prefix || target[prefix.size() + 1] != '/') {
    return std::nullopt;
  }
  return target.substr(prefix.size() + 2);
}

Door DoorOfPath(std::string_view target, const Doors& doors) {
  if (IsAdmin(target) && doors.admin) return Door::kAdmin;
  if (IsPeer(target) && doors.peer) return Door::kPeer;
  if (IsBelow(target, "/v2") && doors.registry) return Door::kRegistry;
  return doors.fixed_origin ? Door::kFixedOrigin : Door::kNone;
}

bool HasScheme(std::string_view target) {
  const size_t colon = target.find("://");
  return colon != std::string_view::npos && colon > 0 && target.find('/') == colon + 1;
}

}  // namespace

Knock FindDoor(std::string_view method, std::string_view target, const Doors& doors) {
  if (method == "CONNECT") return {doors.connect ? Door::kConnect : Door::kNone, target};
  if (target == "*") return {method == "OPTIONS" ? Door::kServer : Door::kNone, target};
  if (target.starts_with('/')) {
    if (const auto url = Embedded(target, doors.prefix)) return {Door::kPrefix, *url};
    return {DoorOfPath(target, doors), target};
  }
  return {doors.proxy && HasScheme(target) ? Door::kProxy : Door::kNone, target};
}

bool IsUsablePrefix(std::string_view prefix) {
  constexpr std::array<std::string_view, 7> kTaken = {"healthz", "readyz",  "metrics", "admin",
                                                      "peer",    "tracker", "v2"};
  if (prefix.empty() || prefix == "." || prefix == "..") return false;
  if (std::find(kTaken.begin(), kTaken.end(), prefix) != kTaken.end()) return false;
  return std::all_of(prefix.begin(), prefix.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~").find(c) != std::string_view::npos;
  });
}

}  // namespace dartfs::httpd
