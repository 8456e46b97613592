#include "app/warm_window.h"

#include <chrono>
#include <utility>

namespace dartfs::app {

void WarmWindow::Add(std::shared_ptr<core::Object> object, const core::Requester& requester,
                     std::string shown) {
  WaitUntilFewerThan(kAtOnce);
  if (job_.cancelled()) return;
  const auto ring = [bell = bell_](const core::Status&) {
    core::MutexLock lock(bell->mu);
    ++bell->count;
    bell->rang.NotifyAll();
  };
  running_.push_back({std::move(shown), engine_.StartFill(std::move(object), requester, ring)});
}

void WarmWindow::Finish() {
  WaitUntilFewerThan(1);
  running_.clear();
}

void WarmWindow::WaitUntilFewerThan(size_t most) {
  constexpr auto kLook = std::chrono::milliseconds(200);  // how often progress is taken
  while (!job_.cancelled()) {
    uint64_t before = 0;
    {
      core::MutexLock lock(bell_->mu);
      before = bell_->count;
    }
    TakeEnded();
    if (running_.size() < most) return;
    core::MutexLock lock(bell_->mu);
    if (bell_->count == before) bell_->rang.WaitFor(bell_->mu, kLook);
  }
}

void WarmWindow::TakeEnded() {
  uint64_t under_way = 0;
  for (auto it = running_.begin(); it != running_.end();) {
    const core::FillProgress progress = it->fill->Progress();
    if (!progress.done) {
      under_way += progress.present_bytes;
      ++it;
      continue;
    }
    ended_bytes_ += progress.present_bytes;
    if (progress.error) {
      job_.Fail(it->shown, *progress.error);
    } else {
      job_.Update([](JobProgress& total) { ++total.objects_done; });
    }
    it = running_.erase(it);
  }
  job_.Update([&](JobProgress& total) { total.bytes_done = ended_bytes_ + under_way; });
}

}  // namespace dartfs::app
