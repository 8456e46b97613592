// ReadBuffers: memory for reads that could not be answered on the spot: limited, and used again and
// again, as pages that are touched for the first time cost more than the copy into them.
// Thread-safe; a leaf but for the scheduler's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "core/base/buffer.h"
#include "core/base/mutex.h"
#include "core/base/scheduler.h"
#include "core/base/unique_function.h"

namespace dartfs::core {

class ReadBuffers {
 public:
  static constexpr size_t kPooledBytes = size_t{1} << 20;  // what FUSE reads at most
  static constexpr size_t kLeastPooled = kPooledBytes / 8;
  static constexpr size_t kMostPooled = 8;

  ReadBuffers(uint64_t limit_bytes, Scheduler& scheduler);
  ~ReadBuffers();  // who still waits is not called

  // At least `size` bytes of unspecified content, whatever the limit.
  AlignedBuffer Take(size_t size);
  // The same within the limit; one is always granted while none is out.
  std::optional<AlignedBuffer> TryTake(size_t size);
  // Calls `granted` once, as a task of the scheduler, when there is room; first come, first served.
  void Wait(size_t size, UniqueFunction<void(AlignedBuffer)> granted);
  // A buffer of these, when it is done with. An empty one is fine.
  void Give(AlignedBuffer buffer);
  uint64_t used_bytes() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dartfs::core
