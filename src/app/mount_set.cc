#include "app/mount_set.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "app/mount_paths.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/thread.h"

namespace dartfs::app {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;

Result<std::unique_ptr<MountSet>> MountSet::Create(NodeCore& core, bool stays) {
  core::UniqueFd ended(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ended.valid()) return core::ErrnoError(errno, "eventfd");
  return std::unique_ptr<MountSet>(new MountSet(core, stays, std::move(ended)));
}

MountSet::MountSet(NodeCore& core, bool stays, core::UniqueFd ended)
    : core_(core),
      stays_(stays),
      ended_(std::move(ended)),
      worker_(core::MakeThreadScheduler("mounts", 1, core::RealClock())) {}

MountSet::~MountSet() { Stop(); }

Status MountSet::Check(const std::string& mountpoint) const {
  core::MutexLock lock(mu_);
  if (over_) return MakeError(Code::kUnavailable, "the node is ending");
  if (mounts_.size() >= kMost) {
    return MakeError(Code::kBusy, "the node has " + std::to_string(kMost) +
                                      " mounts already, which is the most: give this one a cache "
                                      "directory of its own (--cache-dir DIR, -o cache_dir=DIR)");
  }
  for (const auto& mount : mounts_) {
    if (mount->ended() || mount->mountpoint() != mountpoint) continue;
    return MakeError(Code::kBusy, EscapeForeign(mountpoint) +
                                      " is a mount of this node already; umount it first, or "
                                      "choose another mountpoint");
  }
  return {};
}

Status MountSet::Add(const Options& options, ServedMount::Start start) {
  TRY(Check(options.mountpoint));
  // Not a use of the set after its end: the worker stops first.
  start.on_ended = [this] { worker_->Post([this] { Reap(); }); };
  TRY_ASSIGN(auto mount, ServedMount::Create(options, std::move(start), core_));
  LOG_INFO("{} mounted on {}", core::RedactUrl(options.source), EscapeForeign(mount->mountpoint()));
  {
    core::MutexLock lock(mu_);
    mounts_.push_back(mount);
  }
  if (mount->ended()) worker_->Post([this] { Reap(); });  // before it was in the list
  return {};
}

std::vector<std::shared_ptr<ServedMount>> MountSet::All() const {
  core::MutexLock lock(mu_);
  return mounts_;
}

std::shared_ptr<ServedMount> MountSet::At(const std::string& path) const {
  std::shared_ptr<ServedMount> found;
  for (auto& mount : All()) {
    if (!PathBelow(mount->mountpoint(), path)) continue;
    if (found == nullptr || mount->mountpoint().size() > found->mountpoint().size()) {
      found = std::move(mount);
    }
  }
  return found;
}

// Those that have ended by themselves.
void MountSet::Reap() {
  std::vector<std::shared_ptr<ServedMount>> gone;
  {
    core::MutexLock lock(mu_);
    const auto first = std::stable_partition(mounts_.begin(), mounts_.end(),
                                             [](const auto& mount) { return !mount->ended(); });
    gone.assign(std::make_move_iterator(first), std::make_move_iterator(mounts_.end()));
    mounts_.erase(first, mounts_.end());
    if (mounts_.empty() && !stays_) over_ = true;
  }
  for (const auto& mount : gone) {
    mount->Stop();
    LOG_INFO("{} was unmounted", EscapeForeign(mount->mountpoint()));
  }
  gone.clear();
  core::MutexLock lock(mu_);
  if (!over_) return;
  const uint64_t one = 1;
  // An eventfd refuses only at its maximum, which is as good as told.
  [[maybe_unused]] const ssize_t told = write(ended_.get(), &one, sizeof one);
}

void MountSet::Stop() {
  {
    core::MutexLock lock(mu_);
    over_ = true;
  }
  worker_->Stop();  // whatever is being mounted has been added, or has failed
  std::vector<std::thread> stopping;
  for (const auto& mount : All()) {
    stopping.push_back(core::StartThread("unmount", [mount] { mount->Stop(); }));
  }
  for (std::thread& thread : stopping) thread.join();
}

}  // namespace dartfs::app
