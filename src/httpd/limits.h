// What a server allows its clients. Times are of the loop's tick: they may last a tick longer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "core/base/time.h"
#include "httpd/request.h"

namespace dartfs::httpd {

struct ServerLimits {
  RequestLimits request;
  size_t connections = 16'384;                          // of one listener; more are answered 503
  core::Duration head_time = std::chrono::seconds(20);  // from a request's first byte to its last
  core::Duration idle_time = std::chrono::seconds(75);  // between requests
  // A client that takes nothing of an answer for so long has gone.
  core::Duration send_time = std::chrono::minutes(5);
  // An answer for which nothing has come for so long ends: 504 before its first byte, else cut off.
  core::Duration body_time = std::chrono::seconds(60);
  core::Duration total_time = std::chrono::hours(24);  // of one answer, from the request on
  // A client that takes nothing for so long has the memory behind its answer taken back.
  core::Duration rest_after = std::chrono::milliseconds(300);
  core::Duration drain_time = std::chrono::seconds(10);  // of a stop: answers under way
};

}  // namespace dartfs::httpd
