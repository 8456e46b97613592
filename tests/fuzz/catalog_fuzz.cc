// Catalogues: any bytes; what comes out is a tree of legal names and http URLs, in which every file
// is found by its path.
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/base/digest.h"
#include "core/base/url.h"
#include "fs/catalog.h"
#include "fs/name_mapping.h"

namespace core = dartfs::core;
namespace fs = dartfs::fs;

namespace {

size_t CheckDir(const fs::Catalog& catalog, fs::Catalog::Id dir, const std::string& path) {
  DARTFS_CHECK(catalog.FindDir(path) == dir);
  const auto [first, last] = catalog.ChildrenOf(dir);
  size_t files = 0;
  for (fs::Catalog::Id id = first; id < last; ++id) {
    const std::string_view name = catalog.NameOf(id);
    DARTFS_CHECK(fs::IsFileName(name) && name.size() <= fs::kMaxNameBytes);
    DARTFS_CHECK(id == first || catalog.NameOf(id - 1) < name);
    DARTFS_CHECK(catalog.Find(dir, name) == id);
    if (catalog.IsDir(id)) {
      const size_t below = CheckDir(catalog, id, path + std::string(name) + "/");
      DARTFS_CHECK(below > 0);
      files += below;
      continue;
    }
    ++files;
    const auto url = core::ParseUrl(catalog.UrlOf(id));
    DARTFS_CHECK(url && url->userinfo.empty());
    const std::string digest = catalog.DigestOf(id);
    DARTFS_CHECK(digest.empty() || core::ParseDigest(digest));
    DARTFS_CHECK(catalog.LineOf(id) > 0);
  }
  return files;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto catalog = fs::Catalog::Parse(text, "f", 0);
  if (!catalog) return 0;
  DARTFS_CHECK(CheckDir(**catalog, fs::Catalog::kRoot, "") == (*catalog)->files());
  return 0;
}
