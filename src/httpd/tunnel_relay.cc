#include "httpd/tunnel_relay.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace dartfs::httpd {

TunnelTotals Totals(const TunnelCounts& counts) {
  const auto read = [](const std::atomic<uint64_t>& count) {
    return count.load(std::memory_order_relaxed);
  };
  return {read(counts.open),   read(counts.total), read(counts.refused),
          read(counts.failed), read(counts.up),    read(counts.down)};
}
namespace {

constexpr uint64_t kTurnBytes = 4 * TunnelRelay::kBuffered;  // then it is the others' turn

bool IsNotNow(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

// Its close will tell the other side that something is missing.
void ResetOnClose(int fd) {
  const linger now{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace

TunnelRelay::TunnelRelay(std::shared_ptr<EventLoop> loop, core::UniqueFd upstream,
                         TunnelLimits limits, std::unique_ptr<TunnelPlace> place)
    : loop_(std::move(loop)),
      upstream_(std::move(upstream)),
      limits_(limits),
      place_(std::move(place)) {}

TunnelRelay::~TunnelRelay() {
  if (up_.done && down_.done) return;
  ResetOnClose(upstream_.get());
  if (client_.fd >= 0) ResetOnClose(client_.fd);
}

void TunnelRelay::Start(TakenSocket client) {
  client_ = std::move(client);
  TunnelCounts& counts = place_->counts();
  counts.total.fetch_add(1, std::memory_order_relaxed);
  up_.from = down_.to = client_.fd;
  up_.to = down_.from = upstream_.get();
  up_.count = &counts.up;
  down_.count = &counts.down;
  up_.waiting = std::move(client_.more);
  last_byte_ = loop_->now();
  const auto ready = [this](bool, bool) { OnReady(); };
  client_watch_ = std::make_unique<FdWatch>(*loop_, client_.fd, ready);
  upstream_watch_ = std::make_unique<FdWatch>(*loop_, upstream_.get(), ready);
  OnReady();
}

void TunnelRelay::OnReady() {
  if (ended_) return;
  const uint64_t before = up_.moved + down_.moved;
  if (!up_.Move() || !down_.Move()) return End(false);
  const uint64_t moved = up_.moved + down_.moved;
  if (moved > before) last_byte_ = loop_->now();
  if (moved > limits_.bytes) return End(false);
  if (up_.done && down_.done) return End(true);
  client_watch_->Want(up_.wants_read(), down_.wants_write());
  upstream_watch_->Want(down_.wants_read(), up_.wants_write());
}

void TunnelRelay::Tick() {
  if (!ended_ && loop_->now() - last_byte_ > limits_.idle_time) End(false);
}

void TunnelRelay::End(bool complete) {
  ended_ = true;
  client_watch_->Want(false, false);
  upstream_watch_->Want(false, false);
  client_.end(complete);
}

bool TunnelRelay::Way::Move() {
  static thread_local std::array<char, kBuffered> scratch;
  if (done) return true;
  for (const uint64_t until = moved + kTurnBytes; moved < until || ended;) {
    if (!Send()) return false;
    if (!waiting.empty()) return true;
    if (ended) {
      shutdown(to, SHUT_WR);
      done = true;
      return true;
    }
    const ssize_t got = recv(from, scratch.data(), scratch.size(), 0);
    if (got < 0) return IsNotNow(errno);
    ended = got == 0;
    waiting.assign(scratch.data(), static_cast<size_t>(got));
    taken = 0;
  }
  return true;
}

bool TunnelRelay::Way::Send() {
  while (taken < waiting.size()) {
    const ssize_t sent = send(to, waiting.data() + taken, waiting.size() - taken, MSG_NOSIGNAL);
    if (sent < 0) return IsNotNow(errno);
    taken += static_cast<size_t>(sent);
    moved += static_cast<uint64_t>(sent);
    count->fetch_add(static_cast<uint64_t>(sent), std::memory_order_relaxed);
  }
  // An idle tunnel holds no memory.
  std::string().swap(waiting);
  taken = 0;
  return true;
}

}  // namespace dartfs::httpd
