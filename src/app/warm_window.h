// WarmWindow: completes objects one after the other, a few at a time, and tells a job how far they
// are. For the thread of the job.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "app/job_table.h"
#include "core/base/mutex.h"
#include "core/engine/engine.h"

namespace dartfs::app {

class WarmWindow {
 public:
  static constexpr size_t kAtOnce = 4;

  // Both outlive it.
  WarmWindow(core::Engine& engine, Job& job) : engine_(engine), job_(job) {}

  // Blocks until there is room; nothing once the job is cancelled. `shown` names it in errors.
  void Add(std::shared_ptr<core::Object> object, const core::Requester& requester,
           std::string shown);
  // Blocks until all have ended, or the job is cancelled: then they are dropped.
  void Finish();

 private:
  struct Running {
    std::string shown;
    std::unique_ptr<core::Fill> fill;
  };
  // Rings when a fill ends; outlives the window, as a completion may come late.
  struct Bell {
    core::Mutex mu;  // leaf
    core::CondVar rang;
    uint64_t count GUARDED_BY(mu) = 0;
  };
  void WaitUntilFewerThan(size_t most);
  void TakeEnded();

  core::Engine& engine_;
  Job& job_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  std::list<Running> running_;
  uint64_t ended_bytes_ = 0;  // present, of those that have ended
};

}  // namespace dartfs::app
