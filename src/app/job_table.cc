#include "app/job_table.h"

#include <algorithm>
#include <utility>

#include "core/base/thread.h"

namespace dartfs::app {

using core::Code;
using core::MakeError;
using core::Result;
using core::TimePoint;

struct JobTable::Entry {
  std::string verb;
  std::string what;
  TimePoint started;
  std::atomic<int64_t> took_ns{-1};  // set last: the job is over
  Job job;
  std::thread thread;

  bool over() const { return took_ns.load(std::memory_order_acquire) >= 0; }
};

void Job::Update(const std::function<void(JobProgress&)>& change) {
  core::MutexLock lock(mu_);
  change(progress_);
}

void Job::Fail(const std::string& what, const core::Error& error) {
  Update([&](JobProgress& progress) {
    ++progress.objects_failed;
    if (progress.errors.size() < kMostErrors) {
      progress.errors.push_back(what + ": " + error.context);
    }
  });
}

JobProgress Job::Progress() const {
  core::MutexLock lock(mu_);
  return progress_;
}

JobTable::JobTable() = default;
JobTable::~JobTable() { Stop(); }

Result<uint64_t> JobTable::Start(std::string verb, std::string what,
                                 std::function<void(Job&)> body) {
  core::MutexLock lock(mu_);
  if (stopped_) return MakeError(Code::kUnavailable, "the node is ending");
  const auto running = static_cast<size_t>(std::count_if(
      jobs_.begin(), jobs_.end(), [](const auto& item) { return !item.second->over(); }));
  if (running >= kMostRunning) {
    return MakeError(Code::kBusy, std::to_string(running) +
                                      " jobs run already, which is the most: wait for one, or "
                                      "cancel it (dartfsctl jobs, dartfsctl cancel)");
  }
  ForgetOldOnes();
  auto entry = std::make_unique<Entry>();
  entry->verb = std::move(verb);
  entry->what = std::move(what);
  entry->started = core::RealClock().Now();
  entry->thread = core::StartThread("job", [raw = entry.get(), body = std::move(body)] {
    body(raw->job);
    const core::Duration took = core::RealClock().Now() - raw->started;
    raw->took_ns.store(took.count(), std::memory_order_release);
  });
  const uint64_t id = ++last_id_;
  jobs_.emplace(id, std::move(entry));
  return id;
}

void JobTable::ForgetOldOnes() {
  auto over = static_cast<size_t>(std::count_if(
      jobs_.begin(), jobs_.end(), [](const auto& item) { return item.second->over(); }));
  for (auto it = jobs_.begin(); it != jobs_.end() && over >= kMostKept;) {
    if (!it->second->over()) {
      ++it;
      continue;
    }
    it->second->thread.join();  // nothing is left for it to do
    it = jobs_.erase(it);
    --over;
  }
}

JobFacts JobTable::FactsOf(uint64_t id, const Entry& entry) const {
  JobFacts facts;
  const bool over = entry.over();  // before the progress, which is the last one then
  facts.id = id;
  facts.verb = entry.verb;
  facts.what = entry.what;
  facts.age = core::RealClock().Now() - entry.started;
  facts.progress = entry.job.Progress();
  if (!over) return facts;
  facts.took = core::Duration(entry.took_ns.load(std::memory_order_acquire));
  facts.progress.walking = false;
  facts.state = facts.progress.objects_failed + facts.progress.bad_granules > 0 ? JobState::kFailed
                                                                                : JobState::kDone;
  if (entry.job.cancelled()) facts.state = JobState::kCancelled;
  return facts;
}

std::optional<JobFacts> JobTable::Find(uint64_t id) {
  core::MutexLock lock(mu_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return std::nullopt;
  return FactsOf(id, *found->second);
}

std::vector<JobFacts> JobTable::All() {
  std::vector<JobFacts> all;
  core::MutexLock lock(mu_);
  for (const auto& [id, entry] : jobs_) all.push_back(FactsOf(id, *entry));
  return all;
}

bool JobTable::Cancel(uint64_t id) {
  core::MutexLock lock(mu_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second->over()) return false;
  found->second->job.cancelled_.store(true, std::memory_order_release);
  return true;
}

void JobTable::Stop() {
  std::vector<std::thread> running;
  {
    core::MutexLock lock(mu_);
    stopped_ = true;
    for (const auto& [id, entry] : jobs_) {
      entry->job.cancelled_.store(true, std::memory_order_release);
      if (entry->thread.joinable()) running.push_back(std::move(entry->thread));
    }
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace dartfs::app
