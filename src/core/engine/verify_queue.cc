#include "core/engine/verify_queue.h"

#include <deque>
#include <thread>
#include <unordered_set>
#include <utility>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace dartfs::core {

struct VerifyQueue::State {
  Mutex mu;  // a leaf
  CondVar wake;
  std::deque<std::shared_ptr<Object>> queue GUARDED_BY(mu);
  // Of the queue and the one being checked: several Objects may be of one stored object.
  std::unordered_set<const StoredObject*> known GUARDED_BY(mu);
  std::thread thread;
};

VerifyQueue::VerifyQueue(Store& store) : store_(store), state_(std::make_unique<State>()) {
  state_->thread = StartThread("verify", [this] { Loop(); });
}

VerifyQueue::~VerifyQueue() { Stop(); }

void VerifyQueue::Enqueue(const std::shared_ptr<Object>& object) {
  MutexLock lock(state_->mu);
  if (stopped_.load(std::memory_order_relaxed) || state_->queue.size() >= kMostWaiting) return;
  if (!state_->known.insert(object->stored().get()).second) return;
  state_->queue.push_back(object);
  state_->wake.NotifyOne();
}

size_t VerifyQueue::waiting() const {
  MutexLock lock(state_->mu);
  return state_->known.size();
}

void VerifyQueue::Stop() {
  std::deque<std::shared_ptr<Object>> dropped;
  {
    MutexLock lock(state_->mu);
    stopped_.store(true, std::memory_order_relaxed);
    dropped.swap(state_->queue);
    state_->wake.NotifyAll();
  }
  if (state_->thread.joinable()) state_->thread.join();
}

void VerifyQueue::Loop() {
  LowerThreadPriority();
  while (true) {
    std::shared_ptr<Object> object;
    {
      MutexLock lock(state_->mu);
      while (state_->queue.empty() && !stopped_.load(std::memory_order_relaxed)) {
        state_->wake.Wait(state_->mu);
      }
      if (stopped_.load(std::memory_order_relaxed)) return;
      object = std::move(state_->queue.front());
      state_->queue.pop_front();
    }
    Check(*object);
    MutexLock lock(state_->mu);
    state_->known.erase(object->stored().get());
  }
}

void VerifyQueue::Check(const Object& object) {
  const std::string& url = object.facts().identity.redacted_url;
  const auto checked =
      store_.Verify(object.stored(), [this] { return !stopped_.load(std::memory_order_relaxed); });
  if (checked) {
    LOG_DEBUG("{}: its cache file has been read back and checked", url);
  } else if (!stopped_.load(std::memory_order_relaxed)) {
    LOG_INFO("{}: checking its cache file: {}", url, checked.error().ToString());
  }
}

}  // namespace dartfs::core
