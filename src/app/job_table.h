// JobTable: long work that the control socket asks for (warm, evict, verify, ...). Each job has a
// thread of its own, of a bounded number; who asked looks in on it by its number. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace dartfs::app {

enum class JobState : uint8_t { kRunning, kDone, kFailed, kCancelled };

// How far a job is. Objects found grow while directories are still being walked (`walking`).
struct JobProgress {
  bool walking = true;
  uint64_t objects_found = 0, objects_done = 0, objects_failed = 0;
  uint64_t bytes_total = 0, bytes_done = 0;
  uint64_t bad_granules = 0;        // verify
  std::vector<std::string> errors;  // the first of them, for people
};

struct JobFacts {
  uint64_t id = 0;
  std::string verb;
  std::string what;  // for people
  JobState state = JobState::kRunning;
  core::Duration age{};   // since its start
  core::Duration took{};  // once it is over
  JobProgress progress;
};

// What a job's own thread sees of it.
class Job {
 public:
  static constexpr size_t kMostErrors = 16;

  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  // Changes the progress, under its lock: no waiting in there.
  void Update(const std::function<void(JobProgress&)>& change);
  // Counts a failed object, and keeps what is said of the first ones.
  void Fail(const std::string& what, const core::Error& error);
  JobProgress Progress() const;

 private:
  friend class JobTable;
  std::atomic<bool> cancelled_{false};
  mutable core::Mutex mu_;  // leaf
  JobProgress progress_ GUARDED_BY(mu_);
};

class JobTable {
 public:
  static constexpr size_t kMostRunning = 16;
  static constexpr size_t kMostKept = 64;  // that are over

  JobTable();
  ~JobTable();  // Stop

  // The number of the new job. kBusy: too many run; kUnavailable: stopped.
  core::Result<uint64_t> Start(std::string verb, std::string what, std::function<void(Job&)> body);
  std::optional<JobFacts> Find(uint64_t id);
  std::vector<JobFacts> All();
  // It ends soon. False: there is none that runs.
  bool Cancel(uint64_t id);
  // Cancels all and joins. Twice is fine.
  void Stop();

 private:
  struct Entry;
  JobFacts FactsOf(uint64_t id, const Entry& entry) const REQUIRES(mu_);
  void ForgetOldOnes() REQUIRES(mu_);

  core::Mutex mu_;  // before a job's
  bool stopped_ GUARDED_BY(mu_) = false;
  uint64_t last_id_ GUARDED_BY(mu_) = 0;
  std::map<uint64_t, std::unique_ptr<Entry>> jobs_ GUARDED_BY(mu_);
};

}  // namespace dartfs::app
