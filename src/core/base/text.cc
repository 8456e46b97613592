#include "core/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace dartfs::core {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Whether what follows a host's colon can be its port. If not, the colon may be a user name's and
// what follows a password with a delimiter in it.
bool HasOddPort(std::string_view authority) {
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon == std::string_view::npos) return false;
  const std::string_view port = authority.substr(colon + 1);
  return port.empty() || !std::all_of(port.begin(), port.end(), IsDigit);
}

// `rest` begins with an authority. nullopt: it may hold a password, but not where one belongs.
std::optional<std::string_view> WithoutUserinfo(std::string_view rest) {
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const size_t at = authority.rfind('@');
  if (at != std::string_view::npos) return rest.substr(at + 1);
  if (HasOddPort(authority) && rest.find('@') != std::string_view::npos) return std::nullopt;
  return rest;
}

// Where the next "scheme://authority" before the query has its authority, or npos.
size_t NextAuthority(std::string_view text) {
  const size_t separator = text.find("://");
  return separator < text.find_first_of("?#") ? separator + 3 : std::string_view::npos;
}

size_t FirstAuthority(std::string_view text) {
  if (text.starts_with("//")) return 2;
  const bool has_scheme = text.find("://") < text.find_first_of("/?#");
  return has_scheme || text.starts_with('/') ? NextAuthority(text) : 0;
}

struct NumberAndUnit {
  uint64_t number;
  std::string_view unit;
};

std::optional<NumberAndUnit> ParseNumberAndUnit(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const auto digits = static_cast<size_t>(end - text.begin());
  const auto number = ParseUint(text.substr(0, digits));
  if (!number) return std::nullopt;
  return NumberAndUnit{*number, text.substr(digits)};
}

// Bytes in a unit as ParseSize takes it; 0 for none.
uint64_t UnitBytes(std::string_view unit) {
  if (unit.empty() || EqualsIgnoreCase(unit, "b")) return 1;
  constexpr std::string_view kPrefixes = "kmgtpe";
  const size_t exponent = kPrefixes.find(LowerAscii(unit.front()));
  if (exponent == std::string_view::npos) return 0;
  const std::string_view suffix = unit.substr(1);
  const bool decimal = EqualsIgnoreCase(suffix, "b");
  if (!decimal && !suffix.empty() && !EqualsIgnoreCase(suffix, "ib")) return 0;
  uint64_t bytes = 1;
  for (size_t i = 0; i <= exponent; ++i) bytes *= decimal ? 1000 : 1024;
  return bytes;
}

}  // namespace

std::string EscapeForeign(std::string_view text, size_t max_bytes) {
  std::string escaped;
  for (const char c : text.substr(0, max_bytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      escaped += "\\\\";
    } else if (byte >= 0x20 && byte <= 0x7e) {
      escaped += c;
    } else {
      escaped += "\\x";
      escaped += kHexDigits[byte >> 4];
      escaped += kHexDigits[byte & 15];
    }
  }
  if (text.size() > max_bytes) escaped += "...";
  return escaped;
}

std::string RedactUrl(std::string_view url) {
  constexpr size_t kMaxShown = 512;
  std::string kept;
  std::string_view rest = url;
  size_t authority = FirstAuthority(rest);
  // What lies beyond the limit is not shown, so that a foreign text's length costs no squares.
  while (authority != std::string_view::npos && kept.size() <= kMaxShown) {
    kept += rest.substr(0, authority);
    const auto shown = WithoutUserinfo(rest.substr(authority));
    if (!shown) return EscapeForeign(kept + "...", kMaxShown);
    rest = *shown;
    authority = NextAuthority(rest);
  }
  kept += rest.substr(0, rest.find_first_of("?#"));
  return EscapeForeign(kept, kMaxShown);
}

std::string ToLowerAscii(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerAscii);
  return lower;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return LowerAscii(x) == LowerAscii(y);
         });
}

std::string_view TrimAscii(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string HexEncode(std::span<const std::byte> bytes) {
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    hex += kHexDigits[std::to_integer<unsigned>(b >> 4)];
    hex += kHexDigits[std::to_integer<unsigned>(b & std::byte{15})];
  }
  return hex;
}

bool IsHex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return IsDigit(c) || (LowerAscii(c) >= 'a' && LowerAscii(c) <= 'f');
  });
}

void AppendNumber(uint64_t number, std::string* text) {
  std::array<char, std::numeric_limits<uint64_t>::digits10 + 1> digits;  // NOLINT: not read unset
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text->append(digits.data(), static_cast<size_t>(end - digits.data()));
}

std::optional<uint64_t> ParseUint(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::optional<uint64_t> ParseSize(std::string_view text) {
  const auto parsed = ParseNumberAndUnit(text);
  if (!parsed) return std::nullopt;
  const uint64_t unit = UnitBytes(parsed->unit);
  if (unit == 0 || parsed->number > UINT64_MAX / unit) return std::nullopt;
  return parsed->number * unit;
}

std::string FormatSize(uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                      "TiB", "PiB", "EiB"};
  uint64_t tenths = 0;
  size_t exponent = 0;
  for (uint64_t unit = 1;; unit *= 1024, ++exponent) {
    tenths = bytes / unit * 10 + (bytes % unit * 10 + unit / 2) / unit;
    // Compared after rounding, so that 1024 KiB less a byte is 1 MiB.
    if (tenths < 1024 * 10 || exponent + 1 == kUnits.size()) break;
  }
  if (tenths % 10 == 0) return fmt::format("{} {}", tenths / 10, kUnits[exponent]);
  return fmt::format("{}.{} {}", tenths / 10, tenths % 10, kUnits[exponent]);
}

std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  constexpr uint64_t kMaxMillis = uint64_t{100} * 365 * 24 * 3600 * 1000;
  const auto parsed = ParseNumberAndUnit(text);
  if (!parsed) return std::nullopt;
  uint64_t unit_ms = 0;
  if (parsed->unit == "ms") unit_ms = 1;
  if (parsed->unit == "s" || parsed->unit.empty()) unit_ms = 1000;
  if (parsed->unit == "m") unit_ms = 60 * 1000;
  if (parsed->unit == "h") unit_ms = 3600 * 1000;
  if (unit_ms == 0 || parsed->number > kMaxMillis / unit_ms) return std::nullopt;
  return std::chrono::milliseconds(parsed->number * unit_ms);
}

}  // namespace dartfs::core
