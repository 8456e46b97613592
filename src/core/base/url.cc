#include "core/base/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/text.h"

namespace dartfs::core {
namespace {

constexpr std::string_view kSchemeEnd = "://";
constexpr size_t kMaxHostBytes = 253;  // of a DNS name
constexpr size_t kMaxPortDigits = 5;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsAlnum(char c) { return IsDigit(c) || IsAlpha(c); }
bool IsOneOf(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }
bool IsUrlByte(char c) { return c >= 0x21 && c <= 0x7E; }
bool IsUnreserved(char c) { return IsAlnum(c) || IsOneOf(c, "-._~"); }
bool IsSubDelim(char c) { return IsOneOf(c, "!$&'()*+,;="); }
bool IsSegmentByte(char c) { return IsUnreserved(c) || IsSubDelim(c) || c == ':' || c == '@'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Error Invalid(std::string_view url, const std::string& reason) {
  return MakeError(Code::kInvalidArgument, "bad URL '" + RedactUrl(url) + "': " + reason);
}

Status CheckBytes(std::string_view text) {
  if (text.size() > kMaxUrlBytes) {
    return MakeError(Code::kInvalidArgument,
                     "bad URL: longer than " + std::to_string(kMaxUrlBytes) + " bytes");
  }
  const auto bad = std::find_if_not(text.begin(), text.end(), IsUrlByte);
  if (bad == text.end()) return {};
  return Invalid(text, "byte " + std::to_string(bad - text.begin()) +
                           " is a space, a control character or not ASCII; percent-encode it");
}

// The length of "scheme" where the text begins with "scheme:" (RFC 3986 section 3.1), else 0.
size_t SchemeLength(std::string_view text) {
  if (text.empty() || !IsAlpha(text[0])) return 0;
  size_t end = 1;
  while (end < text.size() && (IsAlnum(text[end]) || IsOneOf(text[end], "+-."))) ++end;
  return end < text.size() && text[end] == ':' ? end : 0;
}

bool IsUserinfo(std::string_view text) {
  return PercentDecode(text).has_value() &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsSegmentByte(c) || c == '%'; });
}

bool IsIpv6Literal(std::string_view host) {
  if (host.size() < 2 || host.front() != '[' || host.back() != ']') return false;
  in6_addr address;
  return inet_pton(AF_INET6, std::string(host.substr(1, host.size() - 2)).c_str(), &address) == 1;
}

bool IsHost(std::string_view host) {
  if (host.empty() || host.size() > kMaxHostBytes) return false;
  if (host.front() == '[') return IsIpv6Literal(host);
  return std::all_of(host.begin(), host.end(),
                     [](char c) { return IsAlnum(c) || IsOneOf(c, "-._"); });
}

bool IsPort(std::string_view port) {
  if (port.size() > kMaxPortDigits) return false;
  const auto number = ParseUint(port);
  return number && *number >= 1 && *number <= 65535;
}

// Splits "userinfo@host:port" into `url`; `whole` is for the error text.
Status ParseAuthority(std::string_view authority, std::string_view whole, Url& url) {
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    url.userinfo = authority.substr(0, at);
    authority.remove_prefix(at + 1);
    if (!IsUserinfo(url.userinfo)) {
      return Invalid(whole, "the login before '@' holds characters that must be percent-encoded");
    }
  }
  const size_t host_end = authority.find(':', authority.starts_with('[') ? authority.find(']') : 0);
  const std::string_view host = authority.substr(0, host_end);
  if (host.empty()) return Invalid(whole, "it has no host");
  if (!IsHost(host)) return Invalid(whole, "its host is neither a name nor an address");
  url.host = ToLowerAscii(host);
  if (host_end == std::string_view::npos || host_end + 1 == authority.size()) return {};
  url.port = authority.substr(host_end + 1);
  if (!IsPort(url.port)) return Invalid(whole, "its port is not a number from 1 to 65535");
  return {};
}

// Drops the last segment and the '/' before it.
void DropLastSegment(std::string& path) {
  const size_t slash = path.rfind('/');
  path.resize(slash == std::string::npos ? 0 : slash);
}

// RFC 3986 section 5.2.4, for a path that begins with '/'.
std::string RemoveDotSegments(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(0, end);
    const bool last = end == path.size();
    path.remove_prefix(end);
    if (segment == "/..") DropLastSegment(out);
    if (segment != "/." && segment != "/..") {
      out += segment;
    } else if (last) {
      out += '/';
    }
  }
  return out;
}

