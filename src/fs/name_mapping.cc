#include "fs/name_mapping.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/base/url.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::PercentDecode;
using core::PercentEncode;
using core::Result;
using core::UrlSet;

constexpr std::string_view kEscaped = "%=";
constexpr std::string_view kDigested = "%~";
constexpr size_t kDigestDigits = 32;
constexpr size_t kMaxTail = 64;  // of the segment's end in a digested name

bool IsWireByte(char c) { return c >= 0x21 && c <= 0x7E && c != '#'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlnum(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// Bytes that no server has a reason to escape. '~' is not one of them: RFC 1738 had it so.
bool IsNeverEscaped(char c) { return IsAlnum(c) || c == '-' || c == '.' || c == '_'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte that "%XX" at `at` stands for, -1 where there is none.
int EscapeAt(std::string_view text, size_t at) {
  if (text[at] != '%' || at + 2 >= text.size()) return -1;
  const int high = HexValue(text[at + 1]);
  const int low = HexValue(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool IsLong(std::string_view name) {
  for (size_t i = 0; i < name.size(); ++i) {
    const int byte = EscapeAt(name, i);
    if (byte == '/' || byte == '?') return true;
  }
  return false;
}

// A name that the plain rule governs.
bool IsPlain(std::string_view name) {
  return IsFileName(name) && name.size() <= kMaxNameBytes && !name.starts_with(kEscaped) &&
         !name.starts_with(kDigested) && !IsLong(name);
}

std::string ReplaceAll(std::string_view text, char from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == from) {
      out += to;
    } else {
      out += c;
    }
  }
  return out;
}

std::string DigestedName(std::string_view segment) {
  std::string name(kDigested);
  name += core::HexEncode(core::Sha256(segment)).substr(0, kDigestDigits);
  size_t tail = segment.size();
  while (tail > 0 && segment.size() - tail < kMaxTail && IsNeverEscaped(segment[tail - 1])) --tail;
  name += segment.substr(tail);
  return name;
}

core::Error NoSuchName(std::string_view name) {
  return MakeError(Code::kNotFound, "'" + EscapeForeign(name) + "' is not the name of any URL");
}

Result<WireName> FromEscaped(std::string_view name) {
  std::string segment;
  for (size_t i = kEscaped.size(); i < name.size(); ++i) {
    segment += name[i];
    if (name[i] != '%') continue;
    if (EscapeAt(name, i) != '%') return NoSuchName(name);
    i += 2;
  }
  if (!IsSegment(segment) || SegmentToName(segment) != name) return NoSuchName(name);
  return WireName{std::move(segment), false};
}

// Decoded once; a '%' that begins no escape stays.
std::string DecodeLeniently(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const int byte = EscapeAt(text, i);
    decoded += byte < 0 ? text[i] : static_cast<char>(byte);
    if (byte >= 0) i += 2;
  }
  return decoded;
}

WireName FromLong(std::string_view name) {
  const std::string decoded = DecodeLeniently(name);
  return WireName{ReplaceAll(PercentEncode(decoded, UrlSet::kUrl), '#', "%23"), true};
}

// Empty segments count for nothing: some servers drop them before they look at dot segments.
bool ClimbsOut(const std::vector<std::string>& decoded_segments) {
  size_t depth = 0;
  for (const std::string& segment : decoded_segments) {
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      ++depth;
    } else if (depth-- == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool IsSegment(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsWireByte(c) && c != '/' && c != '?'; });
}

bool IsRest(std::string_view text) { return std::all_of(text.begin(), text.end(), IsWireByte); }

bool IsFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= kMaxLongNameBytes &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

bool IsOverlong(std::string_view name) {
  return name.size() > kMaxLongNameBytes || (name.size() > kMaxNameBytes && !IsLong(name));
}

std::string SegmentToName(std::string_view segment) {
  DARTFS_CHECK(IsSegment(segment));
  auto plain = PercentDecode(segment);
  if (plain && IsPlain(*plain) && PercentEncode(*plain, UrlSet::kSegment) == segment) {
    return std::move(*plain);
  }
  std::string escaped(kEscaped);
  escaped += ReplaceAll(segment, '%', "%25");
  return escaped.size() <= kMaxNameBytes ? escaped : DigestedName(segment);
}

std::optional<std::string> RestToName(std::string_view rest) {
  DARTFS_CHECK(IsRest(rest));
  if (IsSegment(rest)) return SegmentToName(rest);
  std::string name = ReplaceAll(rest, '%', "%25");
  name = ReplaceAll(ReplaceAll(name, '/', "%2F"), '?', "%3F");
  if (name.size() > kMaxLongNameBytes) return std::nullopt;
  return name;
}

Result<WireName> NameToWire(std::string_view name) {
  if (!IsFileName(name) || IsDigestedName(name)) return NoSuchName(name);
  if (name.starts_with(kEscaped)) {
    TRY_ASSIGN(WireName wire, FromEscaped(name));
    return LeavesDirectory(wire.rest) ? Result<WireName>(NoSuchName(name)) : std::move(wire);
  }
  if (IsLong(name)) {
    WireName wire = FromLong(name);
    return LeavesDirectory(wire.rest) ? Result<WireName>(NoSuchName(name)) : std::move(wire);
  }
  if (!IsPlain(name)) return NoSuchName(name);
  return WireName{PercentEncode(name, UrlSet::kSegment), false};
}

bool IsDigestedName(std::string_view name) { return name.starts_with(kDigested); }

std::optional<std::string> FairName(std::string_view segment) {
  DARTFS_CHECK(IsSegment(segment));
  auto name = PercentDecode(segment);
  if (!name || !IsPlain(*name)) return std::nullopt;
  for (size_t i = 0; i < segment.size(); ++i) {
    const int byte = EscapeAt(segment, i);
    if (byte >= 0 && IsNeverEscaped(static_cast<char>(byte))) return std::nullopt;
  }
  return name;
}

bool LeavesDirectory(std::string_view rest) {
  const std::string_view path = rest.substr(0, rest.find('?'));
  std::vector<std::string> segments;
  for (const std::string_view segment : core::Split(path, '/')) {
    segments.push_back(DecodeLeniently(segment));
  }
  if (ClimbsOut(segments)) return true;
  // Origins differ in whether %2F separates segments.
  const std::string decoded = DecodeLeniently(path);
  const auto split = core::Split(decoded, '/');
  return ClimbsOut({split.begin(), split.end()});
}

std::string ShownPath(std::string_view path) {
  std::string shown;
  const char* separator = "";
  for (const std::string_view part : core::Split(path, '/')) {
    size_t end = part.find('?');
    for (const std::string_view mark : {"%3F", "%3f"}) end = std::min(end, part.find(mark));
    shown.append(separator).append(part.substr(0, end));
    separator = "/";
  }
  return core::EscapeForeign(shown);
}

}  // namespace dartfs::fs
