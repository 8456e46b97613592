#include "app/target_walk.h"

#include <utility>

#include "app/awaited.h"
#include "app/credentials.h"
#include "app/mount_paths.h"
#include "core/base/text.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;

constexpr core::Duration kAnswerLimit = std::chrono::seconds(60);

core::TimePoint Deadline() { return core::RealClock().Now() + kAnswerLimit; }

Result<Target> TargetOfPath(const std::string& path, const MountSet& mounts) {
  Target target;
  target.mount = mounts.At(path);
  if (target.mount == nullptr) {
    return MakeError(Code::kNotFound, EscapeForeign(path) +
                                          " does not lie on a mount of this node (dartfsctl mounts "
                                          "lists them)");
  }
  const auto below = PathBelow(target.mount->mountpoint(), path);
  const fs::Namespace& names = target.mount->names();
  if (!below || below->empty()) {
    target.url = names.RootUrl();
    target.dir = names.Root();
    return target;
  }
  const auto components = std::span<const std::string>(*below);
  TRY_ASSIGN(target.parent, DirOfPath(names, components.first(components.size() - 1)));
  target.name = below->back();
  target.digest = DigestOfPath(names, *below);
  const auto dir = names.DirOf(*target.parent, target.name);
  const auto url = UrlOfPath(names, *below);
  if (!url && !dir) return url.error();
  if (dir) target.dir = *dir;
  if (url) target.url = *url;
  return target;
}

}  // namespace

std::string TargetName::Shown() const {
  return url.empty() ? EscapeForeign(path) : core::RedactUrl(url);
}

Result<Target> FindTarget(const TargetName& name, const MountSet& mounts) {
  if (name.url.empty()) return TargetOfPath(name.path, mounts);
  Target target;
  TRY_ASSIGN(target.url, core::ParseUrl(name.url));
  for (const auto& mount : mounts.All()) {
    target.dir = mount->names().DirOfUrl(*target.url);
    if (!target.dir) continue;
    target.mount = mount;
    break;
  }
  return target;
}

void TargetWalk::Run(const TargetName& name, const Visit& visit) {
  const std::string shown = name.Shown();
  const Result<Target> target = FindTarget(name, mounts_);
  if (!target) return job_.Fail(shown, target.error());
  if (target->parent) {
    return WalkName(*target->mount, *target->parent, target->name, shown, 0, visit);
  }
  if (target->dir) return WalkDirectory(*target->mount, *target->dir, shown, 0, visit);
  OpenUrl(*target->url, shown, visit);
}

void TargetWalk::OpenUrl(const core::Url& url, const std::string& shown, const Visit& visit) {
  core::OpenOptions options;
  options.authorization = AuthorizationOf(url);
  options.deadline = Deadline();
  Awaited<std::shared_ptr<core::Object>> awaited;
  engine_.Open(url, options, awaited.Completion());
  const auto object = awaited.Wait([this] { return job_.cancelled(); });
  if (!object) return job_.Fail(shown, object.error());
  visit(*object, {url, options.authorization});
}

void TargetWalk::WalkName(const ServedMount& mount, const fs::DirRef& dir, const std::string& name,
                          const std::string& shown, size_t depth, const Visit& visit) {
  Awaited<fs::Found> awaited;
  mount.names().Lookup(dir, name, Deadline(), awaited.Completion());
  const auto found = awaited.Wait([this] { return job_.cancelled(); });
  if (!found) return job_.Fail(shown, found.error());
  if (found->kind == fs::EntryKind::kDirectory) {
    return WalkDirectory(mount, found->dir, shown, depth, visit);
  }
  if (++visited_ > kMostObjects) {
    return job_.Fail(shown, MakeError(Code::kTooLarge, "too many objects for one job"));
  }
  visit(found->object, {found->url.value_or(found->object->facts().url), mount.authorization()});
}

void TargetWalk::WalkDirectory(const ServedMount& mount, const fs::DirRef& dir,
                               const std::string& shown, size_t depth, const Visit& visit) {
  if (depth >= kMostDepth) {
    return job_.Fail(shown, MakeError(Code::kTooLarge, "directories too deep"));
  }
  Awaited<std::shared_ptr<const fs::Listing>> awaited;
  mount.names().List(dir, Deadline(), awaited.Completion());
  const auto listing = awaited.Wait([this] { return job_.cancelled(); });
  if (!listing) return job_.Fail(shown, listing.error());
  if (!(*listing)->complete) {
    job_.Fail(shown, MakeError(Code::kUnsupported,
                               "its listing is not complete: what it does not show is left out"));
  }
  for (const fs::ListedEntry& entry : (*listing)->entries) {
    if (job_.cancelled() || visited_ > kMostObjects) return;
    WalkName(mount, dir, entry.name, shown + "/" + EscapeForeign(entry.name), depth + 1, visit);
  }
}

}  // namespace dartfs::app
