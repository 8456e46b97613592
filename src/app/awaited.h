// For a thread that may wait (a job's): Awaited, one answer that comes by a completion; and
// RetryWhileBusy.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/mutex.h"
#include "core/base/result.h"

namespace dartfs::app {

template <typename T>
class Awaited {
 public:
  // The completion to hand out: once. It may come after nobody waits any more.
  auto Completion() {
    return [state = state_](core::Result<T> result) {
      core::MutexLock lock(state->mu);
      state->result.emplace(std::move(result));
      state->came.NotifyAll();
    };
  }
  // Blocks. kCancelled as soon as `cancelled` says so.
  core::Result<T> Wait(const std::function<bool()>& cancelled) {
    constexpr auto kStep = std::chrono::milliseconds(100);
    core::MutexLock lock(state_->mu);
    while (!state_->result) {
      if (cancelled()) return core::MakeError(core::Code::kCancelled, "cancelled");
      state_->came.WaitFor(state_->mu, kStep);
    }
    return std::move(*state_->result);
  }

 private:
  struct State {
    core::Mutex mu;  // leaf
    core::CondVar came;
    std::optional<core::Result<T>> result GUARDED_BY(mu);
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// What `call` says once it does not say kBusy any more; kBusy after `tries`, or once `cancelled`
// says so. Blocks.
template <typename Call>
auto RetryWhileBusy(const Call& call, int tries, std::chrono::milliseconds pause,
                    const std::function<bool()>& cancelled) {
  auto result = call();
  while (!result && result.error().code == core::Code::kBusy && --tries > 0 && !cancelled()) {
    std::this_thread::sleep_for(pause);
    result = call();
  }
  return result;
}

}  // namespace dartfs::app
