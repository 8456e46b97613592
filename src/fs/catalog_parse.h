// One line of a catalogue (CATALOG.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dartfs::fs {

// Views are into the line.
struct CatalogLine {
  std::string_view path;  // components as file names, joined by '/'; empty: see `unescaped`
  std::string unescaped;  // the path, where that is not as written
  std::string_view url;
  std::optional<uint64_t> size;  // bytes
  std::string_view digest;       // as core::ParseDigest takes it; empty for none
};

// `line` without its end. nullopt: a comment or a blank line. kInvalidArgument: what is wrong and
// what would be right, without the place.
core::Result<std::optional<CatalogLine>> ParseCatalogLine(std::string_view line);

// The bytes of a line's digest: 32 of SHA-256, 64 of SHA-512, none of none.
std::string RawDigest(std::string_view digest);

}  // namespace dartfs::fs
