// TunnelRelay: a client's socket and an upstream's, each one's bytes handed to the other until both
// have ended. Of bytes that one side does not take at most kBuffered wait here; the other's then
// wait in the kernel, so that its sender slows down.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/time.h"
#include "core/base/unique_fd.h"
#include "httpd/event_loop.h"
#include "httpd/exchange.h"

namespace dartfs::httpd {

// Of all tunnels of a handler. Any thread.
struct TunnelCounts {
  std::atomic<uint64_t> open{0};     // with those that are being made
  std::atomic<uint64_t> total{0};    // made
  std::atomic<uint64_t> refused{0};  // by rule, or beyond the limit
  std::atomic<uint64_t> failed{0};   // no connection came about
  std::atomic<uint64_t> up{0};       // bytes from clients
  std::atomic<uint64_t> down{0};     // bytes to clients
};

// A look at them.
struct TunnelTotals {
  uint64_t open = 0, total = 0, refused = 0, failed = 0, up = 0, down = 0;
};
TunnelTotals Totals(const TunnelCounts& counts);

// One of the tunnels that may be open, from the request to the end.
class TunnelPlace {
 public:
  explicit TunnelPlace(std::shared_ptr<TunnelCounts> counts) : counts_(std::move(counts)) {}
  ~TunnelPlace() { counts_->open.fetch_sub(1, std::memory_order_relaxed); }
  TunnelPlace(const TunnelPlace&) = delete;
  TunnelPlace& operator=(const TunnelPlace&) = delete;
  TunnelCounts& counts() { return *counts_; }

 private:
  const std::shared_ptr<TunnelCounts> counts_;
};

struct TunnelLimits {
  core::Duration idle_time = std::chrono::minutes(10);  // no byte either way
  uint64_t bytes = UINT64_MAX;                          // both ways together; then it is cut off
};

// A side's end (a shutdown) is handed on, and the other way goes on; a tunnel that ends in any
// other way (an error, a limit, a stop) resets both, so that nobody takes a part for the whole.
class TunnelRelay final : public Takeover {
 public:
  static constexpr size_t kBuffered = 64 * 1024;  // each way

  // `upstream` is connected and non-blocking.
  TunnelRelay(std::shared_ptr<EventLoop> loop, core::UniqueFd upstream, TunnelLimits limits,
              std::unique_ptr<TunnelPlace> place);
  ~TunnelRelay() override;

  void Start(TakenSocket client) override;
  void Tick() override;
  uint64_t to_client() const override { return down_.moved; }

 private:
  // One way through the tunnel.
  struct Way {
    int from = -1, to = -1;
    std::atomic<uint64_t>* count = nullptr;
    std::string waiting;  // read, not yet taken
    size_t taken = 0;     // of that
    bool ended = false;   // the sender's end has been seen
    bool done = false;    // and handed on
    uint64_t moved = 0;

    // False: a socket is broken. Moves what can be moved now, within a turn's share.
    bool Move();
    bool Send();  // false: broken
    bool wants_read() const { return !ended && waiting.empty(); }
    bool wants_write() const { return !waiting.empty(); }
  };
  void OnReady();
  void End(bool complete);

  const std::shared_ptr<EventLoop> loop_;
  const core::UniqueFd upstream_;
  const TunnelLimits limits_;
  const std::unique_ptr<TunnelPlace> place_;
  TakenSocket client_;
  Way up_, down_;
  std::unique_ptr<FdWatch> client_watch_, upstream_watch_;
  core::TimePoint last_byte_{};
  bool ended_ = false;
};

}  // namespace dartfs::httpd
