// The asking end of the control socket.
#pragma once

#include <cstddef>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"

namespace dartfs::app {

inline constexpr size_t kMostAnswerBytes = size_t{16} << 20;

struct ControlQuestion {
  std::string line;  // without its newline
  int fd = -1;       // goes with it; stays the caller's
};

// Sends one request and gives the answer line, without its newline. Blocks up to `timeout`.
// kUnavailable: no node there. kForbidden: not this user. kDeadlineExceeded. kBadResponse: the
// connection ended before a whole line came.
core::Result<std::string> AskNode(const std::string& socket_path, const ControlQuestion& question,
                                  core::Duration timeout);

}  // namespace dartfs::app
