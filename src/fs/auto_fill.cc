#include "fs/auto_fill.h"

#include <utility>

#include "core/base/log.h"
#include "core/engine/object.h"

namespace dartfs::fs {

bool AutoFill::IsDue(const core::Object& object) const {
  if (mode_ == FillMode::kOff || object.superseded()) return false;
  const uint64_t blocks = grid_.BlockCount(object.size());
  const uint64_t present = engine_.store().PresentBlocks(*object.stored());
  if (present == blocks) return false;
  const core::StoreStats store = engine_.store().Stats();
  if (store.bypass) return false;
  if (mode_ == FillMode::kAll) return object.size() <= store.limit_bytes;
  if (object.facts().meta.volatile_version || present < (blocks + 1) / 2) return false;
  return object.size() <= store.limit_bytes / 2;
}

bool AutoFill::Enter(const core::StoredObject* key) {
  core::MutexLock lock(jobs_->mu);
  if (jobs_->stopped || jobs_->running.size() >= kMostJobs) return false;
  const auto failed = jobs_->failed.find(key);
  if (failed != jobs_->failed.end()) {
    if (engine_.scheduler().clock().Now() < failed->second + kAfterFailure) return false;
    jobs_->failed.erase(failed);
  }
  return jobs_->running.emplace(key, nullptr).second;
}

void AutoFill::NoteFailure(Jobs& jobs, const core::StoredObject* key, core::TimePoint now) {
  constexpr size_t kMostKept = 1024;
  if (jobs.failed.size() >= kMostKept) {
    std::erase_if(jobs.failed,
                  [now](const auto& entry) { return now >= entry.second + kAfterFailure; });
  }
  if (jobs.failed.size() < kMostKept) jobs.failed[key] = now;
}

void AutoFill::Consider(const std::shared_ptr<core::Object>& object,
                        const core::Requester& requester) {
  if (!IsDue(*object)) return;
  const core::StoredObject* const key = object->stored().get();
  if (!Enter(key)) return;
  const std::weak_ptr<Jobs> weak = jobs_;
  auto done = [weak, key, url = object->facts().identity.redacted_url,
               &clock = engine_.scheduler().clock()](const core::Status& status) {
    if (!status && status.error().code != core::Code::kCancelled) {
      LOG_INFO("{}: not completed in the background: {}", url, status.error().ToString());
    }
    std::unique_ptr<core::Fill> ended;  // outside the lock
    if (const auto jobs = weak.lock()) {
      core::MutexLock lock(jobs->mu);
      const auto found = jobs->running.find(key);
      if (found == jobs->running.end()) return;
      ended = std::move(found->second);
      jobs->running.erase(found);
      if (!status) NoteFailure(*jobs, key, clock.Now());
    }
  };
  auto fill = engine_.StartFill(object, requester, std::move(done));
  {
    core::MutexLock lock(jobs_->mu);
    const auto found = jobs_->running.find(key);
    // Gone: it has ended already, or all do.
    if (found != jobs_->running.end()) std::swap(found->second, fill);
  }
}

void AutoFill::Stop() {
  // Destroyed without the lock: the end of a job calls back.
  std::unordered_map<const core::StoredObject*, std::unique_ptr<core::Fill>> dropped;
  {
    core::MutexLock lock(jobs_->mu);
    jobs_->stopped = true;
    dropped.swap(jobs_->running);
  }
}

size_t AutoFill::jobs() const {
  core::MutexLock lock(jobs_->mu);
  return jobs_->running.size();
}

}  // namespace dartfs::fs
