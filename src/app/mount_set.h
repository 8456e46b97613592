// MountSet: the mounts of a node. What may block (making a mount, ending one) runs one after the
// other on the worker; the rest is quick, on any thread.
//
// A set that does not stay is over once its last mount has ended, whoever unmounted it: it takes no
// further one then, so that a mount that comes just too late finds no node, and becomes one.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "app/served_mount.h"
#include "core/base/mutex.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {

class MountSet {
 public:
  static constexpr size_t kMost = 256;

  // kIo. The core outlives the set.
  static core::Result<std::unique_ptr<MountSet>> Create(NodeCore& core, bool stays);
  ~MountSet();  // Stop

  // Whether Add would take it: kUnavailable (the node is ending), kBusy (it has that mountpoint, or
  // too many). `mountpoint` is resolved.
  core::Status Check(const std::string& mountpoint) const;
  // Mounts, and logs that. Errors as of Check and ServedMount::Create. A task of the worker, or
  // before anything else uses the set.
  core::Status Add(const Options& options, ServedMount::Start start);

  std::vector<std::shared_ptr<ServedMount>> All() const;
  // The mount on which an absolute path lies, by its text; the innermost. Null: none of ours.
  std::shared_ptr<ServedMount> At(const std::string& path) const;

  core::Scheduler& worker() { return *worker_; }
  // Readable once the set is over.
  int ended_fd() const { return ended_.get(); }
  // Unmounts all, at the same time; takes no further one. Twice is fine.
  void Stop();

 private:
  MountSet(NodeCore& core, bool stays, core::UniqueFd ended);
  void Reap();

  NodeCore& core_;
  const bool stays_;
  const core::UniqueFd ended_;
  mutable core::Mutex mu_;  // leaf
  std::vector<std::shared_ptr<ServedMount>> mounts_ GUARDED_BY(mu_);
  bool over_ GUARDED_BY(mu_) = false;
  std::unique_ptr<core::Scheduler> worker_;  // "mounts"
};

}  // namespace dartfs::app
