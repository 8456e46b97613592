// ControlServer: answers one-line requests on the cache directory's Unix socket (CONTROL.md).
//
// One named thread serves all clients with poll and calls the handler; neither ever waits for one
// client: a request or the reading of its answer that takes longer than the deadline, an answer
// that takes longer than its own, or a request longer than the limit, ends that client's
// connection. Owned by the node; stopped before what the handler uses.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_fd.h"
#include "core/base/unique_function.h"

namespace dartfs::app {

// Takes the answer to one request: a line without its newline. Any thread, also after the server
// has stopped; at most once.
using ControlAnswer = core::UniqueFunction<void(std::string line)>;

struct ControlRequest {
  std::string line;        // without its newline
  core::UniqueFd fd = {};  // what came with it, if anything did: of any kind
};

// Gets one request. Runs on the server's thread and must not block; what
// takes time answers later.
using ControlHandler = std::function<void(ControlRequest request, ControlAnswer answer)>;

// How long a client waits for its answer at most. The server waits longer, so that a client that
// is hung up on knows the node to be ending.
inline constexpr core::Duration kLongestAnswer = std::chrono::seconds(60);

struct ControlServerOptions {
  std::string path = {};
  uid_t allowed_uid = 0;  // besides root
  size_t max_request_bytes = 64 * 1024;
  size_t max_clients = 32;                                    // a further one is closed at once
  core::Duration client_deadline = std::chrono::seconds(10);  // to ask; and again to read
  core::Duration answer_deadline = kLongestAnswer + std::chrono::seconds(15);
};

class ControlServer {
 public:
  virtual ~ControlServer() = default;
  // kIo: the socket can't be made.
  static core::Result<std::unique_ptr<ControlServer>> Create(ControlServerOptions options,
                                                             ControlHandler handler);
  // Closes all, joins, removes the socket. Twice is fine.
  virtual void Stop() = 0;
};

}  // namespace dartfs::app
