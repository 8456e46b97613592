#include "core/engine/read_buffers.h"

#include <utility>
#include <vector>

namespace dartfs::core {

struct ReadBuffers::State : std::enable_shared_from_this<ReadBuffers::State> {
  struct Waiter {
    size_t size = 0;
    UniqueFunction<void(AlignedBuffer)> granted;
  };

  State(uint64_t l, Scheduler& s) : limit(l), scheduler(s) {}

  static size_t Rounded(size_t size) {
    return size >= kLeastPooled && size <= kPooledBytes ? kPooledBytes : size;
  }
  bool HasRoom(size_t size) const REQUIRES(mu) {
    return used == 0 || used + Rounded(size) <= limit;
  }

  // Counted; empty where it must still be allocated, outside the lock.
  AlignedBuffer Charge(size_t size) REQUIRES(mu) {
    const size_t bytes = Rounded(size);
    used += bytes;
    if (bytes != kPooledBytes || pool.empty()) return {};
    AlignedBuffer buffer = std::move(pool.back());
    pool.pop_back();
    return buffer;
  }

  static AlignedBuffer Ready(AlignedBuffer buffer, size_t size) {
    return buffer.empty() ? AlignedBuffer::Allocate(Rounded(size)) : std::move(buffer);
  }

  void PostGrants() REQUIRES(mu) {
    if (waiters.empty() || std::exchange(posted, true)) return;
    scheduler.Post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Grant();
    });
  }

  void Grant() {
    {
      MutexLock lock(mu);
      posted = false;
    }
    while (true) {
      Waiter next;
      AlignedBuffer buffer;
      {
        MutexLock lock(mu);
        if (waiters.empty() || !HasRoom(waiters.front().size)) return;
        next = std::move(waiters.front());
        waiters.pop_front();
        buffer = Charge(next.size);
      }
      next.granted(Ready(std::move(buffer), next.size));
    }
  }

  const uint64_t limit;
  Scheduler& scheduler;
  mutable Mutex mu;
  uint64_t used GUARDED_BY(mu) = 0;  // bytes that are out
  std::vector<AlignedBuffer> pool GUARDED_BY(mu);
  std::deque<Waiter> waiters GUARDED_BY(mu);
  bool posted GUARDED_BY(mu) = false;
};

ReadBuffers::ReadBuffers(uint64_t limit_bytes, Scheduler& scheduler)
    : state_(std::make_shared<State>(limit_bytes, scheduler)) {}

ReadBuffers::~ReadBuffers() {
  std::deque<State::Waiter> dropped;
  MutexLock lock(state_->mu);
  dropped.swap(state_->waiters);
}

AlignedBuffer ReadBuffers::Take(size_t size) {
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  {
    MutexLock lock(state_->mu);
    buffer = state_->Charge(size);
  }
  return State::Ready(std::move(buffer), size);
}

std::optional<AlignedBuffer> ReadBuffers::TryTake(size_t size) {
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  {
    MutexLock lock(state_->mu);
    if (!state_->waiters.empty() || !state_->HasRoom(size)) return std::nullopt;
    buffer = state_->Charge(size);
  }
  return State::Ready(std::move(buffer), size);
}

void ReadBuffers::Wait(size_t size, UniqueFunction<void(AlignedBuffer)> granted) {
  MutexLock lock(state_->mu);
  state_->waiters.push_back({size, std::move(granted)});
  if (state_->HasRoom(state_->waiters.front().size)) state_->PostGrants();
}

void ReadBuffers::Give(AlignedBuffer buffer) {
  if (buffer.empty()) return;
  AlignedBuffer dropped;  // freed without the lock
  MutexLock lock(state_->mu);
  state_->used -= buffer.size();
  if (buffer.size() == kPooledBytes && state_->pool.size() < kMostPooled) {
    state_->pool.push_back(std::move(buffer));
  } else {
    dropped = std::move(buffer);
  }
  state_->PostGrants();
}

uint64_t ReadBuffers::used_bytes() const {
  MutexLock lock(state_->mu);
  return state_->used;
}

}  // namespace dartfs::core
