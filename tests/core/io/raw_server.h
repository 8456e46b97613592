// RawServer: a TCP server whose every byte a test chooses. One thread per connection runs the
// test's handler; ending the server shuts all connections down and joins.
//
//   RawServer server([](RawServer::Connection& c) {
//     while (c.ReadRequest()) c.Write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
//   });
//   ... fetch server.Url("/x") ...
//   EXPECT_EQ(server.requests().size(), 1);
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/base/time.h"

namespace dartfs::core {

class RawServer final {
 public:
  class Connection {
   public:
    Connection(int fd, size_t connection_number, RawServer& server)
        : number(connection_number), fd_(fd), server_(server) {}

    const size_t number;  // 0 for the server's first

    // The next request's head as it came, with its last blank line; nullopt at the end.
    std::optional<std::string> ReadRequest() {
      size_t end;
      while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
        char chunk[4096];
        const ssize_t n = recv(fd_, chunk, sizeof(chunk), 0);
        if (n <= 0) return std::nullopt;
        buffer_.append(chunk, static_cast<size_t>(n));
      }
      std::string request = buffer_.substr(0, end + 4);
      buffer_.erase(0, end + 4);
      server_.Record(request);
      return request;
    }
    bool Write(std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(n));
      }
      return true;
    }
    // Blocks until the client, or the end of the server, closes the connection.
    void WaitClosed() {
      char chunk[4096];
      while (recv(fd_, chunk, sizeof(chunk), 0) > 0) continue;
    }
    // The connection ends with a RST when the handler returns.
    void ResetAtEnd() {
      const linger hard{1, 0};
      setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    }

   private:
    const int fd_;
    RawServer& server_;
    std::string buffer_;
  };
  using Handler = std::function<void(Connection&)>;

  explicit RawServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    DARTFS_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    DARTFS_CHECK(listen(listener_, 512) == 0);
    socklen_t size = sizeof(address);
    DARTFS_CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = StartThread("raw-accept", [this] { Accept(); });
  }
  ~RawServer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    close(listener_);
    std::vector<std::thread> threads;
    {
      MutexLock lock(mu_);
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  std::string Authority() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string Url(std::string_view path) const { return Authority() + std::string(path); }
  std::string HostPort() const { return "127.0.0.1:" + std::to_string(port_); }

  std::vector<std::string> requests() const {
    MutexLock lock(mu_);
    return requests_;
  }
  size_t connections() const {
    MutexLock lock(mu_);
    return accepted_;
  }
  size_t open_connections() const {
    MutexLock lock(mu_);
    return open_.size();
  }
  bool WaitForRequests(size_t count, Duration timeout = std::chrono::seconds(10)) const {
    return WaitFor([&] { return requests().size() >= count; }, timeout);
  }
  static bool WaitFor(const std::function<bool()>& condition,
                      Duration timeout = std::chrono::seconds(10)) {
    const TimePoint end = RealClock().Now() + timeout;
    while (!condition()) {
      if (RealClock().Now() >= end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  void Accept() {
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      MutexLock lock(mu_);
      open_.push_back(fd);
      const size_t number = accepted_++;
      threads_.push_back(StartThread("raw-conn", [this, fd, number] {
        Connection connection(fd, number, *this);
        handler_(connection);
        MutexLock inner(mu_);
        std::erase(open_, fd);
        close(fd);
      }));
    }
  }
  void Record(const std::string& request) {
    MutexLock lock(mu_);
    requests_.push_back(request);
  }

  const Handler handler_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::thread acceptor_;
  mutable Mutex mu_;  // no other lock is taken under it
  std::vector<int> open_ GUARDED_BY(mu_);
  size_t accepted_ GUARDED_BY(mu_) = 0;
  std::vector<std::thread> threads_ GUARDED_BY(mu_);
  std::vector<std::string> requests_ GUARDED_BY(mu_);
};

}  // namespace dartfs::core
