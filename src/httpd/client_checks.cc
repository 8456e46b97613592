#include "httpd/client_checks.h"

#include <algorithm>
#include <string_view>

#include "core/base/text.h"
#include "core/io/address_policy.h"

namespace dartfs::httpd {
namespace {

constexpr std::string_view kPseudonym = "dartfs";

Refusal Refuse(int status, std::string text) {
  Refusal refusal;
  refusal.head.status = status;
  refusal.text = std::move(text) + "\n";
  return refusal;
}

std::optional<Refusal> CheckMethod(const Request& request, Door door) {
  if (door == Door::kServer || request.method == "CONNECT") return std::nullopt;
  if (request.method != "GET" && request.method != "HEAD") {
    if (door == Door::kRegistry) return std::nullopt;  // it says so in its own form
    Refusal refusal = Refuse(405, core::EscapeForeign(request.method, 32) +
                                      ": nothing can be written here, only GET and HEAD are "
                                      "answered");
    refusal.head.Add("Allow", "GET, HEAD");
    return refusal;
  }
  if (request.has_body()) {
    return Refuse(400, "a " + request.method +
                           " with a body means nothing here, and whoever stands "
                           "between might take the body for a request");
  }
  return std::nullopt;
}

// The host of a Host field, without port; nullopt where it is none.
std::optional<std::string> HostOf(std::string_view field) {
  field = core::TrimAscii(field);
  if (field.starts_with('[')) {
    const size_t close = field.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    return std::string(field.substr(0, close + 1));
  }
  return std::string(field.substr(0, field.find(':')));
}

bool IsOurName(const std::string& host, const ClientPolicy& policy) {
  if (core::EqualsIgnoreCase(host, "localhost") || core::ParseIpLiteral(host)) return true;
  return std::any_of(policy.hosts.begin(), policy.hosts.end(),
                     [&](const std::string& name) { return core::EqualsIgnoreCase(name, host); });
}

// A page of another site must not be able to reach a node by a name that leads to its address.
std::optional<Refusal> CheckHost(const Request& request, const ClientPolicy& policy) {
  if (!request.target.starts_with('/')) return std::nullopt;
  const auto field = request.Find("Host");
  if (!field) return std::nullopt;  // HTTP/1.0, no browser
  const auto host = HostOf(*field);
  if (host && IsOurName(*host, policy)) return std::nullopt;
  return Refuse(403, "this node is not called " + core::EscapeForeign(*field, 256) +
                         ": use its address or its name, or add the name with --host");
}

std::optional<Refusal> CheckSite(const Request& request) {
  const auto site = request.Find("Sec-Fetch-Site");
  if (!site || !core::EqualsIgnoreCase(core::TrimAscii(*site), "cross-site")) return std::nullopt;
  return Refuse(403, "a page of another site asks (Sec-Fetch-Site: cross-site): refused");
}

// "<protocol> <received-by> (<comment>)". Without a comment it is taken for ours.
bool IsOurs(std::string_view element, const ClientPolicy& policy) {
  element = core::TrimAscii(element);
  const size_t space = element.find(' ');
  if (space == std::string_view::npos) return false;
  std::string_view rest = core::TrimAscii(element.substr(space));
  const size_t end = rest.find_first_of(" \t(");
  if (!core::EqualsIgnoreCase(rest.substr(0, end), kPseudonym)) return false;
  rest = end == std::string_view::npos ? "" : core::TrimAscii(rest.substr(end));
  return rest.empty() || rest == "(" + policy.via_id + ")";
}

std::optional<Refusal> CheckLoop(const Request& request, const ClientPolicy& policy) {
  const auto via = request.Find("Via");
  if (!via) return std::nullopt;
  const auto elements = core::Split(*via, ',');
  const bool ours = std::any_of(elements.begin(), elements.end(),
                                [&](std::string_view element) { return IsOurs(element, policy); });
  if (!ours) return std::nullopt;
  return Refuse(508, "the request has been through this node already (Via): a loop of proxies");
}

}  // namespace

std::optional<Refusal> CheckClient(const Request& request, Door door, const ClientPolicy& policy) {
  if (auto refusal = CheckMethod(request, door)) return refusal;
  if (auto refusal = CheckHost(request, policy)) return refusal;
  if (auto refusal = CheckSite(request)) return refusal;
  return CheckLoop(request, policy);
}

std::string ViaOf(const std::string& via_id) {
  return "1.1 " + std::string(kPseudonym) + " (" + via_id + ")";
}

}  // namespace dartfs::httpd
