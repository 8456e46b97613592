#include "app/control_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/unix_socket.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {
namespace {

using core::TimePoint;
using core::UniqueFd;

// A connection: reads one line, waits for the answer, writes it, and is over. The server's thread
// only.
struct Client {
  enum class Stage { kReading, kWaiting, kWriting, kOver };
  UniqueFd fd;
  uint64_t id = 0;
  TimePoint deadline;
  Stage stage = Stage::kReading;
  ControlRequest request;
  std::string answer;
  size_t written = 0;

  short events() const {
    if (stage == Stage::kReading) return POLLIN;
    return stage == Stage::kWriting ? POLLOUT : short{0};  // what waits hears of a hang-up alone
  }
};

// Answers on their way to the server's thread, and its bell. Thread-safe; outlives the server where
// an answer comes late.
class Mailbox {
 public:
  struct Letter {
    uint64_t client = 0;
    std::string answer;
  };
  explicit Mailbox(UniqueFd bell) : bell_(std::move(bell)) {}

  int bell() const { return bell_.get(); }
  void Ring() const {
    const uint64_t one = 1;
    // An eventfd refuses only at its maximum, which is as good as rung.
    [[maybe_unused]] const ssize_t told = write(bell_.get(), &one, sizeof one);
  }
  void Put(Letter letter) {
    {
      core::MutexLock lock(mu_);
      letters_.push_back(std::move(letter));
    }
    Ring();
  }
  std::vector<Letter> Take() {
    uint64_t rings = 0;
    [[maybe_unused]] const ssize_t heard = read(bell_.get(), &rings, sizeof rings);
    core::MutexLock lock(mu_);
    return std::exchange(letters_, {});
  }

 private:
  const UniqueFd bell_;
  core::Mutex mu_;  // leaf
  std::vector<Letter> letters_ GUARDED_BY(mu_);
};

class ControlServerImpl final : public ControlServer {
 public:
  ControlServerImpl(ControlServerOptions options, ControlHandler handler, UniqueFd listener,
                    UniqueFd bell)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        listener_(std::move(listener)),
        mailbox_(std::make_shared<Mailbox>(std::move(bell))),
        thread_(core::StartThread("control", [this] { Run(); })) {}
  ~ControlServerImpl() override { Stop(); }

  void Stop() override {
    if (!thread_.joinable()) return;
    stopping_.store(true, std::memory_order_release);
    mailbox_->Ring();
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
          {mailbox_->bell(), POLLIN, 0},
          {listener_.get(), static_cast<short>(accepting ? POLLIN : 0), 0}};
      for (const Client& client : clients_) {
        polled.push_back({client.fd.get(), client.events(), 0});
      }
      if (poll(polled.data(), polled.size(), PollTimeoutMs()) < 0 && errno != EINTR) {
        LOG_ERROR("control socket: poll: errno {}; dartfsctl has no answer from now on", errno);
        return;
      }
      for (size_t i = 0; i < clients_.size(); ++i) {
        if (polled[i + 2].revents != 0) Advance(clients_[i]);
      }
      if (polled[0].revents != 0) Deliver();
      const TimePoint now = core::RealClock().Now();
      std::erase_if(clients_, [now](const Client& c) {
        return c.stage == Client::Stage::kOver || c.deadline <= now;
      });
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
    client.id = ++last_id_;
    client.deadline = core::RealClock().Now() + options_.client_deadline;
    clients_.push_back(std::move(client));
  }

  // A client that has gone gets no answer.
  void Deliver() {
    for (Mailbox::Letter& letter : mailbox_->Take()) {
      const auto found = std::find_if(clients_.begin(), clients_.end(), [&letter](const Client& c) {
        return c.id == letter.client && c.stage == Client::Stage::kWaiting;
      });
      if (found == clients_.end()) continue;
      found->answer = std::move(letter.answer) + "\n";
      found->stage = Client::Stage::kWriting;
      found->deadline = core::RealClock().Now() + options_.client_deadline;
      WriteAnswer(*found);
    }
  }

  void Advance(Client& client) {
    switch (client.stage) {
      case Client::Stage::kReading:
        return ReadRequest(client);
      case Client::Stage::kWaiting:
        client.stage = Client::Stage::kOver;
        return;
      case Client::Stage::kWriting:
        return WriteAnswer(client);
      case Client::Stage::kOver:
        return;
    }
  }

  void Ask(Client& client, size_t end) {
    client.stage = Client::Stage::kWaiting;
    client.deadline = core::RealClock().Now() + options_.answer_deadline;
    client.request.line.resize(std::min(end, client.request.line.size()));
    handler_(std::move(client.request), [mailbox = mailbox_, id = client.id](std::string line) {
      mailbox->Put({id, std::move(line)});
    });
  }

  void ReadRequest(Client& client) {
    std::array<char, 4096> buffer;
    while (true) {
      const ssize_t got = ReceiveWithFd(client.fd.get(), buffer, client.request.fd);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      std::string& line = client.request.line;
      if (got > 0) line.append(buffer.data(), static_cast<size_t>(got));
      const size_t end = line.find('\n');
      if (end != std::string::npos || (got == 0 && !line.empty())) return Ask(client, end);
      if (got <= 0 || line.size() > options_.max_request_bytes) {
        client.stage = Client::Stage::kOver;
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
    client.stage = Client::Stage::kOver;
  }

  const ControlServerOptions options_;
  const ControlHandler handler_;
  UniqueFd listener_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::atomic<bool> stopping_{false};
  TimePoint accept_from_{};      // the server's thread
  uint64_t last_id_ = 0;         // the server's thread
  std::vector<Client> clients_;  // the server's thread; Stop after it is joined
  std::thread thread_;           // last: it uses all of the above
};

}  // namespace

core::Result<std::unique_ptr<ControlServer>> ControlServer::Create(ControlServerOptions options,
                                                                   ControlHandler handler) {
  TRY_ASSIGN(UniqueFd listener, ListenUnix(options.path));
  UniqueFd bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.valid()) return core::ErrnoError(errno, "eventfd");
  return std::unique_ptr<ControlServer>(std::make_unique<ControlServerImpl>(
      std::move(options), std::move(handler), std::move(listener), std::move(bell)));
}

}  // namespace dartfs::app