// RFC 3986 section 5.2.3; every Url has an authority and a path that begins with '/'.
std::string MergePaths(std::string_view base_path, std::string_view reference_path) {
  std::string merged(base_path.substr(0, base_path.rfind('/') + 1));
  merged += reference_path;
  return merged;
}

// Sets the path and query of a reference that has neither scheme nor authority.
void ResolvePath(const Url& base, std::string_view reference, Url& target) {
  const size_t question = reference.find('?');
  const std::string_view path = reference.substr(0, question);
  if (question != std::string_view::npos) target.query = reference.substr(question + 1);
  if (path.empty()) {
    target.path = base.path;
    if (question == std::string_view::npos) target.query = base.query;
    return;
  }
  target.path =
      RemoveDotSegments(path.front() == '/' ? std::string(path) : MergePaths(base.path, path));
}

bool KeepsByte(UrlSet keep, char c) {
  switch (keep) {
    case UrlSet::kUrl:
      return IsUrlByte(c);
    case UrlSet::kPath:
      return IsSegmentByte(c) || c == '/';
    case UrlSet::kSegment:
      return IsSegmentByte(c);
    case UrlSet::kUnreserved:
      return IsUnreserved(c);
  }
  return false;
}

}  // namespace

uint16_t Url::EffectivePort() const {
  if (port.empty()) return scheme == "https" ? 443 : 80;
  const auto number = ParseUint(port);
  DARTFS_CHECK(number && *number >= 1 && *number <= 65535);
  return static_cast<uint16_t>(*number);
}

bool Url::HasDefaultPort() const { return EffectivePort() == (scheme == "https" ? 443 : 80); }

std::string Url::Authority() const {
  return scheme + "://" + host + ":" + std::to_string(EffectivePort());
}

std::string Url::HostPort() const { return HasDefaultPort() ? host : host + ":" + port; }

std::string Url::RequestTarget() const { return query ? path + "?" + *query : path; }

std::string Url::ToString() const {
  std::string text = scheme + "://" + host;
  if (!port.empty()) text += ":" + port;
  return text + RequestTarget();
}

std::optional<Credentials> Url::Login() const {
  if (userinfo.empty()) return std::nullopt;
  const std::string_view text = userinfo;
  const size_t colon = text.find(':');
  auto user = PercentDecode(text.substr(0, colon));
  auto password = PercentDecode(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  DARTFS_CHECK(user && password);
  return Credentials{std::move(*user), std::move(*password)};
}

Result<Url> ParseUrl(std::string_view text) {
  TRY(CheckBytes(text));
  const std::string_view whole = text;
  Url url;
  const size_t scheme_length = SchemeLength(text);
  url.scheme = ToLowerAscii(text.substr(0, scheme_length));
  text.remove_prefix(scheme_length);
  if (scheme_length == 0 || !text.starts_with(kSchemeEnd)) {
    return Invalid(whole, "it does not begin with http:// or https://");
  }
  if (url.scheme != "http" && url.scheme != "https") {
    return Invalid(whole, "only http and https are supported");
  }
  text = text.substr(kSchemeEnd.size());
  text = text.substr(0, text.find('#'));
  const size_t authority_end = std::min(text.find_first_of("/?"), text.size());
  TRY(ParseAuthority(text.substr(0, authority_end), whole, url));
  text.remove_prefix(authority_end);
  const size_t question = text.find('?');
  url.path = text.substr(0, question);
  if (url.path.empty()) url.path = "/";
  if (question != std::string_view::npos) url.query = text.substr(question + 1);
  return url;
}

Result<Url> ResolveReference(const Url& base, std::string_view reference) {
  TRY(CheckBytes(reference));
  reference = reference.substr(0, reference.find('#'));
  Url target;
  if (SchemeLength(reference) != 0) {
    TRY_ASSIGN(target, ParseUrl(reference));
    target.path = RemoveDotSegments(target.path);
  } else if (reference.starts_with("//")) {
    TRY_ASSIGN(target, ParseUrl(base.scheme + ":" + std::string(reference)));
    target.path = RemoveDotSegments(target.path);
  } else {
    target = base;
    target.query.reset();
    ResolvePath(base, reference, target);
  }
  if (target.userinfo.size() + 1 + target.ToString().size() > kMaxUrlBytes) {
    return Invalid(target.ToString(), "longer than " + std::to_string(kMaxUrlBytes) + " bytes");
  }
  return target;
}

std::string PercentEncode(std::string_view bytes, UrlSet keep) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(bytes.size());
  for (const char c : bytes) {
    if (KeepsByte(keep, c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace dartfs::core
