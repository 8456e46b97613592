// Listings: any body of any type; what comes out are direct children with names that lead back to
// them. The input's first byte chooses the type, the rest is the body.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/base/url.h"
#include "fs/listing.h"
#include "fs/name_mapping.h"

namespace fs = dartfs::fs;

namespace {

constexpr std::string_view kTypes[] = {"text/html", "application/json", "application/xml", "",
                                       "text/html; charset=utf-16"};

void CheckNames(std::vector<fs::ListedChild> children) {
  std::set<std::string> names;
  std::set<std::string> segments;
  for (const fs::NamedChild& child : fs::NameChildren(std::move(children))) {
    const std::string& name = child.entry.name;
    DARTFS_CHECK(fs::IsFileName(name) && name.size() <= fs::kMaxNameBytes);
    DARTFS_CHECK(names.insert(name).second && segments.insert(child.segment).second);
    if (fs::IsDigestedName(name)) continue;
    const auto wire = fs::NameToWire(name);
    DARTFS_CHECK(wire && !wire->always_file);
    const bool as_written = wire->rest == child.segment;
    DARTFS_CHECK(as_written || fs::FairName(child.segment) == name);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static const auto kUrl = dartfs::core::ParseUrl("http://h/d/").value();
  const std::string_view type = kTypes[data[0] % std::size(kTypes)];
  auto listing = fs::ParseListing(type, input.substr(1), kUrl);
  if (!listing) return 0;
  DARTFS_CHECK(listing->children.size() <= fs::kMaxListingEntries);
  for (const fs::ListedChild& child : listing->children) {
    DARTFS_CHECK(fs::IsSegment(child.segment) && !fs::LeavesDirectory(child.segment));
  }
  CheckNames(std::move(listing->children));
  return 0;
}
