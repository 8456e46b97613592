// Directory listings in the formats that real servers write. Pure functions, but for RenderS3's
// look into directories.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "origin/behaviour.h"
#include "origin/content.h"

namespace dartfs::origin {

struct Listing {
  std::string body;
  std::string content_type;
};

// `path` is the directory's URL path with its final slash. Not for kS3 and kNone.
Listing RenderIndex(IndexFormat format, std::string_view path,
                    const std::vector<DirectoryEntry>& entries);

// S3's ListObjectsV2 for the "bucket" at directory `path`: prefix, delimiter (none or "/"),
// max-keys, start-after, continuation-token and encoding-type are taken from `query`. Keys are
// relative to `path`, sorted by their bytes.
Listing RenderS3(const Content& content, std::string_view path, std::string_view query);

// S3's error document.
Listing RenderS3Error(std::string_view code, std::string_view path);

}  // namespace dartfs::origin
