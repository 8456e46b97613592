#include "httpd/registry_upstreams.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace dartfs::httpd {
namespace {

using core::Code;
using core::MakeError;
using core::Result;
using core::Url;

constexpr std::string_view kPlain = "http://";
constexpr std::string_view kBelow = "*.";

bool IsThisMachine(std::string_view host) {
  const bool loopback =
      host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
  return host == "localhost" || host == "[::1]" || loopback;
}

bool Matches(const RegistryPattern& pattern, const Url& named) {
  const Url wanted = {
      pattern.plain ? "http" : named.scheme, pattern.host, pattern.port, "", "/", std::nullopt};
  Url asked = named;
  asked.scheme = wanted.scheme;
  if (asked.EffectivePort() != wanted.EffectivePort()) return false;
  if (!pattern.below) return asked.host == pattern.host;
  return asked.host.size() > pattern.host.size() + 1 && asked.host.ends_with("." + pattern.host);
}

}  // namespace

std::string CanonicalRegistryHost(std::string_view host) {
  const bool hub = host == "docker.io" || host == "index.docker.io";
  return std::string(hub ? "registry-1.docker.io" : host);
}

Result<RegistryPattern> ParseRegistryPattern(std::string_view text) {
  const auto wrong = [&] {
    return MakeError(Code::kInvalidArgument,
                     "'" + core::EscapeForeign(text) +
                         "' names no registry; write host, host:port or *.domain, behind http:// "
                         "if it has no TLS");
  };
  RegistryPattern pattern;
  std::string_view rest = text;
  if ((pattern.plain = rest.starts_with(kPlain))) rest.remove_prefix(kPlain.size());
  if ((pattern.below = rest.starts_with(kBelow))) rest.remove_prefix(kBelow.size());
  const auto url = core::ParseUrl("https://" + std::string(rest));
  if (!url ||
      !core::EqualsIgnoreCase(url->host + (url->port.empty() ? "" : ":" + url->port), rest)) {
    return wrong();
  }
  pattern.host = pattern.below ? url->host : CanonicalRegistryHost(url->host);
  pattern.port = url->port;
  return pattern;
}

Result<Url> ParseRegistryUrl(std::string_view text) {
  auto url = core::ParseUrl(text);
  if (!url) return std::move(url).error().WithContext("--registry");
  if (!url->userinfo.empty()) {
    return MakeError(Code::kInvalidArgument,
                     "--registry " + core::RedactUrl(text) +
                         ": a login does not belong here; put it into the file of --registry-auth");
  }
  if (url->path != "/" || url->query) {
    return MakeError(Code::kInvalidArgument, "--registry " + core::RedactUrl(text) +
                                                 ": give scheme and host alone; /v2/ is added");
  }
  url->host = CanonicalRegistryHost(url->host);
  return url;
}

Result<Url> FindRegistry(const RegistryUpstreams& upstreams, const std::optional<std::string>& ns) {
  if (!ns) {
    if (upstreams.registry) return *upstreams.registry;
    return MakeError(Code::kNotFound,
                     "the request names no registry (ns=), and this node has no --registry");
  }
  TRY_ASSIGN(Url named, core::ParseUrl("https://" + *ns));
  named.host = CanonicalRegistryHost(named.host);
  if (IsThisMachine(named.host) && named.port != "443") named.scheme = "http";
  if (upstreams.registry) {
    Url same = named;
    same.scheme = upstreams.registry->scheme;
    if (same.Authority() == upstreams.registry->Authority()) return *upstreams.registry;
  }
  const auto match =
      std::find_if(upstreams.allowed.begin(), upstreams.allowed.end(),
                   [&](const RegistryPattern& pattern) { return Matches(pattern, named); });
  if (match == upstreams.allowed.end()) {
    return MakeError(Code::kRefused, "registry " + core::EscapeForeign(*ns) +
                                         " is not within this node's --registry-allow");
  }
  if (match->plain) named.scheme = "http";
  return named;
}

Result<Url> RegistryTarget(const Url& registry, std::string_view target) {
  return core::ParseUrl(registry.scheme + "://" + registry.HostPort() + std::string(target));
}

}  // namespace dartfs::httpd
