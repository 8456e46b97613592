// The listening socket, and the thread that hands its connections to the workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "origin/worker.h"

namespace dartfs::origin {

// Public functions are thread-safe, but for Stop(): call it once, or twice in a row.
class Acceptor {
 public:
  // Listens on an IPv4 address and port (0: any free one). null: it cannot, `error` says why.
  // `workers` outlive this.
  static std::unique_ptr<Acceptor> Create(const std::string& address, std::uint16_t port,
                                          std::vector<Worker*> workers, std::string* error);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  std::uint16_t port() const { return port_; }
  // Connects are refused from when this returns, and all connections close. The port stays ours.
  // With a time, the origin comes back by itself after it.
  void GoAway(std::optional<std::chrono::milliseconds> time);
  // False: the port could not be listened on again.
  bool ComeBack();
  void Stop();

 private:
  Acceptor(const std::string& address, std::vector<Worker*> workers);
  bool Reserve(std::uint16_t port, std::string* error);
  bool ListenLocked();
  void Run();
  void AcceptOne();
  Worker& LeastLoaded() const;
  void Wake();

  const std::string address_;
  const std::vector<Worker*> workers_;
  int reserved_fd_ = -1;  // bound, never listening: keeps the port while the origin is gone
  std::uint16_t port_ = 0;
  const int wake_fd_;

  std::mutex mu_;
  // Guarded by mu_.
  int listen_fd_ = -1;
  bool stop_ = false;
  std::optional<std::chrono::steady_clock::time_point> back_at_;
  std::thread thread_;
};

}  // namespace dartfs::origin
