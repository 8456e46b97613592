// An event thread and the connections that live on it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "origin/connection.h"

namespace dartfs::origin {

// Public functions are thread-safe, but for Stop(): call it once, or twice in a row.
class Worker {
 public:
  // Starts the thread.
  Worker(Service& service, const std::string& thread_name);
  ~Worker();  // stops it
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Takes a connected, non-blocking socket over.
  void Adopt(int fd);
  // Closes all connections, soon.
  void CloseAll();
  // Returns when what was asked before has been done. Not for a worker's own thread.
  void Settle();
  // Closes all connections and joins the thread.
  void Stop();
  std::size_t connections() const { return count_.load(std::memory_order_relaxed); }

 private:
  void Post(std::function<void()> task);
  void Run();
  static void OnWake(int, short, void* self);
  static void OnDead(Connection* connection, void* self);

  Service& service_;
  event_base* const base_;
  const int wake_fd_;
  event* const wake_;
  std::atomic<std::size_t> count_{0};
  bool stop_ = false;                                                         // on the thread only
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;  // on the thread only

  std::mutex mu_;
  std::vector<std::function<void()>> tasks_;  // guarded by mu_
  std::thread thread_;
};

}  // namespace dartfs::origin
