#include "core/io/origin_policy.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"

namespace dartfs::core {

namespace {

constexpr size_t kMaxRuleBytes = 512;

Error NotARule(std::string_view text) {
  return MakeError(Code::kInvalidArgument,
                   "'" + EscapeForeign(text, 80) +
                       "' is no rule for origins; write host, host:port, *.domain, *:port, an "
                       "address or block (10.0.0.0/8, fd00::/8), or one with a port "
                       "(10.0.0.0/8:80, [fd00::/8]:443)");
}

std::optional<uint16_t> ParsePort(std::string_view text) {
  const auto port = ParseUint(text);
  if (!port || *port == 0 || *port > UINT16_MAX) return std::nullopt;
  return static_cast<uint16_t>(*port);
}

std::string_view WithoutRootDot(std::string_view host) {
  if (host.size() > 1 && host.back() == '.') host.remove_suffix(1);
  return host;
}

bool IsHostName(std::string_view name) {
  const auto labels = Split(name, '.');
  return std::all_of(labels.begin(), labels.end(), [](std::string_view label) {
    return !label.empty() && std::all_of(label.begin(), label.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    });
  });
}

// A rule's text without its port.
Result<OriginRule> ParsePlace(std::string_view place, std::string_view whole) {
  OriginRule rule;
  if (auto block = ParseCidr(place)) {
    rule.addresses = *block;
    return rule;
  }
  // "0x7f.1" and the like: a URL's host may be written so as well.
  if (const auto address = ParseIpLiteral(place); address && !place.starts_with('[')) {
    rule.addresses = Cidr{*address, 128};
    return rule;
  }
  rule.host = ToLowerAscii(WithoutRootDot(place));
  const bool below = rule.host.starts_with("*.");
  if (!IsHostName(std::string_view(rule.host).substr(below ? 2 : 0))) return NotARule(whole);
  return rule;
}

bool PortMatches(const OriginRule& rule, const Url& url) {
  return !rule.port || *rule.port == url.EffectivePort();
}

// A rule for names; of the host of a URL that is a name.
bool NameMatches(const OriginRule& rule, std::string_view host) {
  if (!rule.host.starts_with("*.")) return rule.host == host;
  const std::string_view tail = std::string_view(rule.host).substr(1);
  return host.size() > tail.size() && host.ends_with(tail);
}

struct Target {
  const Url& url;
  std::string_view name;             // lower case, no root dot
  std::optional<IpAddress> literal;  // where the host is one

  explicit Target(const Url& u)
      : url(u), name(WithoutRootDot(u.host)), literal(ParseIpLiteral(u.host)) {}
};

enum class Match : uint8_t { kNo, kAnyHost, kNamed };

Match MatchHost(const OriginRule& rule, const Target& target) {
  if (!PortMatches(rule, target.url)) return Match::kNo;
  if (rule.addresses) {
    return target.literal && rule.addresses->Contains(*target.literal) ? Match::kNamed : Match::kNo;
  }
  if (rule.host.empty()) return Match::kAnyHost;
  return !target.literal && NameMatches(rule, target.name) ? Match::kNamed : Match::kNo;
}

bool AnyMatches(const std::vector<OriginRule>& rules, const Target& target, Match least) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const OriginRule& rule) { return MatchHost(rule, target) >= least; });
}

bool AnyContains(const std::vector<OriginRule>& rules, const Url& url, const IpAddress& address) {
  return std::any_of(rules.begin(), rules.end(), [&](const OriginRule& rule) {
    return rule.addresses && PortMatches(rule, url) && rule.addresses->Contains(address);
  });
}

std::vector<Cidr> Blocks(const std::vector<OriginRule>& rules, const Url& url) {
  std::vector<Cidr> blocks;
  for (const OriginRule& rule : rules) {
    if (rule.addresses && PortMatches(rule, url)) blocks.push_back(*rule.addresses);
  }
  return blocks;
}

std::string PlaceOf(const Url& url) { return url.host + ':' + std::to_string(url.EffectivePort()); }

Error Denied(const std::string& place) {
  return MakeError(Code::kRefused, place + " is denied by --origin-deny");
}

Error NotAllowed(const std::string& place) {
  return MakeError(Code::kRefused, place + " is not among the origins of --origin-allow");
}

}  // namespace

Result<OriginRule> ParseOriginRule(std::string_view text) {
  if (text.size() > kMaxRuleBytes) return NotARule(text);
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return NotARule(text);
    const auto block = ParseCidr(text.substr(1, end - 1));
    const std::string_view rest = text.substr(end + 1);
    if (!block || (!rest.empty() && rest[0] != ':')) return NotARule(text);
    OriginRule rule;
    rule.addresses = *block;
    if (rest.empty()) return rule;
    rule.port = ParsePort(rest.substr(1));
    return rule.port ? Result<OriginRule>(rule) : NotARule(text);
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || ParseCidr(text)) return ParsePlace(text, text);
  const auto port = ParsePort(text.substr(colon + 1));
  const std::string_view place = text.substr(0, colon);
  // A bare IPv6 address with a port could be an address as well.
  if (!port || place.find(':') != std::string_view::npos) return NotARule(text);
  OriginRule rule;
  if (place != "*") {
    TRY_ASSIGN(rule, ParsePlace(place, text));
  }
  rule.port = port;
  return rule;
}

Status OriginPolicy::CheckUrl(const Url& url) const {
  const Target target(url);
  if (AnyMatches(deny, target, Match::kAnyHost)) return Denied(PlaceOf(url));
  if (target.literal) return CheckAddress(url, *target.literal);
  if (allow.empty() || AnyMatches(allow, target, Match::kAnyHost)) return {};
  // Its address may still be an allowed one.
  return Blocks(allow, url).empty() ? Status(NotAllowed(PlaceOf(url))) : Status();
}

Status OriginPolicy::CheckUrlByProxy(const Url& url, bool untrusted) const {
  const Target target(url);
  if (AnyMatches(deny, target, Match::kAnyHost)) return Denied(PlaceOf(url));
  if (target.literal) TRY(CheckAddress(url, *target.literal));
  if (AnyMatches(allow, target, untrusted ? Match::kNamed : Match::kAnyHost)) return {};
  if (!untrusted && allow.empty()) return {};
  return MakeError(Code::kRefused,
                   PlaceOf(url) + " would be asked through the proxy of the environment, and no " +
                       "rule of --origin-allow names it: add one, or except the host in no_proxy");
}

Status OriginPolicy::CheckAddress(const Url& url, const IpAddress& address) const {
  AddressPolicyOptions options;
  options.allow_link_local = allow_link_local;
  options.deny = Blocks(deny, url);
  options.allow = Blocks(allow, url);
  if (Status verdict = AddressPolicy(std::move(options)).Check(address); !verdict) return verdict;
  const Target target(url);
  if (allow.empty() || AnyMatches(allow, target, Match::kAnyHost) ||
      AnyContains(allow, url, address)) {
    return {};
  }
  std::string place = PlaceOf(url);
  if (!target.literal) place += " (address " + address.ToString() + ")";
  return NotAllowed(place);
}

Status OriginPolicy::CheckProxyAddress(const IpAddress& address) const {
  AddressPolicyOptions options;
  options.allow_link_local = allow_link_local;
  return AddressPolicy(std::move(options)).Check(address);
}

}  // namespace dartfs::core
