// Extended attributes: what dartfs knows of a name. Answered without any request.
#include <algorithm>
#include <array>
#include <utility>

#include "core/base/text.h"
#include "fs/file_system.h"
#include "fs/file_system_handles.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::MakeError;
using core::Result;

constexpr std::string_view kUrl = "user.dartfs.url";
constexpr std::string_view kSize = "user.dartfs.size";
constexpr std::array<std::string_view, 4> kOfObjects = {
    "user.dartfs.version", "user.dartfs.key", "user.dartfs.verified", "user.dartfs.cached_bytes"};

uint64_t CachedBytes(core::Store& store, const core::Object& object, const core::Grid& grid) {
  if (!object.stored() || store.PresentBlocks(*object.stored()) == 0) return 0;
  const std::vector<bool> present = store.PresentMap(*object.stored());
  uint64_t bytes = 0;
  for (uint64_t block = 0; block < present.size(); ++block) {
    if (present[block]) bytes += grid.BlockLength(object.size(), block);
  }
  return bytes;
}

}  // namespace

Result<std::optional<std::string>> FileSystem::GetXattr(NodeId id, std::string_view name) const {
  const auto node = nodes_.Get(id);
  if (!node) return MakeError(Code::kStale, "the node is not known (any more)");
  const auto& facts = node->facts();
  if (name == kUrl) {
    if (!facts.parent) return std::optional<std::string>();
    const auto url = names_->UrlOf(facts.parent->facts().dir, facts.name);
    if (!url) return std::optional<std::string>();
    return std::optional(core::RedactUrl(url->ToString()));
  }
  if (node->is_dir()) return std::optional<std::string>();
  if (name == kSize) return std::optional(std::to_string(facts.size));
  const auto object = node->object();
  if (!object) return std::optional<std::string>();
  const auto& meta = object->facts().meta;
  if (name == "user.dartfs.version") return std::optional(core::EscapeForeign(meta.version));
  if (name == "user.dartfs.key") return std::optional(object->key().ToHex());
  if (name == "user.dartfs.verified")
    return std::optional<std::string>(object->verified() ? "1" : "0");
  if (name == "user.dartfs.cached_bytes") {
    return std::optional(std::to_string(CachedBytes(engine_.store(), *object, options_.grid)));
  }
  return std::optional<std::string>();
}

Result<std::vector<std::string>> FileSystem::ListXattr(NodeId id) const {
  const auto node = nodes_.Get(id);
  if (!node) return MakeError(Code::kStale, "the node is not known (any more)");
  std::vector<std::string> names;
  if (node->facts().parent) names.emplace_back(kUrl);
  if (!node->is_dir()) names.emplace_back(kSize);
  // A file that is only promised has none of them yet.
  if (node->object()) names.insert(names.end(), kOfObjects.begin(), kOfObjects.end());
  return names;
}

}  // namespace dartfs::fs
