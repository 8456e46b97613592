#include "app/tree_walk.h"

#include <utility>

#include "app/awaited.h"
#include "fs/name_mapping.h"

namespace dartfs::app {

using core::Code;
using core::MakeError;
using core::Result;

namespace {

constexpr core::Duration kAnswerLimit = std::chrono::seconds(60);

core::TimePoint Deadline() { return core::RealClock().Now() + kAnswerLimit; }

}  // namespace

Result<fs::Found> TreeWalk::Find(Ask ask, const NamedTree& tree, const fs::DirRef& dir,
                                 const std::string& name) const {
  Awaited<fs::Found> awaited;
  (tree.names.*ask)(dir, name, Deadline(), awaited.Completion());
  return awaited.Wait([this] { return job_.cancelled(); });
}

bool TreeWalk::Count(const std::string& shown) {
  if (++counted_ <= limits_.names) return true;
  job_.Fail(shown, MakeError(Code::kTooLarge, "too many names for one job"));
  return false;
}

void TreeWalk::WalkName(const NamedTree& tree, const fs::DirRef& dir, const std::string& name,
                        const std::string& shown, size_t depth, const Visit& visit) {
  Result<fs::Found> found = Find(&fs::Namespace::Lookup, tree, dir, name);
  if (found && found->kind == fs::EntryKind::kFile && found->object == nullptr) {
    found = Find(&fs::Namespace::Open, tree, dir, name);  // so far only promised
  }
  if (!found) return job_.Fail(shown, found.error());
  if (found->kind == fs::EntryKind::kDirectory) {
    return WalkDirectory(tree, found->dir, shown, depth, visit);
  }
  if (!Count(shown)) return;
  if (found->object == nullptr) {
    return job_.Fail(shown, MakeError(Code::kInternal, "a file that was opened without an object"));
  }
  const core::Url url = found->url ? *found->url : found->object->facts().url;
  visit(std::move(found->object), {url, tree.authorization});
}

void TreeWalk::WalkDirectory(const NamedTree& tree, const fs::DirRef& dir, const std::string& shown,
                             size_t depth, const Visit& visit) {
  if (!Count(shown)) return;
  if (depth >= limits_.depth) {
    return job_.Fail(shown, MakeError(Code::kTooLarge, "directories too deep"));
  }
  Awaited<std::shared_ptr<const fs::Listing>> awaited;
  tree.names.List(dir, Deadline(), awaited.Completion());
  const auto listing = awaited.Wait([this] { return job_.cancelled(); });
  if (!listing) return job_.Fail(shown, listing.error());
  if (!(*listing)->complete) {
    job_.Fail(shown, MakeError(Code::kUnsupported,
                               "its listing is not complete: what it does not show is left out"));
  }
  for (const fs::ListedEntry& entry : (*listing)->entries) {
    if (job_.cancelled() || counted_ > limits_.names) return;
    WalkName(tree, dir, entry.name, shown + "/" + fs::ShownPath(entry.name), depth + 1, visit);
  }
}

}  // namespace dartfs::app
