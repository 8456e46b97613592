// The asking end of the control socket.
#pragma once

#include <cstddef>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"

namespace dartfs::app {

inline constexpr size_t kMostAnswerBytes = size_t{16} << 20;

// Sends one request line and gives the answer line, both without their newline. Blocks up to
// `timeout`. kUnavailable: no node there. kForbidden: not this user. kDeadlineExceeded.
// kBadResponse: the connection ended before a whole line came.
core::Result<std::string> AskNode(const std::string& socket_path, const std::string& request,
                                  core::Duration timeout);

}  // namespace dartfs::app
