#include "app/control_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "app/unix_socket.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {
namespace {

using core::TimePoint;
using core::UniqueFd;

// A connection: reads one line, then writes one line, then is over. The server's thread only.
struct Client {
  UniqueFd fd;
  TimePoint deadline;
  std::string request;
  std::string answer;  // from here on it is written
  size_t written = 0;
  bool answering = false;
  bool over = false;
};

class ControlServerImpl final : public ControlServer {
 public:
  ControlServerImpl(ControlServerOptions options, ControlHandler handler, UniqueFd listener,
                    UniqueFd wake)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        listener_(std::move(listener)),
        wake_(std::move(wake)),
        thread_(core::StartThread("control", [this] { Run(); })) {}
  ~ControlServerImpl() override { Stop(); }

  void Stop() override {
    if (!thread_.joinable()) return;
    stopping_.store(true, std::memory_order_release);
    const uint64_t one = 1;
    // An eventfd refuses only at its maximum, which is as good as woken.
    [[maybe_unused]] const ssize_t told = write(wake_.get(), &one, sizeof one);
    thread_.join();
    clients_.clear();
    listener_.Reset();
    unlink(options_.path.c_str());
  }

 private:
  void Run() {
    while (!stopping_.load(std::memory_order_acquire)) {
      const bool accepting = accept_from_ <= core::RealClock().Now();
      std::vector<pollfd> polled = {
          {wake_.get(), POLLIN, 0},
          {listener_.get(), static_cast<short>(accepting ? POLLIN : 0), 0}};
      for (const Client& client : clients_) {
        polled.push_back(
            {client.fd.get(), static_cast<short>(client.answering ? POLLOUT : POLLIN), 0});
      }
      if (poll(polled.data(), polled.size(), PollTimeoutMs()) < 0 && errno != EINTR) {
        LOG_ERROR("control socket: poll: errno {}; dartfsctl has no answer from now on", errno);
        return;
      }
      for (size_t i = 0; i < clients_.size(); ++i) {
        if (polled[i + 2].revents != 0) Advance(clients_[i]);
      }
      const TimePoint now = core::RealClock().Now();
      std::erase_if(clients_, [now](const Client& c) { return c.over || c.deadline <= now; });
      if (polled[1].revents != 0) Accept();
    }
  }

  // Until the first client's deadline; without clients until something happens.
  int PollTimeoutMs() const {
    if (clients_.empty()) return -1;
    const auto first =
        std::min_element(clients_.begin(), clients_.end(),
                         [](const Client& a, const Client& b) { return a.deadline < b.deadline; });
    const int64_t left_ms = core::ToMillis(first->deadline - core::RealClock().Now()) + 1;
    return static_cast<int>(std::clamp<int64_t>(left_ms, 0, 60'000));
  }

  void Accept() {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      // No descriptors or no memory: the client stays in the queue, so poll would not wait.
      if (errno != EAGAIN) accept_from_ = core::RealClock().Now() + std::chrono::seconds(1);
      return;
    }
    const std::optional<uid_t> peer = PeerUid(fd.get());
    if (!peer || (*peer != 0 && *peer != options_.allowed_uid)) {
      LOG_WARN("control socket: refused a client of another user");
      return;
    }
    if (clients_.size() >= options_.max_clients) {
      LOG_WARN("control socket: refused a client: {} are being served", clients_.size());
      return;
    }
    Client client;
    client.fd = std::move(fd);
    client.deadline = core::RealClock().Now() + options_.client_deadline;
    clients_.push_back(std::move(client));
  }

  void Advance(Client& client) {
    if (!client.answering) ReadRequest(client);
    if (client.answering) WriteAnswer(client);
  }

  void ReadRequest(Client& client) {
    std::array<char, 4096> buffer;
    while (true) {
      const ssize_t got = recv(client.fd.get(), buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got > 0) client.request.append(buffer.data(), static_cast<size_t>(got));
      const size_t end = client.request.find('\n');
      if (end != std::string::npos || (got == 0 && !client.request.empty())) {
        client.answer = handler_(std::string_view(client.request).substr(0, end)) + "\n";
        client.answering = true;
        return;
      }
      if (got <= 0 || client.request.size() > options_.max_request_bytes) {
        client.over = true;
        return;
      }
    }
  }

  void WriteAnswer(Client& client) {
    while (client.written < client.answer.size()) {
      const ssize_t sent = send(client.fd.get(), client.answer.data() + client.written,
                                client.answer.size() - client.written, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) return;
      if (sent < 0) break;
      client.written += static_cast<size_t>(sent);
    }
    client.over = true;
  }

  const ControlServerOptions options_;
  const ControlHandler handler_;
  UniqueFd listener_;
  const UniqueFd wake_;
  std::atomic<bool> stopping_{false};
  TimePoint accept_from_{};      // the server's thread
  std::vector<Client> clients_;  // the server's thread; Stop after it is joined
  std::thread thread_;           // last: it uses all of the above
};

}  // namespace

core::Result<std::unique_ptr<ControlServer>> ControlServer::Create(ControlServerOptions options,
                                                                   ControlHandler handler) {
  TRY_ASSIGN(UniqueFd listener, ListenUnix(options.path));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return core::ErrnoError(errno, "eventfd");
  return std::unique_ptr<ControlServer>(std::make_unique<ControlServerImpl>(
      std::move(options), std::move(handler), std::move(listener), std::move(wake)));
}

}  // namespace dartfs::app
