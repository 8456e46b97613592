#include "fs/url_space.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/text.h"
#include "fs/name_mapping.h"

namespace dartfs::fs {
namespace {

using core::Url;

constexpr size_t kMaxHostBytes = 253;  // RFC 1035 section 3.1, as text
constexpr size_t kMaxLabelBytes = 63;

bool IsPathKey(std::string_view path) {
  return path.empty() || (IsRest(path) && path.ends_with('/') &&
                          path.find('?') == std::string_view::npos && !LeavesDirectory(path));
}

// What a resolver can be asked for: so that stray names never get that far.
bool IsHost(std::string_view host) {
  if (host.starts_with('[')) return true;  // ParseUrl has looked at it
  if (host.size() > kMaxHostBytes) return false;
  const auto labels = core::Split(host, '.');
  return std::all_of(labels.begin(), labels.end(), [](std::string_view label) {
    return !label.empty() && label.size() <= kMaxLabelBytes && label.front() != '-' &&
           label.back() != '-';
  });
}

struct Parts {
  std::string_view scheme, host_port, path;
};

// Of a key of Any.
std::optional<Parts> SplitKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const size_t second = key.find('/', slash + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return Parts{key.substr(0, slash), key.substr(slash + 1, second - slash - 1),
               key.substr(second + 1)};
}

}  // namespace

bool UrlSpace::IsKey(std::string_view key) const {
  if (root_) return IsPathKey(key);
  const auto parts = SplitKey(key);
  if (!parts || !IsPathKey(parts->path)) return false;
  const auto origin = OriginOfName(parts->scheme, parts->host_port);
  return origin && origin->HostPort() == parts->host_port;
}

Url UrlSpace::UrlOf(std::string_view key) const {
  if (root_) {
    Url url = *root_;
    url.path += key;
    return url;
  }
  const auto parts = SplitKey(key);
  auto url = parts ? OriginOfName(parts->scheme, parts->host_port) : std::nullopt;
  DARTFS_CHECK(url.has_value());
  url->path += parts->path;
  return std::move(*url);
}

std::optional<std::string> UrlSpace::KeyOf(const Url& url) const {
  if (url.query || !url.path.ends_with('/')) return std::nullopt;
  std::string key;
  if (root_) {
    const bool same_origin = url.Authority() == root_->Authority();
    if (!same_origin || !url.path.starts_with(root_->path)) return std::nullopt;
    key = url.path.substr(root_->path.size());
  } else {
    key = url.scheme + "/" + url.HostPort() + url.path;
  }
  return IsKey(key) ? std::optional(std::move(key)) : std::nullopt;
}

std::string_view UrlSpace::SiteOf(std::string_view key) const {
  if (root_) return {};
  const auto parts = SplitKey(key);
  return parts ? key.substr(0, key.size() - parts->path.size()) : key;
}

std::optional<Url> OriginOfName(std::string_view scheme, std::string_view name) {
  if (scheme != "http" && scheme != "https") return std::nullopt;
  if (name.find_first_of("@/?#") != std::string_view::npos || name.ends_with(':')) {
    return std::nullopt;
  }
  auto url = core::ParseUrl(std::string(scheme) + "://" + std::string(name) + "/");
  if (!url || url->port.starts_with('0') || !IsHost(url->host)) return std::nullopt;
  if (url->HasDefaultPort()) url->port.clear();
  return std::move(*url);
}

}  // namespace dartfs::fs
