#include "origin/worker.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <future>

namespace dartfs::origin {
namespace {

event_base* NewBase() {
  event_config* config = event_config_new();
  event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);  // each base stays on its thread
  event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  return base;
}

}  // namespace

Worker::Worker(Service& service, const std::string& thread_name)
    : service_(service),
      base_(NewBase()),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      wake_(event_new(base_, wake_fd_, EV_READ | EV_PERSIST, OnWake, this)) {
  event_add(wake_, nullptr);
  thread_ = std::thread([this, thread_name] {
    pthread_setname_np(pthread_self(), thread_name.c_str());
    Run();
  });
}

Worker::~Worker() {
  Stop();
  event_free(wake_);
  event_base_free(base_);
  close(wake_fd_);
}

void Worker::Run() {
  // sendfile has no flag against SIGPIPE, and no signal is for this thread.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (!stop_) event_base_loop(base_, EVLOOP_ONCE);
  connections_.clear();
}

void Worker::Adopt(int fd) {
  count_.fetch_add(1, std::memory_order_relaxed);
  Post([this, fd] {
    auto connection = std::make_unique<Connection>(base_, fd, service_);
    Connection* raw = connection.get();
    connections_.emplace(raw, std::move(connection));
    raw->Start(OnDead, this);
  });
}

void Worker::CloseAll() {
  Post([this] {
    count_.fetch_sub(connections_.size(), std::memory_order_relaxed);
    connections_.clear();
  });
}

void Worker::Settle() {
  std::promise<void> done;
  Post([&done] { done.set_value(); });
  done.get_future().wait();
}

void Worker::Stop() {
  if (!thread_.joinable()) return;
  Post([this] { stop_ = true; });
  thread_.join();
}

void Worker::Post(std::function<void()> task) {
  {
    const std::lock_guard lock(mu_);
    tasks_.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof one);
}

void Worker::OnWake(int fd, short, void* self) {
  auto* worker = static_cast<Worker*>(self);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(fd, &count, sizeof count);
  std::vector<std::function<void()>> tasks;
  {
    const std::lock_guard lock(worker->mu_);
    tasks.swap(worker->tasks_);
  }
  for (const auto& task : tasks) task();
}

void Worker::OnDead(Connection* connection, void* self) {
  auto* worker = static_cast<Worker*>(self);
  worker->connections_.erase(connection);
  worker->count_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace dartfs::origin
