// What jobs do to cached objects, and their verbs on the control socket (CONTROL.md): warm, evict,
// verify, pin, unpin; jobs, cancel; set.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/control_dispatch.h"
#include "app/job_table.h"
#include "app/mount_set.h"
#include "app/target_walk.h"
#include "core/base/result.h"
#include "core/engine/engine.h"

namespace dartfs::app {

class CacheJobs {
 public:
  static constexpr size_t kMostTargets = 1024;

  // Both outlive it.
  CacheJobs(core::Engine& engine, const MountSet& mounts) : engine_(engine), mounts_(mounts) {}

  void AddVerbs(ControlDispatch& dispatch);
  // Cancels what runs and joins. Twice is fine.
  void Stop() { jobs_.Stop(); }

 private:
  using Targets = std::vector<TargetName>;
  using Body = void (CacheJobs::*)(Job& job, const Targets& targets);
  void AddJob(ControlDispatch& dispatch, const char* verb, Body body);
  void Walk(Job& job, const Targets& targets, const TargetWalk::Visit& visit);

  void Warm(Job& job, const Targets& targets);
  void Verify(Job& job, const Targets& targets);
  void Evict(Job& job, const Targets& targets);
  void Pin(Job& job, const Targets& targets);
  void Unpin(Job& job, const Targets& targets);
  void SetPinned(Job& job, const Targets& targets, bool pinned);

  core::Result<nlohmann::json> Set(const nlohmann::json& request);

  core::Engine& engine_;
  const MountSet& mounts_;
  JobTable jobs_;
};

}  // namespace dartfs::app
