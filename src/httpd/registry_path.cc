#include "httpd/registry_path.h"

#include <algorithm>
#include <vector>

#include "core/base/digest.h"
#include "core/base/text.h"
#include "core/base/url.h"

namespace dartfs::httpd {
namespace {

constexpr size_t kMaxNameBytes = 255;
constexpr size_t kMaxTagBytes = 128;
constexpr size_t kMaxHostBytes = 255;
constexpr std::string_view kRoot = "/v2";

using Segments = std::vector<std::string_view>;
using Parsed = std::variant<RegistryPath, RegistryFault>;

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsNumber(char c) { return c >= '0' && c <= '9'; }
bool IsWord(char c) { return IsLower(c) || IsNumber(c); }
bool IsLetterOrNumber(char c) { return IsWord(c) || (c >= 'A' && c <= 'Z'); }

bool IsAnyOf(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// How many of the leading bytes separate two words of a name: ".", "_", "__", or dashes.
size_t SeparatorLength(std::string_view text) {
  if (text.starts_with("__")) return 2;
  if (text.starts_with('.') || text.starts_with('_')) return 1;
  return std::min(text.find_first_not_of('-'), text.size());
}

// [a-z0-9]+ with separators between.
bool IsNamePart(std::string_view part) {
  while (true) {
    const auto end = std::find_if_not(part.begin(), part.end(), IsWord);
    if (end == part.begin()) return false;
    part.remove_prefix(static_cast<size_t>(end - part.begin()));
    if (part.empty()) return true;
    const size_t separator = SeparatorLength(part);
    if (separator == 0) return false;
    part.remove_prefix(separator);
  }
}

bool IsTag(std::string_view tag) {
  const auto in_tag = [](char c) { return IsLetterOrNumber(c) || IsAnyOf(c, "_.-"); };
  return !tag.empty() && tag.size() <= kMaxTagBytes && !IsAnyOf(tag.front(), ".-") &&
         std::all_of(tag.begin(), tag.end(), in_tag);
}

bool IsAlgorithm(std::string_view text) {
  return !text.empty() && IsWord(text.front()) && IsWord(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsWord(c) || IsAnyOf(c, "+._-"); });
}

bool IsDigest(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view algorithm = text.substr(0, colon);
  const std::string_view value = text.substr(colon + 1);
  if (algorithm == "sha256" || algorithm == "sha512") {
    const auto known = core::ParseDigest(text);
    return known && known->ToString() == text;
  }
  return IsAlgorithm(algorithm) && !value.empty() && value.size() <= kMaxTagBytes &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return IsLetterOrNumber(c) || IsAnyOf(c, "=_-"); });
}

// A segment that every server reads alike.
bool IsPlainSegment(std::string_view segment) {
  return !segment.empty() && segment != "." && segment != ".." &&
         std::all_of(segment.begin(), segment.end(),
                     [](char c) { return IsLetterOrNumber(c) || IsAnyOf(c, "-._~:@+="); });
}

RegistryFault Fault(const char* code, std::string_view what, std::string_view text) {
  return {code, std::string(what) + ": '" + core::EscapeForeign(text, 300) + "'"};
}

// Lower case; nullopt unless it is a host with at most a port.
std::optional<std::string> HostOf(std::string_view value) {
  const auto host = core::PercentDecode(value);
  if (!host || host->empty() || host->size() > kMaxHostBytes) return std::nullopt;
  const auto url = core::ParseUrl("https://" + *host);
  if (!url ||
      !core::EqualsIgnoreCase(url->host + (url->port.empty() ? "" : ":" + url->port), *host)) {
    return std::nullopt;
  }
  return core::ToLowerAscii(*host);
}

// Takes ns= out of the query. False: it is no host, or there are two.
bool TakeNamespace(std::string_view query, RegistryPath* path, std::string* rest) {
  constexpr std::string_view kName = "ns=";
  bool first = true;
  for (const std::string_view parameter : core::Split(query, '&')) {
    if (!parameter.starts_with(kName)) {
      if (!first) *rest += '&';
      first = false;
      *rest += parameter;
      continue;
    }
    auto host = HostOf(parameter.substr(kName.size()));
    if (!host || (path->ns && *path->ns != *host)) return false;
    path->ns = std::move(host);
  }
  return true;
}

