// Which registries the mirror asks, and under which URL. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/url.h"

namespace dartfs::httpd {

// A registry, or all below a domain, that clients may name by ns=.
struct RegistryPattern {
  std::string host;    // lower case; behind "*." where `below` says so
  std::string port;    // empty: the scheme's default one
  bool below = false;  // hosts below `host`, not itself
  bool plain = false;  // over http
};
// "host", "host:port", "*.domain", "*.domain:port", each also behind "http://" for a registry
// without TLS. Docker Hub by any of its names. kInvalidArgument with the offending value.
core::Result<RegistryPattern> ParseRegistryPattern(std::string_view text);

// --registry: http or https, no login, query or path. kInvalidArgument with what to do.
core::Result<core::Url> ParseRegistryUrl(std::string_view text);

struct RegistryUpstreams {
  std::optional<core::Url> registry;     // what is asked where a client names none
  std::vector<RegistryPattern> allowed;  // what clients may name beside it
};

// The registry's base ("https://host[:port]/") that `ns`, as ParseRegistryPath has it, names: asked
// over https, unless its pattern says otherwise or it is this machine on any port but 443, as
// containerd has it. kRefused: not allowed; kNotFound: none is named, and there is no fixed one.
core::Result<core::Url> FindRegistry(const RegistryUpstreams& upstreams,
                                     const std::optional<std::string>& ns);

// Docker Hub's registry answers under another name than images have: "docker.io" and
// "index.docker.io" become "registry-1.docker.io"; others stay.
std::string CanonicalRegistryHost(std::string_view host);

// The registry's URL of `target` ("path?query", the path from the root). kInvalidArgument: it would
// be too long.
core::Result<core::Url> RegistryTarget(const core::Url& registry, std::string_view target);

}  // namespace dartfs::httpd
