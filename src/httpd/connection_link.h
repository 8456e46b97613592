// ConnectionLink: an exchange's way back to its connection, from any thread. Part of the server.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "httpd/event_loop.h"
#include "httpd/exchange.h"

namespace dartfs::httpd {

class Connection;

class ConnectionLink final : public ExchangeLink {
 public:
  // `gone`: the connection is no more; `alive`: the links that somebody still holds.
  ConnectionLink(std::shared_ptr<EventLoop> loop, std::weak_ptr<Connection> connection,
                 uint64_t exchange, std::shared_ptr<std::atomic<bool>> gone,
                 std::shared_ptr<std::atomic<size_t>> alive);
  ~ConnectionLink() override;

  void Answer(ResponseHead head, std::unique_ptr<Body> body, AccessNote note) override;
  // By a task: what the client has sent behind its request is known only then.
  void HandOver(ResponseHead head, std::unique_ptr<Takeover> takeover, AccessNote note) override;
  std::shared_ptr<EventLoop> loop() const override { return loop_; }
  bool gone() const override { return gone_->load(std::memory_order_relaxed); }

 private:
  const std::shared_ptr<EventLoop> loop_;
  const std::weak_ptr<Connection> connection_;
  const uint64_t exchange_;
  const std::shared_ptr<std::atomic<bool>> gone_;
  const std::shared_ptr<std::atomic<size_t>> alive_;
};

}  // namespace dartfs::httpd
