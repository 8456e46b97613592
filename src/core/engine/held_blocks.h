// HeldBlocks: fetched ahead and stored, but not read so far: their buffers stay in memory for the
// reader that had them fetched, which then need not read them back from the disk. At most
// `limit_bytes` of all readers; the oldest go first, also when memory is wanted for fetches, and
// all that nobody reads for a while. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/scheduler.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"

namespace dartfs::core {

class HeldBlocks {
 public:
  static constexpr Duration kIdle = std::chrono::seconds(10);
  using Id = uint64_t;
  static constexpr Id kNone = 0;

  HeldBlocks(uint64_t limit_bytes, Scheduler& scheduler);
  ~HeldBlocks();

  // `drop` lets the buffer go; it is called at most once, without locks, on any thread, also before
  // Add returns.
  // `group` is the memory budget's.
  Id Add(const std::string& group, uint64_t bytes, UniqueFunction<void()> drop);
  // The block has been read, or its reader has gone: `drop` will not be called (it may run at this
  // moment).
  void Remove(Id id);
  // Memory is wanted by that group: soon, on a scheduler's thread, that much of its own blocks is
  // let go, and of others' what it lacks.
  void ReleaseSoon(const std::string& group, uint64_t bytes);
  uint64_t bytes() const;  // no lock

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dartfs::core
