#include "fs/catalog_parse.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/digest.h"
#include "core/base/text.h"
#include "core/base/url.h"
#include "fs/catalog.h"
#include "fs/name_mapping.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;

constexpr size_t kMaxColumns = 4;
constexpr uint64_t kMaxSize = INT64_MAX;  // of a file (off_t)

core::Error Wrong(std::string context) {
  return MakeError(Code::kInvalidArgument, std::move(context));
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsAbsent(std::string_view column) { return column.empty() || column == "-"; }

// The byte that an escape stands for, -1 for none; moves `at` to its last character.
int Unescape(std::string_view text, size_t& at) {
  if (++at >= text.size()) return -1;
  switch (text[at]) {
    case '\\':
      return '\\';
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'x':
      break;
    default:
      return -1;
  }
  if (at + 2 >= text.size()) return -1;
  const int high = HexValue(text[at + 1]);
  const int low = HexValue(text[at + 2]);
  at += 2;
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Status CheckComponent(std::string_view name, std::string_view path) {
  const bool dots = name == "." || name == "..";
  if (!name.empty() && !dots && name.size() <= kMaxNameBytes) return {};
  const std::string where = "the path '" + EscapeForeign(path) + "' ";
  if (name.empty()) {
    return Wrong(where +
                 "has an empty component; write it without a '/' at its ends and without '//'");
  }
  if (dots) {
    return Wrong(where + "has the component '" + std::string(name) +
                 "'; write the path from the mount's root as it is to appear");
  }
  return Wrong(where + "has a component of " + std::to_string(name.size()) +
               " bytes; a name has at most " + std::to_string(kMaxNameBytes));
}

// A '/' or NUL out of an escape can't be part of a name.
Result<std::string> DecodePath(std::string_view path) {
  std::string decoded;
  for (size_t i = 0; i < path.size(); ++i) {
    int byte = static_cast<unsigned char>(path[i]);
    const bool escaped = byte == '\\';
    if (escaped) byte = Unescape(path, i);
    if (byte < 0) {
      return Wrong("the path '" + EscapeForeign(path) +
                   "' has a backslash that begins no escape; write \\\\, \\t, \\n, \\r or \\xHH");
    }
    if (byte == 0 || (escaped && byte == '/')) {
      return Wrong("the path '" + EscapeForeign(path) +
                   "' has a NUL or an escaped '/' in a name, which no file name can have");
    }
    decoded += static_cast<char>(byte);
  }
  return decoded;
}

Status CheckPath(std::string_view path, std::string_view column) {
  size_t depth = 0;
  for (size_t begin = 0; begin <= path.size(); ++depth) {
    const size_t end = std::min(path.find('/', begin), path.size());
    TRY(CheckComponent(path.substr(begin, end - begin), column));
    begin = end + 1;
  }
  if (depth > kMaxCatalogDepth) {
    return Wrong("the path '" + EscapeForeign(column) + "' has " + std::to_string(depth) +
                 " components; at most " + std::to_string(kMaxCatalogDepth) + " are taken");
  }
  return {};
}

Status CheckUrl(std::string_view column) {
  auto url = core::ParseUrl(column);
  if (!url) {
    return Wrong("the second column is not an http:// or https:// URL: " + url.error().context);
  }
  if (!url->userinfo.empty()) {
    return Wrong(core::RedactUrl(column) +
                 ": a login can't stand in a catalogue; leave out what is before the '@'");
  }
  return {};
}

Result<std::optional<uint64_t>> ParseSizeColumn(std::string_view column) {
  if (IsAbsent(column)) return std::optional<uint64_t>();
  const auto size = core::ParseUint(column);
  if (!size || *size > kMaxSize) {
    return Wrong("the third column is '" + EscapeForeign(column, 64) +
                 "'; write the size in bytes, as a decimal number, or '-' where it is not known");
  }
  return size;
}

Status CheckDigest(std::string_view column) {
  if (core::ParseDigest(column)) return {};
  return Wrong("the fourth column is '" + EscapeForeign(column, 160) +
               "'; write sha256: and 64 hex digits, sha512: and 128, or '-' for none");
}

// The columns of a line; false where there are too many.
bool SplitLine(std::string_view line, std::array<std::string_view, kMaxColumns>& columns) {
  for (std::string_view& column : columns) {
    const size_t end = std::min(line.find('\t'), line.size());
    column = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return line.find_first_not_of('\t') == std::string_view::npos;
}

}  // namespace

Result<std::optional<CatalogLine>> ParseCatalogLine(std::string_view line) {
  if (core::TrimAscii(line).empty() || line.front() == '#') return std::optional<CatalogLine>();
  std::array<std::string_view, kMaxColumns> columns;
  const bool fits = SplitLine(line, columns);
  const auto& [path, url, size, digest] = columns;
  if (url.empty()) {
    return Wrong("there is no URL; write path, tab, URL (and after further tabs size and digest)");
  }
  if (!fits) {
    return Wrong("there are more than four columns; a tab that belongs to a name is written \\t");
  }
  CatalogLine parsed;
  if (path.find_first_of(std::string_view("\\\0", 2)) == std::string_view::npos) {
    parsed.path = path;
  } else {
    TRY_ASSIGN(parsed.unescaped, DecodePath(path));
  }
  TRY(CheckPath(parsed.unescaped.empty() ? parsed.path : parsed.unescaped, path));
  TRY(CheckUrl(url));
  parsed.url = url;
  TRY_ASSIGN(parsed.size, ParseSizeColumn(size));
  if (!IsAbsent(digest)) {
    TRY(CheckDigest(digest));
    parsed.digest = digest;
  }
  return std::optional(std::move(parsed));
}

std::string RawDigest(std::string_view digest) {
  std::string raw;
  const size_t begin = std::min(digest.find(':'), digest.size());
  raw.reserve((digest.size() - begin) / 2);
  for (size_t i = begin + 1; i + 1 < digest.size(); i += 2) {
    raw += static_cast<char>(HexValue(digest[i]) * 16 + HexValue(digest[i + 1]));
  }
  return raw;
}

}  // namespace dartfs::fs
