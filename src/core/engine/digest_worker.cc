#include "core/engine/digest_worker.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/engine/digest_check.h"

namespace dartfs::core {

struct DigestWorker::State {
  Mutex mu;  // a leaf
  CondVar wake;
  std::deque<std::shared_ptr<DigestCheck>> queue GUARDED_BY(mu);
  std::string filing GUARDED_BY(mu);  // a name, or ""
  CondVar filed;
  std::thread thread;
};

DigestWorker::DigestWorker(uint64_t held_limit_bytes)
    : held_(std::make_shared<HeldBytes>(held_limit_bytes)), state_(std::make_unique<State>()) {
  state_->thread = StartThread("digest", [this] { Loop(); });
}

DigestWorker::~DigestWorker() { Stop(); }

void DigestWorker::Enqueue(std::shared_ptr<DigestCheck> check) {
  MutexLock lock(state_->mu);
  if (stopped()) return;
  auto& queue = state_->queue;
  if (std::find(queue.begin(), queue.end(), check) != queue.end()) return;
  queue.push_back(std::move(check));
  state_->wake.NotifyOne();
}

void DigestWorker::File(const std::string& name, UniqueFunction<void()> file) {
  {
    MutexLock lock(state_->mu);
    state_->filing = name;
  }
  file();
  MutexLock lock(state_->mu);
  state_->filing.clear();
  state_->filed.NotifyAll();
}

void DigestWorker::AwaitFiled(const std::string& name) {
  const TimePoint until = RealClock().Now() + kFilingPatience;
  MutexLock lock(state_->mu);
  while (state_->filing == name) {
    const Duration left = until - RealClock().Now();
    if (left <= Duration::zero() || !state_->filed.WaitFor(state_->mu, left)) return;
  }
}

void DigestWorker::Stop() {
  std::deque<std::shared_ptr<DigestCheck>> dropped;
  {
    MutexLock lock(state_->mu);
    stopped_.store(true, std::memory_order_release);
    dropped.swap(state_->queue);
    state_->wake.NotifyAll();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

void DigestWorker::Loop() {
  LowerThreadPriority();
  while (true) {
    std::shared_ptr<DigestCheck> check;
    {
      MutexLock lock(state_->mu);
      while (state_->queue.empty() && !stopped()) state_->wake.Wait(state_->mu);
      if (stopped()) return;
      check = std::move(state_->queue.front());
      state_->queue.pop_front();
    }
    if (check->Run()) Enqueue(std::move(check));
  }
}

}  // namespace dartfs::core
