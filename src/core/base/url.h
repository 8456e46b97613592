// URLs of origins: parsed without changing a byte of what goes over the wire. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dartfs::core {

inline constexpr size_t kMaxUrlBytes = 16 * 1024;

// A login, percent-decoded: any bytes. For an Authorization header only, never for a log.
struct Credentials {
  std::string user;
  std::string password;
  bool operator==(const Credentials&) const = default;
};

// The parts of an http or https URL (RFC 3986 section 3). Made by ParseUrl or ResolveReference,
// which hold what is said of each part; the path is never normalised ("//", "..", "%2F" stay), so
// whoever sends it must switch off such cleaning in his client. The fragment is dropped.
struct Url {
  std::string scheme;                // "http" or "https"
  std::string host;                  // lower case; an IPv6 address with its brackets
  std::string port;                  // one to five digits as written, 1 to 65535; empty when absent
  std::string userinfo;              // as written, without the '@'; empty when absent
  std::string path;                  // as it goes over the wire; begins with '/'
  std::optional<std::string> query;  // as written, without the '?'; "" for a lone '?'

  bool operator==(const Url&) const = default;

  // The port that is connected to.
  uint16_t EffectivePort() const;
  bool HasDefaultPort() const;
  // "scheme://host:port", the port always there and without leading zeros: the one key of
  // per-origin state and trust.
  std::string Authority() const;
  // "host", followed by ":port" as written unless that is the scheme's default: a Host header
  // field.
  std::string HostPort() const;
  // What is sent to the origin: "path?query".
  std::string RequestTarget() const;
  // The whole URL without userinfo, port as written. ParseUrl gives back the same parts.
  std::string ToString() const;
  // The login in the userinfo; nullopt when that is absent or empty. Without a ':' the password is
  // empty.
  std::optional<Credentials> Login() const;
};

// kInvalidArgument, with a reason that quotes no query and no login, unless `text` is an absolute
// http or https URL of at most kMaxUrlBytes bytes, all of them 0x21 to 0x7E, with a host that is an
// IPv6 address in brackets or letters, digits, '-', '.', '_', and a userinfo and port as RFC 3986
// has them. An unescaped '@' in the userinfo is accepted: the last one ends it. An empty port is
// absent, an empty path is "/". Percent-escapes in path and query are not looked at.
Result<Url> ParseUrl(std::string_view text);

// The target of a Location header or an href seen in `base` (RFC 3986 section 5.2, strict): bytes
// are kept, dot segments removed. A reference without an authority keeps the base's userinfo, one
// with an authority has only its own. Foreign bytes (spaces, UTF-8) are errors as in ParseUrl: run
// PercentEncode(reference, UrlSet::kUrl) first where they should be accepted.
Result<Url> ResolveReference(const Url& base, std::string_view reference);

// The bytes that PercentEncode leaves alone.
enum class UrlSet {
  kUrl,         // 0x21 to 0x7E ('%' too: escapes stay as they are)
  kPath,        // RFC 3986 pchar without '%', and '/'
  kSegment,     // RFC 3986 pchar without '%'
  kUnreserved,  // letters, digits, "-._~": also right for a query's names and values
};
// All other bytes become %XX, upper-case.
std::string PercentEncode(std::string_view bytes, UrlSet keep);

// Each %XX (any case) becomes its byte; '+' stays. nullopt where a '%' is not followed by two hex
// digits.
std::optional<std::string> PercentDecode(std::string_view text);

}  // namespace dartfs::core
