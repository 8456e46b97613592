#include "origin/acceptor.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dartfs::origin {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBacklog = 4096;

// A socket bound to the address; -1 with errno.
int Bound(const std::string& address, std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &name.sin_addr) != 1) {
    errno = EINVAL;
    return -1;
  }
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) {
    const int saved = errno;
    close(fd);
    errno = saved;
    return -1;
  }
  return fd;
}

}  // namespace

std::unique_ptr<Acceptor> Acceptor::Create(const std::string& address, std::uint16_t port,
                                           std::vector<Worker*> workers, std::string* error) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor(address, std::move(workers)));
  if (!acceptor->Reserve(port, error)) return nullptr;
  acceptor->thread_ = std::thread([raw = acceptor.get()] {
    pthread_setname_np(pthread_self(), "origin-accept");
    raw->Run();
  });
  return acceptor;
}

Acceptor::Acceptor(const std::string& address, std::vector<Worker*> workers)
    : address_(address),
      workers_(std::move(workers)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Acceptor::~Acceptor() {
  Stop();
  if (listen_fd_ >= 0) close(listen_fd_);
  if (reserved_fd_ >= 0) close(reserved_fd_);
  close(wake_fd_);
}

bool Acceptor::Reserve(std::uint16_t port, std::string* error) {
  reserved_fd_ = Bound(address_, port);
  sockaddr_in name{};
  socklen_t size = sizeof name;
  if (reserved_fd_ >= 0) getsockname(reserved_fd_, reinterpret_cast<sockaddr*>(&name), &size);
  port_ = ntohs(name.sin_port);
  const std::lock_guard lock(mu_);
  if (reserved_fd_ >= 0 && ListenLocked()) return true;
  *error = fmt::format("cannot listen on {}:{}: {}", address_, port, std::strerror(errno));
  return false;
}

bool Acceptor::ListenLocked() {
  if (listen_fd_ >= 0) return true;
  const int fd = Bound(address_, port_);
  if (fd < 0) return false;
  if (listen(fd, kBacklog) != 0) {
    const int saved = errno;
    close(fd);
    errno = saved;
    return false;
  }
  listen_fd_ = fd;
  return true;
}

void Acceptor::GoAway(std::optional<std::chrono::milliseconds> time) {
  {
    const std::lock_guard lock(mu_);
    if (listen_fd_ >= 0) {
      // The thread that polls it holds the socket open a moment longer: end listening first.
      shutdown(listen_fd_, SHUT_RDWR);
      close(listen_fd_);
    }
    listen_fd_ = -1;
    back_at_.reset();
    if (time) back_at_ = Clock::now() + *time;
  }
  Wake();
  for (Worker* worker : workers_) worker->CloseAll();
}

bool Acceptor::ComeBack() {
  bool ok = false;
  {
    const std::lock_guard lock(mu_);
    back_at_.reset();
    ok = ListenLocked();
  }
  Wake();
  return ok;
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  Wake();
  thread_.join();
}

void Acceptor::Wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof one);
}

void Acceptor::Run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  for (;;) {
    pollfd fds[2] = {{wake_fd_, POLLIN, 0}, {-1, POLLIN, 0}};
    int timeout = -1;
    {
      const std::lock_guard lock(mu_);
      if (stop_) return;
      if (back_at_ && Clock::now() >= *back_at_ && ListenLocked()) back_at_.reset();
      if (back_at_) timeout = 5;
      fds[1].fd = listen_fd_;
    }
    poll(fds, 2, timeout);
    if ((fds[0].revents & POLLIN) != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t n = read(wake_fd_, &count, sizeof count);
    }
    if (fds[1].revents != 0) AcceptOne();
  }
}

void Acceptor::AcceptOne() {
  int fd = -1;
  {
    const std::lock_guard lock(mu_);  // the socket does not block
    if (listen_fd_ >= 0) fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      // Under the lock, so that GoAway() closes every connection accepted before it.
      LeastLoaded().Adopt(fd);
      return;
    }
  }
  // Out of descriptors: give the workers time to close some.
  if (errno == EMFILE || errno == ENFILE) poll(nullptr, 0, 10);
}

Worker& Acceptor::LeastLoaded() const {
  return **std::min_element(workers_.begin(), workers_.end(), [](const Worker* a, const Worker* b) {
    return a->connections() < b->connections();
  });
}

}  // namespace dartfs::origin