std::string JoinName(const Segments& segments, size_t count) {
  std::string name;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) name += '/';
    name += segments[i];
  }
  return name;
}

struct Shape {
  RegistryRoute route = RegistryRoute::kOther;
  size_t name_segments = 0;
};

// Names may hold the routes' own words: the last segments decide.
Shape ShapeOf(const Segments& segments) {
  const size_t count = segments.size();
  if (count == 1 && segments[0].empty()) return {RegistryRoute::kBase, 0};
  if (count == 1 && segments[0] == "_catalog") return {RegistryRoute::kCatalog, 0};
  if (count >= 4 && segments[count - 2] == "uploads" && segments[count - 3] == "blobs") {
    return {RegistryRoute::kUploads, count - 3};
  }
  if (count < 3) return {};
  const std::string_view kind = segments[count - 2];
  const size_t name = count - 2;
  if (kind == "blobs" && segments.back() == "uploads") return {RegistryRoute::kUploads, name};
  if (kind == "blobs") return {RegistryRoute::kBlob, name};
  if (kind == "manifests") return {RegistryRoute::kManifest, name};
  if (kind == "referrers") return {RegistryRoute::kReferrers, name};
  if (kind == "tags" && segments.back() == "list") return {RegistryRoute::kTags, name};
  return {};
}

std::optional<RegistryFault> CheckReference(RegistryRoute route, std::string_view reference) {
  const bool tag_will_do = route == RegistryRoute::kManifest;
  if (tag_will_do && reference.find(':') == std::string_view::npos) {
    if (IsTag(reference)) return std::nullopt;
    return Fault("TAG_INVALID", "this is no tag", reference);
  }
  const bool digest =
      tag_will_do || route == RegistryRoute::kBlob || route == RegistryRoute::kReferrers;
  if (!digest || IsDigest(reference)) return std::nullopt;
  return Fault("DIGEST_INVALID",
               "this is no digest (algorithm:value, sha256 with 64 lower-case hex digits)",
               reference);
}

Parsed ParsePath(std::string_view text, RegistryPath path) {
  Segments segments = core::Split(text.substr(std::min(text.size(), kRoot.size() + 1)), '/');
  if (segments.empty()) segments.emplace_back();
  const Shape shape = ShapeOf(segments);
  path.route = shape.route;
  path.name = JoinName(segments, shape.name_segments);
  if (shape.name_segments > 0) {
    if (!IsRepositoryName(path.name)) {
      return Fault("NAME_INVALID", "this is no repository's name", path.name);
    }
    path.reference = segments.back();
    if (auto fault = CheckReference(path.route, path.reference)) return *std::move(fault);
  }
  // An empty last one is a trailing slash.
  if (segments.back().empty()) segments.pop_back();
  if (!std::all_of(segments.begin(), segments.end(), IsPlainSegment)) {
    return Fault("NAME_INVALID", "this is no path of a registry", text);
  }
  return path;
}

}  // namespace

std::string RegistryPath::Scope() const {
  if (route == RegistryRoute::kCatalog) return "registry:catalog:*";
  return name.empty() ? "" : "repository:" + name + ":pull";
}

bool IsRepositoryName(std::string_view name) {
  if (name.size() > kMaxNameBytes) return false;
  const auto parts = core::Split(name, '/');
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), IsNamePart);
}

Parsed ParseRegistryPath(std::string_view target) {
  const size_t mark = target.find('?');
  const std::string_view text = target.substr(0, mark);
  if (target.find('#') != std::string_view::npos || !text.starts_with(kRoot) ||
      (text.size() > kRoot.size() && text[kRoot.size()] != '/')) {
    return Fault("NAME_INVALID", "this is no path of a registry", target);
  }
  RegistryPath path;
  path.target = text.size() == kRoot.size() ? "/v2/" : text;
  if (mark != std::string_view::npos) {
    std::string rest;
    if (!TakeNamespace(target.substr(mark + 1), &path, &rest)) {
      return Fault("UNSUPPORTED", "ns= must name one registry as host or host:port",
                   target.substr(mark));
    }
    if (!rest.empty()) path.target += "?" + rest;
  }
  return ParsePath(text, std::move(path));
}

}  // namespace dartfs::httpd
