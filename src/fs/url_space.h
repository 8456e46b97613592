// UrlSpace: which URL a directory's key means, and back. Two kinds:
//
//   Below(root)  the key is the path from the root's URL, "" or ending in '/'
//   Any()        "<scheme>/<host[:port]>/<path>", ending in '/'; host and port as in
//                core::Url::HostPort, so that one origin has one key
//
// Paths are as on the wire. Immutable, pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/url.h"

namespace dartfs::fs {

class UrlSpace {
 public:
  UrlSpace() = default;  // Any
  // `root`'s path ends in '/'; it has no query and no login.
  static UrlSpace Below(core::Url root) { return UrlSpace(std::move(root)); }
  static UrlSpace Any() { return UrlSpace(); }

  // Whether a directory with a URL can have that key: none whose path climbs out.
  bool IsKey(std::string_view key) const;
  // Requires IsKey.
  core::Url UrlOf(std::string_view key) const;
  // Of a URL that ends in '/' and has no query.
  std::optional<std::string> KeyOf(const core::Url& url) const;
  // The part of a key that stands for its origin: all keys with the same share an origin.
  std::string_view SiteOf(std::string_view key) const;

 private:
  explicit UrlSpace(core::Url root) : root_(std::move(root)) {}

  std::optional<core::Url> root_;  // absent: Any
};

// The origin's URL (path "/") for a scheme and a directory name below it in Any; nullopt where no
// origin is meant: an unknown scheme, a login, a port out of range or with leading zeros, what is
// no host name. Upper case and the default port are taken as what they mean.
std::optional<core::Url> OriginOfName(std::string_view scheme, std::string_view name);

}  // namespace dartfs::fs
