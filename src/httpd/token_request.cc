#include "httpd/token_request.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/text.h"
#include "httpd/json_fields.h"
#include "httpd/registry_upstreams.h"

namespace dartfs::httpd {
namespace {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Url;

constexpr size_t kMaxTokenBytes = 32 * 1024;
// What the protocol says of an answer without expires_in.
constexpr int64_t kDefaultLifetime = 60;
constexpr int64_t kLongestLifetime = 3600;

// Registries whose token service is known to be elsewhere.
constexpr struct {
  std::string_view registry;
  std::string_view realm;
} kKnownRealms[] = {
    {"registry-1.docker.io", "auth.docker.io"},
    {"registry.gitlab.com", "gitlab.com"},
};

std::optional<std::string> HostPortOf(std::string_view text) {
  const auto url = core::ParseUrl("https://" + std::string(text));
  if (!url || !url->userinfo.empty() || url->path != "/" || url->query || text.ends_with('/')) {
    return std::nullopt;
  }
  Url canonical = *url;
  canonical.host = CanonicalRegistryHost(url->host);
  return canonical.HostPort();
}

bool IsTrusted(const Url& registry, const Url& realm, const std::vector<TrustedRealm>& trusted) {
  if (realm.host == registry.host) return true;
  const std::string asked = registry.HostPort();
  const std::string service = realm.HostPort();
  const bool known = std::any_of(std::begin(kKnownRealms), std::end(kKnownRealms), [&](auto& row) {
    return row.registry == asked && row.realm == service;
  });
  return known || std::any_of(trusted.begin(), trusted.end(), [&](const TrustedRealm& row) {
           return (row.registry.empty() || row.registry == asked) && row.realm == service;
         });
}

// RFC 6750 has fewer; whatever else is visible does no harm in a header.
bool IsToken(std::string_view token) {
  return !token.empty() && token.size() <= kMaxTokenBytes &&
         std::all_of(token.begin(), token.end(), [](char c) { return c >= 0x21 && c <= 0x7E; });
}

}  // namespace

Result<TrustedRealm> ParseTrustedRealm(std::string_view text) {
  const size_t equals = text.find('=');
  TrustedRealm row;
  const auto realm = HostPortOf(text.substr(equals == std::string_view::npos ? 0 : equals + 1));
  std::optional<std::string> registry = "";
  if (equals != std::string_view::npos) registry = HostPortOf(text.substr(0, equals));
  if (!realm || !registry) {
    return MakeError(
        Code::kInvalidArgument,
        "'" + EscapeForeign(text) + "' names no token service; write its host, or registry=host");
  }
  return TrustedRealm{*registry, *realm};
}

Result<TokenRequest> MakeTokenRequest(const Url& registry, const RegistryChallenge& challenge,
                                      std::string_view scope,
                                      const std::vector<TrustedRealm>& trusted) {
  auto realm = core::ParseUrl(challenge.realm);
  const std::string what =
      registry.HostPort() + " asks for tokens of " + core::RedactUrl(challenge.realm);
  if (!realm || !realm->userinfo.empty())
    return MakeError(Code::kRefused, what + ", which is no URL");
  if (realm->scheme != "https" && registry.scheme == "https") {
    return MakeError(Code::kRefused, what + ", which is not https");
  }
  std::string query = realm->query.value_or("");
  const auto add = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    if (!query.empty()) query += '&';
    query.append(name).append("=").append(core::PercentEncode(value, core::UrlSet::kUnreserved));
  };
  add("service", challenge.service);
  add("scope", scope);
  realm->query = query.empty() ? std::nullopt : std::optional(query);
  return TokenRequest{realm->ToString(), IsTrusted(registry, *realm, trusted)};
}

Result<TokenGrant> ReadTokenAnswer(std::string_view body) {
  const auto wrong = [](const char* what) {
    return MakeError(Code::kBadResponse, std::string("the token service's answer ") + what);
  };
  if (body.size() > kMaxTokenAnswerBytes) return wrong("is too long");
  const nlohmann::json answer = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return wrong("is no JSON object");
  std::string token = JsonText(answer, "token").value_or("");
  if (token.empty()) token = JsonText(answer, "access_token").value_or("");
  if (token.empty()) return wrong("has no token");
  if (!IsToken(token)) return wrong("has a token that can't stand in a header");
  int64_t seconds = JsonInteger(answer, "expires_in").value_or(0);
  if (seconds <= 0) seconds = kDefaultLifetime;
  return TokenGrant{std::move(token), std::chrono::seconds(std::min(seconds, kLongestLifetime))};
}

}  // namespace dartfs::httpd
