// OpenModes: who answers the reads of an open node, the daemon or the kernel by itself
// (passthrough). The kernel takes only one of both for an inode at a time, with one backing number:
// the first open decides, and it holds until the last release (KERNEL.md).
//
//   absent -> deciding -> through the daemon, or passthrough -> absent
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"
#include "core/engine/engine.h"
#include "fs/backing_files.h"
#include "fs/node_table.h"

namespace dartfs::fs {

class OpenModes {
 public:
  // The kernel's number of the file to read, or nullopt: through the daemon. kStale: the node is
  // open on a file that has been found damaged since, and takes no further open. Called once, on
  // the caller's stack or on a thread that may block.
  using Decided = core::UniqueFunction<void(core::Result<std::optional<int32_t>> backing_id)>;

  // After the kernel has refused a file, the others are not tried for so long.
  static constexpr core::Duration kAfterRefusal = std::chrono::seconds(60);

  // The engine outlives it; whoever calls Enter keeps it alive until `decided` has gone.
  explicit OpenModes(core::Engine& engine) : engine_(engine) {}
  ~OpenModes();

  // From here on complete objects are lent to the kernel; null: no more, and nothing is
  // unregistered any more (the session is ending, which does that).
  void SetBacking(std::shared_ptr<BackingFiles> files) EXCLUDES(mu_);

  // Counts an open of the node, whose version `object` is. Unless that fails, Leave follows once,
  // not before `decided` has been called.
  void Enter(NodeId node, std::shared_ptr<core::Object> object, Decided decided) EXCLUDES(mu_);
  void Leave(NodeId node) EXCLUDES(mu_);
  // The object may be complete by now: begins the check that its next first open needs. Nothing
  // where no file is given to the kernel anyway.
  void Prepare(const std::shared_ptr<core::Object>& object) {
    if (lends_.load(std::memory_order_relaxed)) static_cast<void>(engine_.MayLend(object));
  }

  // Nodes that the kernel reads by itself at present, and opens answered so since the start.
  size_t nodes_in_passthrough() const EXCLUDES(mu_);
  uint64_t passthrough_opens() const { return passthrough_opens_.load(std::memory_order_relaxed); }

 private:
  struct Backing {
    std::shared_ptr<BackingFiles> files;
    int32_t id = 0;
    core::FileLoan loan;
  };
  struct State {
    uint64_t opens = 0;
    bool deciding = false;
    std::optional<Backing> backing;
    std::vector<Decided> waiting;  // while deciding
  };
  // A lending under way: decides when it is answered, or destroyed unanswered.
  class Lending;
  void Decide(NodeId node, const core::Object& object, std::shared_ptr<BackingFiles> files,
              core::Result<core::FileLoan> loan) EXCLUDES(mu_);
  std::optional<Backing> Register(const core::Object& object, std::shared_ptr<BackingFiles> files,
                                  core::Result<core::FileLoan> loan) EXCLUDES(mu_);
  // Outside the lock.
  static void End(std::optional<Backing> backing);

  core::Engine& engine_;
  std::atomic<uint64_t> passthrough_opens_{0};
  std::atomic<bool> lends_{false};  // files_ is there
  mutable core::Mutex mu_;          // leaf
  std::shared_ptr<BackingFiles> files_ GUARDED_BY(mu_);
  core::TimePoint not_before_ GUARDED_BY(mu_){};
  bool refusal_told_ GUARDED_BY(mu_) = false;
  std::unordered_map<NodeId, State> states_ GUARDED_BY(mu_);
};

}  // namespace dartfs::fs
