// AccessLog: a line for every request answered, in a file (or a pipe): one thread writes, event
// threads only hand over text.
//
//   2024-01-01T00:00:00.250Z 127.0.0.1:50312 GET /dart/http://h/a.img 206 4096 cache=4096 1.250 -
//
// time (UTC, of the end), client, method, target without query and logins, status, bytes of the
// body, the same by who gave them ("cache=1,origin=2,peer=3,relay=4", without those who gave none
// and what the node itself wrote), milliseconds, trace ID. "-": there is none.
// No field holds a space; foreign bytes are escaped. A line of an answer that did not go out whole
// ends with " cut".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "httpd/exchange.h"

namespace dartfs::httpd {

// With the newline. Pure.
std::string FormatAccessLine(const AccessRecord& record);

// The trace ID of a `traceparent` field (W3C Trace Context, section 3.2), 32 hex digits; "" where
// the field is none. Pure.
std::string TraceIdOf(std::string_view traceparent);

struct AccessLogOptions {
  std::string path;
  size_t pending_bytes = 4 << 20;  // of lines that wait for the disk; more are dropped
};

class AccessLog {
 public:
  // Opens the file for appending (0640 where it is new), starts the thread. kIo,
  // kInvalidArgument: no path.
  static core::Result<std::unique_ptr<AccessLog>> Open(AccessLogOptions options);
  ~AccessLog();  // writes what waits

  // Any thread; never waits for the disk. A line that has no room is dropped and counted; the log
  // says so.
  void Add(const AccessRecord& record);
  // The file has been moved away (rotation): it is opened anew by its name, soon. Any thread.
  void Reopen();
  // Lines that nobody will read: for want of room, or the disk would not take them.
  uint64_t dropped() const;

 private:
  struct Impl;
  explicit AccessLog(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace dartfs::httpd
