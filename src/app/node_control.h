// NodeControl: the node's end of the control socket: the verbs (CONTROL.md) and the threads that
// answer them. Owned by the node; core and mounts outlive it.
#pragma once

#include <memory>

#include "app/cache_jobs.h"
#include "app/control_dispatch.h"
#include "app/control_server.h"
#include "app/mount_set.h"
#include "app/node_core.h"
#include "app/options.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/base/time.h"

namespace dartfs::app {

class NodeControl {
 public:
  // Listens on return. kIo.
  static core::Result<std::unique_ptr<NodeControl>> Create(const Options& options, NodeCore& core,
                                                           MountSet& mounts);
  ~NodeControl();  // both stops

  // No request comes in any more; those begun may still run.
  void StopListening();
  // Cancels jobs, and waits for all that read the disk, which need not hold up the end of a mount.
  void StopAnswering();

 private:
  NodeControl(const Options& options, NodeCore& core, MountSet& mounts);
  void AddVerbs();
  core::Result<nlohmann::json> Status();
  core::Result<nlohmann::json> Explain(const nlohmann::json& request);
  core::Result<nlohmann::json> Prepare(const nlohmann::json& request);
  core::Result<nlohmann::json> Attach(const nlohmann::json& request, core::UniqueFd device);
  core::Result<Options> Attachable(const nlohmann::json& request, dev_t& device);

  const Options options_;
  NodeCore& core_;
  MountSet& mounts_;
  const core::TimePoint started_ = core::RealClock().Now();
  const uint64_t mount_namespace_;
  ControlDispatch dispatch_;
  CacheJobs jobs_;
  std::unique_ptr<core::Scheduler> explain_worker_;
  std::unique_ptr<ControlServer> server_;
};

}  // namespace dartfs::app
