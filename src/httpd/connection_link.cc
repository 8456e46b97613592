#include "httpd/connection_link.h"

#include <utility>

#include "httpd/connection.h"

namespace dartfs::httpd {

ConnectionLink::ConnectionLink(std::shared_ptr<EventLoop> loop,
                               std::weak_ptr<Connection> connection, uint64_t exchange,
                               std::shared_ptr<std::atomic<bool>> gone,
                               std::shared_ptr<std::atomic<size_t>> alive)
    : loop_(std::move(loop)),
      connection_(std::move(connection)),
      exchange_(exchange),
      gone_(std::move(gone)),
      alive_(std::move(alive)) {
  alive_->fetch_add(1, std::memory_order_relaxed);
}

ConnectionLink::~ConnectionLink() { alive_->fetch_sub(1, std::memory_order_release); }

void ConnectionLink::Answer(ResponseHead head, std::unique_ptr<Body> body, AccessNote note) {
  if (loop_->IsCurrent()) {
    if (const auto connection = connection_.lock()) {
      connection->OnAnswer(exchange_, std::move(head), std::move(body), std::move(note));
    }
    return;
  }
  loop_->Post([weak = connection_, exchange = exchange_, head = std::move(head),
               body = std::move(body), note = std::move(note)]() mutable {
    if (const auto connection = weak.lock()) {
      connection->OnAnswer(exchange, std::move(head), std::move(body), std::move(note));
    }
  });
}

void ConnectionLink::HandOver(ResponseHead head, std::unique_ptr<Takeover> takeover,
                              AccessNote note) {
  loop_->Post([weak = connection_, exchange = exchange_, head = std::move(head),
               takeover = std::move(takeover), note = std::move(note)]() mutable {
    if (const auto connection = weak.lock()) {
      connection->OnHandOver(exchange, std::move(head), std::move(takeover), std::move(note));
    }
  });
}

}  // namespace dartfs::httpd
