#include "core/engine/memory_budget.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace dartfs::core {

namespace {
constexpr Duration kIdle = std::chrono::seconds(30);

struct Wait {
  uint64_t id = 0;
  std::string group;
  size_t bytes = 0;
  Priority priority = Priority::kDemand;
  BufferGrant grant;
};
}  // namespace

struct MemoryBudget::State : std::enable_shared_from_this<MemoryBudget::State> {
  State(uint64_t limit_bytes, uint64_t block_bytes, Scheduler& s)
      : limit(limit_bytes), block(block_bytes), scheduler(s) {}

  const uint64_t limit;
  const uint64_t block;
  Scheduler& scheduler;

  mutable Mutex mu;  // innermost
  uint64_t used GUARDED_BY(mu) = 0;
  bool stopped GUARDED_BY(mu) = false;
  bool dispatch_posted GUARDED_BY(mu) = false;
  std::unordered_map<std::string, uint64_t> by_group GUARDED_BY(mu);
  std::vector<AlignedBuffer> free_blocks GUARDED_BY(mu);
  std::deque<Wait> waits[3] GUARDED_BY(mu);
  uint64_t next_id GUARDED_BY(mu) = 1;
  uint64_t charges GUARDED_BY(mu) = 0;
  bool look_posted GUARDED_BY(mu) = false;

  bool HasRoom(const std::string& group, size_t bytes, Priority priority) const REQUIRES(mu) {
    if (used == 0) return true;
    const uint64_t cap = priority == Priority::kDemand ? limit : limit / 4 * 3;
    if (used + bytes > cap) return false;
    const auto it = by_group.find(group);
    return it == by_group.end() || it->second == 0 || it->second + bytes <= limit / 2;
  }

  // Charges the bytes; `reuse` gets a pooled buffer where one fits.
  void Charge(const std::string& group, size_t bytes, AlignedBuffer* reuse) REQUIRES(mu) {
    used += bytes;
    by_group[group] += bytes;
    ++charges;
    if (bytes == block && !free_blocks.empty()) {
      *reuse = std::move(free_blocks.back());
      free_blocks.pop_back();
    }
    while (!free_blocks.empty() && used + free_blocks.size() * block > limit) {
      free_blocks.pop_back();
    }
  }

  SharedBuffer Wrap(const std::string& group, size_t bytes, AlignedBuffer reuse) {
    if (reuse.empty()) reuse = AlignedBuffer::Allocate(bytes);
    auto* raw = new AlignedBuffer(std::move(reuse));
    return {raw, [self = shared_from_this(), group, bytes](AlignedBuffer* p) {
              self->Release(group, bytes, std::move(*p));
              delete p;
            }};
  }

  void Release(const std::string& group, size_t bytes, AlignedBuffer buffer) {
    AlignedBuffer dropped;
    MutexLock lock(mu);
    used -= bytes;
    const auto it = by_group.find(group);
    it->second -= bytes;
    if (it->second == 0) by_group.erase(it);
    const bool pool =
        !stopped && bytes == block && used + (free_blocks.size() + 1) * block <= limit;
    if (pool) {
      free_blocks.push_back(std::move(buffer));
    } else {
      dropped = std::move(buffer);
    }
    PostDispatch();
    if (used == 0) LookWhenIdle();
  }

  // Buffers that nobody has asked for in a while go back to the system.
  void LookWhenIdle() REQUIRES(mu) {
    if (stopped || look_posted || free_blocks.empty()) return;
    look_posted = true;
    scheduler.After(kIdle, [weak = weak_from_this(), before = charges] {
      if (const auto self = weak.lock()) self->TrimIfIdleSince(before);
    });
  }

  void TrimIfIdleSince(uint64_t before) {
    std::vector<AlignedBuffer> dropped;
    MutexLock lock(mu);
    look_posted = false;
    if (used > 0) return;
    if (charges == before) {
      dropped.swap(free_blocks);
    } else {
      LookWhenIdle();
    }
  }

