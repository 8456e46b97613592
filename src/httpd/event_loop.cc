#include "httpd/event_loop.h"

#include <event2/event.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "core/base/thread.h"

namespace dartfs::httpd {

using core::Result;

void EventLoop::FreeBase::operator()(event_base* base) const { event_base_free(base); }
void EventLoop::FreeEvent::operator()(event* e) const { event_free(e); }

namespace {
constexpr int64_t kMsPerSecond = 1000;
constexpr int64_t kNsPerMs = 1'000'000;

timeval TickTime() {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(EventLoop::kTick);
  return {0, static_cast<suseconds_t>(us.count())};
}
}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::Start(const std::string& name) {
  std::unique_ptr<EventLoop> loop(new EventLoop());
  loop->wake_ = core::UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!loop->wake_.valid()) return core::ErrnoError(errno, "making an eventfd");
  event_config* const config = event_config_new();
  // No locks: the base is one thread's, and others come by the eventfd.
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  loop->base_.reset(event_base_new_with_config(config));
  event_config_free(config);
  if (!loop->base_) return core::MakeError(core::Code::kInternal, "libevent makes no event base");
  EventLoop* const raw = loop.get();
  loop->wake_event_.reset(event_new(
      raw->base_.get(), raw->wake_.get(), EV_READ | EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<EventLoop*>(self)->RunTasks(); }, raw));
  loop->tick_event_.reset(event_new(
      raw->base_.get(), -1, EV_PERSIST,
      [](evutil_socket_t, short, void* self) {
        auto* const me = static_cast<EventLoop*>(self);
        me->ReadClocks();
        if (me->tick_) me->tick_();
      },
      raw));
  const timeval tick = TickTime();
  if (event_add(raw->wake_event_.get(), nullptr) != 0 ||
      event_add(raw->tick_event_.get(), &tick) != 0) {
    return core::MakeError(core::Code::kInternal, "libevent takes no event");
  }
  loop->ReadClocks();
  loop->thread_ = core::StartThread(name, [raw] { raw->Run(); });
  return loop;
}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::ReadClocks() {
  now_ = core::RealClock().Now();
  timespec unix{};
  clock_gettime(CLOCK_REALTIME_COARSE, &unix);
  unix_ms_ = unix.tv_sec * kMsPerSecond + unix.tv_nsec / kNsPerMs;
}

void EventLoop::Run() {
  while (!stop_.load(std::memory_order_acquire)) {
    if (event_base_loop(base_.get(), EVLOOP_ONCE) < 0) break;
  }
}

void EventLoop::Post(LoopTask task) {
  bool first = false;
  {
    core::MutexLock lock(mu_);
    if (stopped_) return;
    first = tasks_.empty();
    tasks_.push_back(std::move(task));
  }
  if (!first) return;
  const uint64_t one = 1;
  static_cast<void>(write(wake_.get(), &one, sizeof one));  // EAGAIN: it is readable already
}

void EventLoop::RunTasks() {
  uint64_t count = 0;
  static_cast<void>(read(wake_.get(), &count, sizeof count));
  ReadClocks();
  std::vector<LoopTask> tasks;
  {
    core::MutexLock lock(mu_);
    tasks.swap(tasks_);
  }
  for (LoopTask& task : tasks) {
    task();
    task = nullptr;
  }
}

void EventLoop::SetTick(LoopTask tick) { tick_ = std::move(tick); }

void EventLoop::Stop() {
  if (!thread_.joinable()) return;
  Post([this] { stop_.store(true, std::memory_order_release); });
  thread_.join();
  std::vector<LoopTask> unrun;
  {
    core::MutexLock lock(mu_);
    stopped_ = true;
    unrun.swap(tasks_);
  }
}

struct FdWatch::State {
  // The one in `events` for that direction is wanted or not.
  void Set(size_t direction, bool wanted) {
    if (want[direction] == wanted || events[direction] == nullptr) return;
    want[direction] = wanted;
    if (wanted) {
      event_add(events[direction].get(), nullptr);
    } else {
      event_del(events[direction].get());
    }
  }
  static void OnReady(evutil_socket_t, short what, void* state) {
    auto* const self = static_cast<State*>(state);
    self->loop.ReadClocks();
    self->ready((what & EV_READ) != 0, (what & EV_WRITE) != 0);
  }

  EventLoop& loop;
  core::UniqueFunction<void(bool, bool)> ready;
  std::array<std::unique_ptr<event, EventLoop::FreeEvent>, 2> events;  // to read, to write
  std::array<bool, 2> want{};
};

FdWatch::FdWatch(EventLoop& loop, int fd, core::UniqueFunction<void(bool, bool)> ready)
    : state_(new State{loop, std::move(ready), {}}) {
  constexpr std::array<short, 2> kDirections = {EV_READ, EV_WRITE};
  for (size_t i = 0; i < kDirections.size(); ++i) {
    const auto what = static_cast<short>(kDirections[i] | EV_PERSIST);
    state_->events[i].reset(event_new(loop.base_.get(), fd, what, &State::OnReady, state_.get()));
  }
}

FdWatch::~FdWatch() = default;

void FdWatch::Want(bool read, bool write) {
  state_->Set(0, read);
  state_->Set(1, write);
}

}  // namespace dartfs::httpd
