// Directory listings as origins write them: HTML indexes (nginx, Apache, Python's http.server, and
// any other page of links), nginx's JSON, S3's ListObjectsV2. Pure; foreign input, bounded in size,
// number of entries and depth; no network, no DTD, no entities beyond the built-in ones.
//
// Only direct children of the page's own directory, on its own origin, come out of it; no parent,
// no query, nothing twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/url.h"
#include "fs/namespace.h"

namespace dartfs::fs {

inline constexpr size_t kMaxListingBytes = size_t{16} << 20;
inline constexpr size_t kMaxListingEntries = 200'000;

enum class ListingFormat : uint8_t { kHtml, kJson, kS3 };

// One entry as the listing states it.
struct ListedChild {
  std::string segment;  // as it goes over the wire, without a trailing '/'
  EntryKind kind = EntryKind::kFile;
  std::optional<uint64_t> size;  // exact bytes only: JSON and S3
  std::optional<int64_t> mtime;  // seconds since the epoch: JSON and S3
  bool operator==(const ListedChild&) const = default;
};

struct ParsedListing {
  ListingFormat format = ListingFormat::kHtml;
  // What the server made of a directory; false: a page that may name only some of what is there.
  bool index = false;
  bool cut = false;                   // at kMaxListingEntries, or where the page nests too deep
  std::vector<ListedChild> children;  // in the listing's order; may hold a segment twice
  std::string s3_prefix;              // as the answer repeats it, decoded
  std::string s3_next;                // token for the next page, empty when this is the last
};

// `url` is where the body came from, after redirects: links are resolved against it. kUnsupported:
// not of a type that a listing has. kBadResponse: of such a type, but broken. kTooLarge: beyond
// kMaxListingBytes (an HTML page may be cut there before).
core::Result<ParsedListing> ParseListing(std::string_view content_type, std::string_view body,
                                         const core::Url& url);

// Whether ParseListing could make something of a body of this type.
bool MayBeListing(std::string_view content_type);

// Whether the body is an S3 error document, as a bucket answers for a key that is not there.
bool IsS3Error(std::string_view body);

// A child with its name (NAMES.md, "Names in a listing").
struct NamedChild {
  ListedEntry entry;
  std::string segment;
  bool operator==(const NamedChild& other) const;
};

// Sorted by name, unique in name and segment; of a file and a directory of one segment the
// directory.
std::vector<NamedChild> NameChildren(std::vector<ListedChild> children);

}  // namespace dartfs::fs
