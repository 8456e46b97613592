// MemoryBudget: the one limit on the memory of all flights, and the pool their buffers come from
// (touching fresh pages costs more than the transfer). Read-ahead may hold three quarters of it and
// one group (an origin) half, so that neither read-ahead nor a stalled origin starves what somebody
// waits for. Pooled buffers count against the limit too, and go when nothing has been asked for in
// a while. A single buffer is always granted while nothing else is held.
//
// Thread-safe. Buffers may outlive the budget.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/buffer.h"
#include "core/base/scheduler.h"
#include "core/base/unique_function.h"
#include "core/io/http_client.h"

namespace dartfs::core {

using SharedBuffer = std::shared_ptr<AlignedBuffer>;
using BufferGrant = UniqueFunction<void(SharedBuffer)>;

class MemoryBudget {
 public:
  MemoryBudget(uint64_t limit_bytes, uint64_t block_bytes, Scheduler& scheduler);
  ~MemoryBudget();  // outstanding waits are dropped, their grants never called

  // A buffer of `bytes` (at most block_bytes) with unspecified content, or null when there is no
  // room.
  SharedBuffer TryAcquire(const std::string& group, size_t bytes, Priority priority);
  // Calls `grant` once, as a task of the scheduler, when there is room; demand before read-ahead,
  // else first come first served. Returns an ID for CancelWait.
  uint64_t Acquire(const std::string& group, size_t bytes, Priority priority, BufferGrant grant);
  // The wait goes on as one of that priority, behind those of it that wait already; never lowers.
  void RaiseWait(uint64_t id, Priority priority);
  // True: `grant` will not be called.
  bool CancelWait(uint64_t id);

  uint64_t used_bytes() const;
  uint64_t pooled_bytes() const;
  uint64_t limit_bytes() const;
  // How much read-ahead may hold.
  uint64_t read_ahead_limit_bytes() const { return limit_bytes() / 4 * 3; }

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dartfs::core
