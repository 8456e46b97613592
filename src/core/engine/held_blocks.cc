#include "core/engine/held_blocks.h"

#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace dartfs::core {

struct HeldBlocks::State : std::enable_shared_from_this<HeldBlocks::State> {
  struct Block {
    std::string group;
    uint64_t bytes = 0;
    TimePoint since;
    UniqueFunction<void()> drop;
  };
  using Blocks = std::map<Id, Block>;  // IDs grow: the oldest is the first
  using Drops = std::vector<UniqueFunction<void()>>;

  State(uint64_t l, Scheduler& s) : limit(l), scheduler(s) {}

  // The oldest, of one group or of all (null); how many bytes that were.
  uint64_t TakeOldest(uint64_t need, const std::string* group, Drops* drops) REQUIRES(mu) {
    uint64_t taken = 0;
    for (auto it = blocks.begin(); it != blocks.end() && taken < need;) {
      if (group == nullptr || it->second.group == *group) {
        taken += it->second.bytes;
        it = Take(it, drops);
      } else {
        ++it;
      }
    }
    return taken;
  }

  Blocks::iterator Take(Blocks::iterator at, Drops* drops) REQUIRES(mu) {
    used.fetch_sub(at->second.bytes, std::memory_order_relaxed);
    drops->push_back(std::move(at->second.drop));
    return blocks.erase(at);
  }

  void LookLater() REQUIRES(mu) {
    if (std::exchange(look_posted, true)) return;
    scheduler.After(kIdle / 2, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->DropIdle();
    });
  }

  void DropIdle() {
    Drops drops;
    {
      MutexLock lock(mu);
      look_posted = false;
      const TimePoint since = scheduler.clock().Now() - kIdle;
      while (!blocks.empty() && blocks.begin()->second.since <= since) {
        Take(blocks.begin(), &drops);
      }
      if (!blocks.empty()) LookLater();
    }
    for (auto& drop : drops) drop();
  }

  void Release() {
    Drops drops;
    {
      MutexLock lock(mu);
      for (const auto& [group, bytes] : std::exchange(wanted, {})) {
        const uint64_t own = TakeOldest(bytes, &group, &drops);
        if (own < bytes) TakeOldest(bytes - own, nullptr, &drops);
      }
    }
    for (auto& drop : drops) drop();
  }

  const uint64_t limit;
  Scheduler& scheduler;
  std::atomic<uint64_t> used{0};
  mutable Mutex mu;  // a leaf but for the scheduler's
  Blocks blocks GUARDED_BY(mu);
  Id last_id GUARDED_BY(mu) = kNone;
  std::map<std::string, uint64_t> wanted GUARDED_BY(mu);  // by a task that is posted, by group
  bool look_posted GUARDED_BY(mu) = false;
};

HeldBlocks::HeldBlocks(uint64_t limit_bytes, Scheduler& scheduler)
    : state_(std::make_shared<State>(limit_bytes, scheduler)) {}
HeldBlocks::~HeldBlocks() = default;

HeldBlocks::Id HeldBlocks::Add(const std::string& group, uint64_t bytes,
                               UniqueFunction<void()> drop) {
  State::Drops drops;
  Id id = kNone;
  {
    MutexLock lock(state_->mu);
    id = ++state_->last_id;
    state_->blocks.emplace(
        id, State::Block{group, bytes, state_->scheduler.clock().Now(), std::move(drop)});
    const uint64_t used = state_->used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (used > state_->limit) state_->TakeOldest(used - state_->limit, nullptr, &drops);
    state_->LookLater();
  }
  for (auto& each : drops) each();
  return id;
}

void HeldBlocks::Remove(Id id) {
  State::Drops dropped;  // destroyed without the lock
  MutexLock lock(state_->mu);
  const auto found = state_->blocks.find(id);
  if (found != state_->blocks.end()) state_->Take(found, &dropped);
}

void HeldBlocks::ReleaseSoon(const std::string& group, uint64_t bytes) {
  MutexLock lock(state_->mu);
  if (state_->blocks.empty()) return;
  const bool posted = !state_->wanted.empty();
  state_->wanted[group] += bytes;
  if (!posted) state_->scheduler.Post([state = state_] { state->Release(); });
}

uint64_t HeldBlocks::bytes() const { return state_->used.load(std::memory_order_relaxed); }

}  // namespace dartfs::core