  void PostDispatch() REQUIRES(mu) {
    const bool waiting = !waits[0].empty() || !waits[1].empty() || !waits[2].empty();
    if (stopped || dispatch_posted || !waiting) return;
    dispatch_posted = true;
    scheduler.Post([self = shared_from_this()] { self->Dispatch(); });
  }

  void Dispatch() {
    {
      MutexLock lock(mu);
      dispatch_posted = false;
    }
    while (true) {
      Wait wait;
      AlignedBuffer reuse;
      {
        MutexLock lock(mu);
        if (stopped || !TakeGrantable(&wait)) return;
        Charge(wait.group, wait.bytes, &reuse);
      }
      wait.grant(Wrap(wait.group, wait.bytes, std::move(reuse)));
    }
  }

  // The first wait there is room for, in order of priority; a full group does not hold up others.
  bool TakeGrantable(Wait* out) REQUIRES(mu) {
    for (auto& queue : waits) {
      for (auto it = queue.begin(); it != queue.end(); ++it) {
        if (!HasRoom(it->group, it->bytes, it->priority)) continue;
        *out = std::move(*it);
        queue.erase(it);
        return true;
      }
    }
    return false;
  }
};

MemoryBudget::MemoryBudget(uint64_t limit_bytes, uint64_t block_bytes, Scheduler& scheduler)
    : state_(std::make_shared<State>(limit_bytes, block_bytes, scheduler)) {}

MemoryBudget::~MemoryBudget() {
  std::deque<Wait> dropped[3];
  std::vector<AlignedBuffer> free_blocks;
  MutexLock lock(state_->mu);
  state_->stopped = true;
  for (size_t i = 0; i < 3; ++i) dropped[i].swap(state_->waits[i]);
  free_blocks.swap(state_->free_blocks);
}

SharedBuffer MemoryBudget::TryAcquire(const std::string& group, size_t bytes, Priority priority) {
  AlignedBuffer reuse;
  {
    MutexLock lock(state_->mu);
    if (!state_->HasRoom(group, bytes, priority)) return nullptr;
    state_->Charge(group, bytes, &reuse);
  }
  return state_->Wrap(group, bytes, std::move(reuse));
}

uint64_t MemoryBudget::Acquire(const std::string& group, size_t bytes, Priority priority,
                               BufferGrant grant) {
  MutexLock lock(state_->mu);
  Wait wait;
  wait.id = state_->next_id++;
  wait.group = group;
  wait.bytes = bytes;
  wait.priority = priority;
  wait.grant = std::move(grant);
  const uint64_t id = wait.id;
  state_->waits[static_cast<size_t>(priority)].push_back(std::move(wait));
  state_->PostDispatch();
  return id;
}

void MemoryBudget::RaiseWait(uint64_t id, Priority priority) {
  MutexLock lock(state_->mu);
  for (size_t from = static_cast<size_t>(priority) + 1; from < std::size(state_->waits); ++from) {
    auto& queue = state_->waits[from];
    const auto it =
        std::find_if(queue.begin(), queue.end(), [id](const Wait& wait) { return wait.id == id; });
    if (it == queue.end()) continue;
    Wait raised = std::move(*it);
    queue.erase(it);
    raised.priority = priority;
    state_->waits[static_cast<size_t>(priority)].push_back(std::move(raised));
    state_->PostDispatch();
    return;
  }
}

bool MemoryBudget::CancelWait(uint64_t id) {
  Wait dropped;
  MutexLock lock(state_->mu);
  for (auto& queue : state_->waits) {
    const auto it =
        std::find_if(queue.begin(), queue.end(), [id](const Wait& wait) { return wait.id == id; });
    if (it == queue.end()) continue;
    dropped = std::move(*it);
    queue.erase(it);
    return true;
  }
  return false;
}

uint64_t MemoryBudget::used_bytes() const {
  MutexLock lock(state_->mu);
  return state_->used;
}

uint64_t MemoryBudget::pooled_bytes() const {
  MutexLock lock(state_->mu);
  return state_->free_blocks.size() * state_->block;
}

uint64_t MemoryBudget::limit_bytes() const { return state_->limit; }

}  // namespace dartfs::core
