#include "core/engine/held_blocks.h"

#include <map>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace dartfs::core {

struct HeldBlocks::State : std::enable_shared_from_this<HeldBlocks::State> {
  struct Block {
    uint64_t bytes = 0;
    TimePoint since;
    UniqueFunction<void()> drop;
  };
  using Drops = std::vector<UniqueFunction<void()>>;

  State(uint64_t l, Scheduler& s) : limit(l), scheduler(s) {}

  Drops TakeOldest(uint64_t need) REQUIRES(mu) {
    Drops drops;
    for (uint64_t taken = 0; taken < need && !blocks.empty();) {
      taken += blocks.begin()->second.bytes;
      drops.push_back(TakeFirst());
    }
    return drops;
  }

  UniqueFunction<void()> TakeFirst() REQUIRES(mu) {
    const auto first = blocks.begin();
    used -= first->second.bytes;
    UniqueFunction<void()> drop = std::move(first->second.drop);
    blocks.erase(first);
    return drop;
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
      while (!blocks.empty() && blocks.begin()->second.since <= since) drops.push_back(TakeFirst());
      if (!blocks.empty()) LookLater();
    }
    for (auto& drop : drops) drop();
  }

  void Release() {
    Drops drops;
    {
      MutexLock lock(mu);
      drops = TakeOldest(std::exchange(wanted, 0));
    }
    for (auto& drop : drops) drop();
  }

  const uint64_t limit;
  Scheduler& scheduler;
  mutable Mutex mu;                           // a leaf but for the scheduler's
  std::map<Id, Block> blocks GUARDED_BY(mu);  // IDs grow: the oldest is the first
  Id last_id GUARDED_BY(mu) = kNone;
  uint64_t used GUARDED_BY(mu) = 0;
  uint64_t wanted GUARDED_BY(mu) = 0;  // by a task that is posted
  bool look_posted GUARDED_BY(mu) = false;
};

HeldBlocks::HeldBlocks(uint64_t limit_bytes, Scheduler& scheduler)
    : state_(std::make_shared<State>(limit_bytes, scheduler)) {}
HeldBlocks::~HeldBlocks() = default;

HeldBlocks::Id HeldBlocks::Add(uint64_t bytes, UniqueFunction<void()> drop) {
  State::Drops drops;
  Id id = kNone;
  {
    MutexLock lock(state_->mu);
    id = ++state_->last_id;
    state_->blocks.emplace(id,
                           State::Block{bytes, state_->scheduler.clock().Now(), std::move(drop)});
    state_->used += bytes;
    if (state_->used > state_->limit) drops = state_->TakeOldest(state_->used - state_->limit);
    state_->LookLater();
  }
  for (auto& each : drops) each();
  return id;
}

void HeldBlocks::Remove(Id id) {
  UniqueFunction<void()> dropped;  // destroyed without the lock
  MutexLock lock(state_->mu);
  const auto found = state_->blocks.find(id);
  if (found == state_->blocks.end()) return;
  state_->used -= found->second.bytes;
  dropped = std::move(found->second.drop);
  state_->blocks.erase(found);
}

void HeldBlocks::ReleaseSoon(uint64_t bytes) {
  MutexLock lock(state_->mu);
  if (state_->blocks.empty()) return;
  if (std::exchange(state_->wanted, state_->wanted + bytes) > 0) return;
  state_->scheduler.Post([state = state_] { state->Release(); });
}

uint64_t HeldBlocks::bytes() const {
  MutexLock lock(state_->mu);
  return state_->used;
}

}  // namespace dartfs::core
