// AutoFill: which of the files that are read through a mount are completed in the background
// (Engine::StartFill), and the jobs that do it. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "core/base/mutex.h"
#include "core/engine/engine.h"

namespace dartfs::fs {

enum class FillMode : uint8_t {
  kAuto,  // once half of an object has come, if all of it fits into half of the cache
  kOff,
  kAll,  // whatever is opened
};

class AutoFill {
 public:
  static constexpr size_t kMostJobs = 128;
  // An object whose filling has failed is left alone for so long.
  static constexpr core::Duration kAfterFailure = std::chrono::minutes(5);

  // The engine outlives it.
  AutoFill(FillMode mode, const core::Grid& grid, core::Engine& engine)
      : mode_(mode), grid_(grid), engine_(engine), jobs_(std::make_shared<Jobs>()) {}
  ~AutoFill() { Stop(); }

  // Some of the object has been read, or it was opened: begins to complete it where that is due.
  // Costs a look at its blocks.
  void Consider(const std::shared_ptr<core::Object>& object, const core::Requester& requester);
  // Jobs under way end. Twice is fine.
  void Stop();
  size_t jobs() const;

 private:
  // Shared with the jobs' completions.
  struct Jobs {
    core::Mutex mu;  // leaf
    std::unordered_map<const core::StoredObject*, std::unique_ptr<core::Fill>> running
        GUARDED_BY(mu);
    std::unordered_map<const core::StoredObject*, core::TimePoint> failed GUARDED_BY(mu);
    bool stopped GUARDED_BY(mu) = false;
  };
  bool IsDue(const core::Object& object) const;
  // Whether a job of it may begin now; then it counts as running.
  bool Enter(const core::StoredObject* key);
  static void NoteFailure(Jobs& jobs, const core::StoredObject* key, core::TimePoint now)
      REQUIRES(jobs.mu);

  const FillMode mode_;
  const core::Grid grid_;
  core::Engine& engine_;
  const std::shared_ptr<Jobs> jobs_;
};

}  // namespace dartfs::fs
