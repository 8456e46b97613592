// File names and the bytes they mean on the wire (NAMES.md). Pure.
//
// A "segment" is one path segment as it goes over the wire, a "rest" what follows a directory's
// URL: path and query. Both hold only bytes 0x21 to 0x7E without '#'; a segment also no '/' and no
// '?'.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dartfs::fs {

inline constexpr size_t kMaxNameBytes = 255;       // of a name that is shown
inline constexpr size_t kMaxLongNameBytes = 1024;  // of a long name (Linux, FUSE_NAME_MAX)

struct WireName {
  std::string rest;
  bool always_file = false;  // a long name: may hold '/' and '?'
  bool operator==(const WireName&) const = default;
};

bool IsSegment(std::string_view text);
bool IsRest(std::string_view text);
// A file name that the kernel may have: not empty, ".", "..", no NUL, no '/', at most
// kMaxLongNameBytes.
bool IsFileName(std::string_view name);
// Longer than a name of its kind can be: a long one than kMaxLongNameBytes, all others than
// kMaxNameBytes.
bool IsOverlong(std::string_view name);

// The name of a segment: plain, else escaped, else digested. Requires IsSegment. Injective.
std::string SegmentToName(std::string_view segment);
// The name of a rest: as above where it is a segment, else the long name; nullopt when that is
// longer than kMaxLongNameBytes. Requires IsRest.
std::optional<std::string> RestToName(std::string_view rest);

// What a name means. kNotFound: it is no name of anything (not a file name, badly escaped, out of
// the directory), or a digested one, which only a listing can tell.
core::Result<WireName> NameToWire(std::string_view name);
bool IsDigestedName(std::string_view name);

// The decoded segment, where a listing may show it under that name although NameToWire(name) is
// another spelling (NAMES.md, "Names in a listing"). Requires IsSegment.
std::optional<std::string> FairName(std::string_view segment);

// True when the path of `rest` leads out of the directory it is appended to, by dot segments in any
// spelling.
bool LeavesDirectory(std::string_view rest);

// A path for people: foreign bytes escaped, and each component without the query that it may spell
// (NAMES.md: a '?' of a URL is `%3F` in its name), where signatures and tokens are.
std::string ShownPath(std::string_view path);

}  // namespace dartfs::fs
