// The parsers behind ParseListing, one for each format. Inputs are at most kMaxListingBytes.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/base/url.h"
#include "fs/listing.h"

namespace dartfs::fs {

core::Result<ParsedListing> ParseHtmlListing(std::string_view body, const core::Url& url);
core::Result<ParsedListing> ParseJsonListing(std::string_view body);
core::Result<ParsedListing> ParseS3Listing(std::string_view body);

// Appends `child` unless it could not be looked up or the limit is reached (`cut` says so).
void AddChild(ParsedListing& listing, ListedChild child);

}  // namespace dartfs::fs
