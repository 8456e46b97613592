// HttpDoor: the node's HTTP listeners and who answers there. Made after the core, gone before it;
// main thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/node_core.h"
#include "app/options.h"
#include "app/reports.h"
#include "core/base/result.h"
#include "httpd/server.h"

namespace dartfs::app {

// A socket that this process was started with (sd_listen_fds(3)).
struct GivenSocket {
  int fd = -1;
  std::string name;  // of the socket unit: "admin", "peer"; any other is a client's
};
// Takes them out of the environment; none for a process that was not started so.
std::vector<GivenSocket> TakeGivenSockets();

class HttpDoor {
 public:
  // Listens: each plane by the sockets that were given for it, else as the options say; nullptr
  // where they say nowhere. `facts` is asked for on a thread of the admin plane, until Stop. kIo
  // with the address: a port is taken.
  static core::Result<std::unique_ptr<HttpDoor>> Open(const Options& options, NodeCore& core,
                                                      std::vector<GivenSocket> given,
                                                      std::function<NodeFacts()> facts);
  ~HttpDoor();  // Stop

  // "127.0.0.1:8145 (client, admin)", for logs and reports.
  const std::vector<std::string>& addresses() const { return addresses_; }
  httpd::ServerStats stats() const { return server_->stats(); }
  // Takes the logins anew from their file. An error leaves what holds.
  core::Status Reload(const Options& options);
  // Of tunnels made from now on. Any thread.
  void SetOriginPolicy(const core::OriginPolicy& policy);
  // After a rotation of the access log. Any thread.
  void ReopenLog();
  // Lets answers under way end, for ten seconds at most. Twice is fine.
  void Drain();
  // After the engine has stopped, so that nobody holds a request any more. Twice is fine.
  void Stop();

 private:
  struct Parts;
  HttpDoor();
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<httpd::Server> server_;
  std::vector<std::string> addresses_;
};

}  // namespace dartfs::app
