#include "core/store/file_syncs.h"

#include <chrono>
#include <utility>

#include "core/base/mutex.h"

namespace dartfs::core {
namespace {

// Outlives the wait, for completions that come after the deadline.
struct Outcomes {
  Mutex mu;
  CondVar all_done;
  std::vector<Status> statuses GUARDED_BY(mu);
  size_t left GUARDED_BY(mu) = 0;
};

}  // namespace

std::vector<Status> SyncAll(DiskIo& io, const std::vector<std::shared_ptr<ObjectFile>>& files,
                            Duration deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  const auto outcomes = std::make_shared<Outcomes>();
  {
    MutexLock lock(outcomes->mu);
    outcomes->left = files.size();
    for (size_t i = 0; i < files.size(); ++i) {
      outcomes->statuses.push_back(
          MakeError(Code::kDeadlineExceeded,
                    "fdatasync took longer than " + std::to_string(ToMillis(deadline)) + " ms"));
    }
  }
  for (size_t i = 0; i < files.size(); ++i) {
    io.Sync(files[i]->fd(), [outcomes, i, file = files[i]](Status status) {
      MutexLock lock(outcomes->mu);
      outcomes->statuses[i] = std::move(status);
      if (--outcomes->left == 0) outcomes->all_done.NotifyAll();
    });
  }
  MutexLock lock(outcomes->mu);
  while (outcomes->left > 0) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) break;
    outcomes->all_done.WaitFor(outcomes->mu, left);
  }
  return outcomes->statuses;
}

}  // namespace dartfs::core
