#include "fs/idle_trim.h"

#include <utility>

namespace dartfs::fs {

struct IdleTrim::State : std::enable_shared_from_this<State> {
  State(core::Scheduler& s, std::function<void()> t) : scheduler(s), trim(std::move(t)) {}

  core::Scheduler& scheduler;
  const std::function<void()> trim;
  std::atomic<uint64_t> noted{0};
  std::atomic<bool> waiting{false};

  // Trims once nothing has been noted for kQuiet.
  void Wait(uint64_t seen) {
    scheduler.After(kQuiet, [self = shared_from_this(), seen] {
      const uint64_t now = self->noted.load(std::memory_order_relaxed);
      if (now != seen) return self->Wait(now);
      self->noted.fetch_sub(now, std::memory_order_relaxed);
      self->waiting.store(false, std::memory_order_relaxed);
      // Not quite what a task may do: milliseconds, and allocations of other threads wait for it.
      // No thread is kept for what happens once after a walk of ten thousand names.
      self->trim();
    });
  }
};

IdleTrim::IdleTrim(core::Scheduler& scheduler, std::function<void()> trim)
    : state_(std::make_shared<State>(scheduler, std::move(trim))) {}

void IdleTrim::Note(uint64_t names) {
  const uint64_t now = state_->noted.fetch_add(names, std::memory_order_relaxed) + names;
  if (now < kWorthIt || state_->waiting.exchange(true, std::memory_order_relaxed)) return;
  state_->Wait(now);
}

}  // namespace dartfs::fs
