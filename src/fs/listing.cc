#include "fs/listing.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/base/text.h"
#include "fs/listing_parsers.h"
#include "fs/name_mapping.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::EqualsIgnoreCase;
using core::MakeError;
using core::Result;
using core::TrimAscii;

// What the header says, or, without one, what the body begins like.
std::optional<ListingFormat> FormatOf(std::string_view content_type, std::string_view body) {
  const std::string_view type = TrimAscii(content_type.substr(0, content_type.find(';')));
  for (const std::string_view html : {"text/html", "application/xhtml+xml"}) {
    if (EqualsIgnoreCase(type, html)) return ListingFormat::kHtml;
  }
  for (const std::string_view xml : {"application/xml", "text/xml"}) {
    if (EqualsIgnoreCase(type, xml)) return ListingFormat::kS3;
  }
  if (EqualsIgnoreCase(type, "application/json")) return ListingFormat::kJson;
  if (!type.empty()) return std::nullopt;
  const std::string_view start = TrimAscii(body.substr(0, 256));
  if (start.starts_with('[')) return ListingFormat::kJson;
  if (start.starts_with("<?xml") || start.starts_with("<ListBucketResult"))
    return ListingFormat::kS3;
  if (start.starts_with('<')) return ListingFormat::kHtml;
  return std::nullopt;
}

bool IsEscapedName(std::string_view name) { return name.starts_with("%=") || IsDigestedName(name); }

}  // namespace

bool NamedChild::operator==(const NamedChild& other) const {
  return segment == other.segment && entry.name == other.entry.name &&
         entry.kind == other.entry.kind && entry.size == other.entry.size &&
         entry.mtime == other.entry.mtime;
}

bool MayBeListing(std::string_view content_type) {
  return TrimAscii(content_type).empty() || FormatOf(content_type, {}).has_value();
}

Result<ParsedListing> ParseListing(std::string_view content_type, std::string_view body,
                                   const core::Url& url) {
  const auto format = FormatOf(content_type, body);
  if (!format) return MakeError(Code::kUnsupported, "not the type of a listing");
  if (body.size() > kMaxListingBytes) {
    return MakeError(Code::kTooLarge, "listing larger than " + core::FormatSize(kMaxListingBytes));
  }
  switch (*format) {
    case ListingFormat::kHtml:
      return ParseHtmlListing(body, url);
    case ListingFormat::kJson:
      return ParseJsonListing(body);
    case ListingFormat::kS3:
      return ParseS3Listing(body);
  }
  return MakeError(Code::kInternal, "unknown listing format");
}

bool IsS3Error(std::string_view body) {
  const std::string_view start = body.substr(0, 1024);
  const size_t error = start.find("<Error>");
  return error != std::string_view::npos && start.find("<Code>", error) != std::string_view::npos;
}

void AddChild(ParsedListing& listing, ListedChild child) {
  if (!IsSegment(child.segment) || LeavesDirectory(child.segment)) return;
  if (listing.children.size() >= kMaxListingEntries) {
    listing.cut = true;
    return;
  }
  listing.children.push_back(std::move(child));
}

std::vector<NamedChild> NameChildren(std::vector<ListedChild> children) {
  std::sort(children.begin(), children.end(), [](const ListedChild& a, const ListedChild& b) {
    if (a.segment != b.segment) return a.segment < b.segment;
    return a.kind > b.kind;  // the directory first, and it stays
  });
  children.erase(std::unique(children.begin(), children.end(),
                             [](const ListedChild& a, const ListedChild& b) {
                               return a.segment == b.segment;
                             }),
                 children.end());

  std::vector<NamedChild> named;
  named.reserve(children.size());
  std::unordered_set<std::string> taken;
  for (ListedChild& child : children) {
    std::string name = SegmentToName(child.segment);
    if (!IsEscapedName(name)) taken.insert(name);
    named.push_back(
        {{std::move(name), child.kind, child.size, child.mtime}, std::move(child.segment)});
  }
  for (NamedChild& child : named) {
    if (!IsEscapedName(child.entry.name)) continue;
    auto fair = FairName(child.segment);
    if (fair && taken.insert(*fair).second) child.entry.name = std::move(*fair);
  }
  std::sort(named.begin(), named.end(),
            [](const NamedChild& a, const NamedChild& b) { return a.entry.name < b.entry.name; });
  return named;
}

}  // namespace dartfs::fs
