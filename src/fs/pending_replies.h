// PendingReplies: the requests that wait for an answer, so that an interrupt, or the end of the
// mount, can answer them early. One per session, shared with the timers that look at callers.
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "fs/caller.h"
#include "fs/reply.h"

namespace dartfs::fs {

class PendingReplies : public std::enable_shared_from_this<PendingReplies> {
 public:
  using Look = CallerState (*)(pid_t tid);
  // How often the caller of an interrupted request is looked at.
  static constexpr core::Duration kLookInterval = std::chrono::milliseconds(100);
  static constexpr core::Duration kWatchDelay = std::chrono::milliseconds(200);

  // Always owned by a shared_ptr. The scheduler outlives it.
  explicit PendingReplies(core::Scheduler& scheduler, Look look = &LookAtCaller)
      : scheduler_(scheduler), look_(look) {}

  // A request that will wait; Add follows. `caller` is the thread that made it, 0 when unknown. An
  // interrupt that comes before Add is kept until then.
  uint64_t Begin(pid_t caller);
  // From here on others may answer the request. Before it is answered.
  void Add(uint64_t id, std::shared_ptr<PendingReply> reply);
  // After it has been answered.
  void Remove(uint64_t id);

  // The kernel sent an interrupt for the request: once per request and for any signal. A caller
  // that is being killed gets kCancelled at once; one that is not is looked at again until the
  // answer; one that can't be seen waits for its answer. Takes only this table's locks, so it may
  // be called under libfuse's.
  void Interrupt(uint64_t id);
  // For requests whose caller waits uninterruptibly, so that no interrupt will come: looks at it by
  // itself, first after kWatchDelay.
  void Watch(uint64_t id) { LookAgain(id, kWatchDelay); }

  // Answers everything that waits now.
  void FailAll(const core::Error& error);
  // False when requests still wait after `timeout`. Blocks.
  bool WaitEmpty(core::Duration timeout);
  size_t size() const;

 private:
  struct Entry {
    pid_t caller = 0;
    std::shared_ptr<PendingReply> reply;  // null until Add
    bool interrupted = false;             // before Add
  };
  struct Shard {
    mutable core::Mutex mu;  // leaf
    std::unordered_map<uint64_t, Entry> entries GUARDED_BY(mu);
  };
  Shard& ShardOf(uint64_t id) { return shards_[id % shards_.size()]; }
  void LookAt(uint64_t id);
  void LookAgain(uint64_t id, core::Duration delay);

  core::Scheduler& scheduler_;
  const Look look_;
  std::atomic<uint64_t> next_id_{1};
  std::array<Shard, 16> shards_;
};

}  // namespace dartfs::fs
