// AdminHandler: what an operator and his machines ask of a node: whether it lives, whether it is
// ready, its numbers, and a page that shows them.
//
//   /healthz  /readyz  /metrics  /admin/  /admin/stats  /admin/members
//   /admin/ring?key=<uint64>&n=<8>
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/scheduler.h"
#include "httpd/exchange.h"

namespace dartfs::httpd {

struct RingQuestion {
  uint64_t key = 0;
  size_t most = 8;  // members, at most 1,024
};

// Where the answers come from. An empty function: there is nothing of the kind here (503).
struct AdminSources {
  // Why the node can't serve yet, or any more, for people; "" when it can. On an event thread: must
  // not block.
  std::function<std::string()> not_ready;
  // These run on the handler's scheduler, several at a time.
  std::function<std::string()> metrics;                  // Prometheus, text format 0.0.4
  std::function<std::string()> stats;                    // JSON
  std::function<std::string()> members;                  // JSON
  std::function<std::string(const RingQuestion&)> ring;  // JSON
};

class AdminHandler final : public Handler {
 public:
  // Requests that wait for the scheduler; more are answered 503.
  static constexpr size_t kMostWaiting = 64;

  // `scheduler` may be made to wait for locks; it outlives the handler, and is stopped before what
  // the sources look at goes.
  AdminHandler(AdminSources sources, core::Scheduler& scheduler);
  void Handle(ExchangePtr exchange) override;

 private:
  using Source = std::function<std::string()>;
  void Ready(ExchangePtr exchange) const;
  void Ring(ExchangePtr exchange, std::string_view query);
  // `type` is a constant.
  void Produce(ExchangePtr exchange, std::string_view type, Source source);

  const AdminSources sources_;
  core::Scheduler& scheduler_;
  const std::shared_ptr<std::atomic<size_t>> waiting_ = std::make_shared<std::atomic<size_t>>(0);
};

}  // namespace dartfs::httpd
