// Server: listening sockets, event threads, connections. One thread accepts and gives each
// connection to the thread that has the fewest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "httpd/exchange.h"
#include "httpd/limits.h"
#include "httpd/listen.h"

namespace dartfs::httpd {

struct ServedSocket {
  ListenSocket socket;
  Listener listener;
};

struct ServerOptions {
  size_t threads = 2;
  ServerLimits limits;
  // Of every exchange that is over; on an event thread, must not block. Empty: nobody wants it.
  std::function<void(const AccessRecord&)> on_answered = {};
};

struct ServerStats {
  uint64_t connections = 0;  // open now
  uint64_t accepted = 0;
  uint64_t exchanges = 0;             // that somebody holds
  uint64_t refused = 0;               // beyond the limit
  std::array<uint64_t, 6> answers{};  // by the first digit of the status
  uint64_t cut_off = 0;               // answers that did not go out whole
  uint64_t sent = 0;                  // bytes of bodies
};

class Server {
 public:
  // `handler` outlives the server.
  static core::Result<std::unique_ptr<Server>> Start(ServerOptions options,
                                                     std::vector<ServedSocket> sockets,
                                                     Handler& handler);
  ~Server();  // Stop

  ServerStats stats() const;
  // Accepts nothing any more; connections end when idle, or after the answer under way, at the
  // latest after the limits' drain_time: then they are cut. Blocks for that long. Exchanges that
  // are not answered yet live on. Twice is fine.
  void Drain();
  // Drain, waits until nobody holds an exchange any more, and ends the threads. What answers them
  // must have been stopped: after five seconds an exchange counts as lost, with a line in the log.
  void Stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dartfs::httpd
