#include "fs/prober.h"

#include <atomic>
#include <utility>

#include "core/base/mutex.h"
#include "fs/dir_listings.h"

namespace dartfs::fs {
namespace {

constexpr size_t kProbesAtOnce = 16;
constexpr size_t kProbesPerRun = 4096;
constexpr size_t kRunsAtOnce = 4;
constexpr size_t kFailuresInRow = 3;  // then the origin has other worries
constexpr core::Duration kProbeTimeout = std::chrono::seconds(30);

using Opened = core::Result<std::shared_ptr<core::Object>>;

}  // namespace

struct Prober::State {
  State(core::Engine& e, core::OpenOptions o) : engine(e), options(std::move(o)) {}
  core::Engine& engine;
  const core::OpenOptions options;
  std::atomic<size_t> runs{0};
  std::atomic<bool> stopped{false};
};

class Prober::Run : public std::enable_shared_from_this<Run> {
 public:
  Run(std::shared_ptr<State> state, size_t count, TargetOf target_of)
      : state_(std::move(state)), count_(count), target_of_(std::move(target_of)) {
    state_->runs.fetch_add(1, std::memory_order_relaxed);
  }
  ~Run() { state_->runs.fetch_sub(1, std::memory_order_relaxed); }

  // Starts what may be started. A completion on this stack finds it running and leaves the rest to
  // it.
  void Pump() {
    {
      core::MutexLock lock(mu_);
      if (pumping_) return;
      pumping_ = true;
    }
    size_t looks = kLooksAtOnce;
    while (auto target = TakeNext(looks)) {
      if (state_->engine.OpenCached(target->url, target->digest)) {
        Done(true);
        continue;
      }
      core::OpenOptions options = state_->options;
      options.deadline = state_->engine.scheduler().clock().Now() + kProbeTimeout;
      options.digest = std::move(target->digest);
      state_->engine.Open(target->url, std::move(options),
                          [self = shared_from_this()](const Opened& opened) {
                            self->Done(opened || !MeansUnreachable(opened.error()));
                            self->Pump();
                          });
    }
  }

 private:
  // nullopt, and no longer pumping, when enough are under way, there is nothing left, or the last
  // of `looks` is done: then another task goes on.
  std::optional<ProbeTarget> TakeNext(size_t& looks) {
    core::MutexLock lock(mu_);
    const bool over =
        state_->stopped.load(std::memory_order_relaxed) || failures_in_row_ >= kFailuresInRow;
    while (!over && active_ < kProbesAtOnce && next_ < count_ && taken_ < kProbesPerRun) {
      if (looks == 0) {
        state_->engine.scheduler().Post([self = shared_from_this()] { self->Pump(); });
        break;
      }
      --looks;
      auto target = target_of_(next_++);
      if (!target) continue;
      ++taken_;
      ++active_;
      return target;
    }
    pumping_ = false;
    return std::nullopt;
  }

  void Done(bool reached) {
    core::MutexLock lock(mu_);
    --active_;
    failures_in_row_ = reached ? 0 : failures_in_row_ + 1;
  }

  const std::shared_ptr<State> state_;
  const size_t count_;
  const TargetOf target_of_;

  core::Mutex mu_;  // leaf, but for what target_of_ locks
  bool pumping_ GUARDED_BY(mu_) = false;
  size_t next_ GUARDED_BY(mu_) = 0;
  size_t taken_ GUARDED_BY(mu_) = 0;
  size_t active_ GUARDED_BY(mu_) = 0;
  size_t failures_in_row_ GUARDED_BY(mu_) = 0;
};

Prober::Prober(core::Engine& engine, core::OpenOptions options)
    : state_(std::make_shared<State>(engine, std::move(options))) {}

Prober::~Prober() { Stop(); }

bool Prober::HasRoom() const {
  return !state_->stopped.load(std::memory_order_relaxed) &&
         state_->runs.load(std::memory_order_relaxed) < kRunsAtOnce;
}

void Prober::Start(size_t count, TargetOf target_of) {
  std::make_shared<Run>(state_, count, std::move(target_of))->Pump();
}

void Prober::Stop() { state_->stopped.store(true, std::memory_order_relaxed); }

}  // namespace dartfs::fs
