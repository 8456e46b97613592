// EventLoop: one thread over libevent: readiness of descriptors, a tick, tasks of other threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_fd.h"
#include "core/base/unique_function.h"

struct event;
struct event_base;

namespace dartfs::httpd {

using LoopTask = core::UniqueFunction<void()>;

class EventLoop {
 public:
  static constexpr core::Duration kTick = std::chrono::milliseconds(100);

  // `name` is the thread's. Errors: kInternal, where the system has no descriptor left.
  static core::Result<std::unique_ptr<EventLoop>> Start(const std::string& name);
  ~EventLoop();  // Stop

  // Runs `task` soon on the loop's thread; any thread. After Stop it is destroyed unrun.
  void Post(LoopTask task);
  bool IsCurrent() const { return std::this_thread::get_id() == thread_.get_id(); }
  // Called on the loop's thread every kTick; set by a task of the loop, once.
  void SetTick(LoopTask tick);
  // As of the last event: cheap. The loop's thread alone.
  core::TimePoint now() const { return now_; }
  int64_t unix_now() const { return unix_ms_ / 1000; }
  int64_t unix_ms() const { return unix_ms_; }
  // Ends the thread. Not from it. Tasks that wait are destroyed. Twice is fine.
  void Stop();

 private:
  friend class FdWatch;
  struct FreeBase {
    void operator()(event_base* base) const;
  };
  struct FreeEvent {
    void operator()(event* e) const;
  };
  EventLoop() = default;
  void Run();
  void RunTasks();
  void ReadClocks();

  core::UniqueFd wake_;  // eventfd
  std::unique_ptr<event_base, FreeBase> base_;
  std::unique_ptr<event, FreeEvent> wake_event_;
  std::unique_ptr<event, FreeEvent> tick_event_;
  LoopTask tick_;
  core::TimePoint now_{};
  int64_t unix_ms_ = 0;
  std::atomic<bool> stop_{false};
  core::Mutex mu_;  // leaf
  std::vector<LoopTask> tasks_ GUARDED_BY(mu_);
  bool stopped_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

// Interest in a descriptor's readiness, level-triggered. The loop's thread alone; dropped before
// the descriptor is closed.
class FdWatch {
 public:
  // `ready` must not destroy the watch: its owner posts that.
  FdWatch(EventLoop& loop, int fd, core::UniqueFunction<void(bool readable, bool writable)> ready);
  ~FdWatch();
  FdWatch(const FdWatch&) = delete;
  FdWatch& operator=(const FdWatch&) = delete;
  void Want(bool read, bool write);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dartfs::httpd
