// From what a user names (a path on a mount, or a URL) to the objects it means, directories with
// all that is below them. For the thread of a job: blocks, on origins too, up to deadlines.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/job_table.h"
#include "app/mount_set.h"
#include "app/tree_walk.h"
#include "core/base/result.h"
#include "core/base/url.h"
#include "core/engine/engine.h"

namespace dartfs::app {

// As it came: one of the two.
struct TargetName {
  std::string path;  // absolute, raw bytes
  std::string url;
  // For people.
  std::string Shown() const;
};

// What a path or URL means by names alone, and where it is, or may be, a directory of a mount.
struct Target {
  std::optional<core::Url> url;        // none: a directory that is no URL's
  std::shared_ptr<ServedMount> mount;  // null: no mount's
  std::optional<fs::DirRef> dir;
  std::optional<fs::DirRef> parent;  // of a path that is not a mountpoint: where its name stands
  std::string name;
  std::string digest;  // that the mount states for it, or ""
};

// Asks nobody. kNotFound: on no mount; kInvalidArgument: no URL, or no such name can be.
core::Result<Target> FindTarget(const TargetName& name, const MountSet& mounts);

class TargetWalk {
 public:
  using Visit = TreeWalk::Visit;

  // All of them outlive the walk.
  TargetWalk(const MountSet& mounts, core::Engine& engine, Job& job)
      : mounts_(mounts), engine_(engine), job_(job), tree_(job) {}

  // Visits each object; what can't be had is a failure of the job, and the walk goes on.
  void Run(const TargetName& name, const Visit& visit);

 private:
  void OpenUrl(const core::Url& url, const std::string& shown, const Visit& visit);

  const MountSet& mounts_;
  core::Engine& engine_;
  Job& job_;
  TreeWalk tree_;
};

}  // namespace dartfs::app
