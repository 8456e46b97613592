#include "app/target_walk.h"

#include <utility>

#include "app/awaited.h"
#include "app/mount_paths.h"
#include "core/base/credentials.h"
#include "core/base/text.h"
#include "fs/name_mapping.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::MakeError;
using core::Result;

constexpr core::Duration kAnswerLimit = std::chrono::seconds(60);

Result<Target> TargetOfPath(const std::string& path, const MountSet& mounts) {
  Target target;
  target.mount = mounts.At(path);
  if (target.mount == nullptr) {
    return MakeError(Code::kNotFound, fs::ShownPath(path) +
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
  return url.empty() ? fs::ShownPath(path) : core::RedactUrl(url);
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
  if (target->mount == nullptr) return OpenUrl(*target->url, shown, visit);
  const NamedTree tree{target->mount->names(), target->mount->authorization()};
  if (target->parent) return tree_.WalkName(tree, *target->parent, target->name, shown, visit);
  if (target->dir) return tree_.WalkDirectory(tree, *target->dir, shown, visit);
  OpenUrl(*target->url, shown, visit);
}

void TargetWalk::OpenUrl(const core::Url& url, const std::string& shown, const Visit& visit) {
  core::OpenOptions options;
  options.authorization = core::AuthorizationOf(url);
  options.deadline = core::RealClock().Now() + kAnswerLimit;
  Awaited<std::shared_ptr<core::Object>> awaited;
  engine_.Open(url, options, awaited.Completion());
  const auto object = awaited.Wait([this] { return job_.cancelled(); });
  if (!object) return job_.Fail(shown, object.error());
  visit(*object, {url, options.authorization});
}

}  // namespace dartfs::app
