// RequestParser: the heads of HTTP/1 requests out of the bytes of a connection (RFC 9112), checked
// so strictly that nobody in front of us or behind us can read them differently. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/http_client.h"

namespace dartfs::httpd {

struct Request {
  std::string method;                     // as sent: methods differ by case
  std::string target;                     // as sent, bytes 0x21 to 0x7E
  int minor_version = 1;                  // of HTTP/1.x
  std::vector<core::HttpHeader> headers;  // in order, names as sent, values without spaces around
  bool keep_alive = true;                 // the client would go on with the connection
  bool chunked = false;                   // a body of that coding follows
  uint64_t content_length = 0;            // or a body of so many bytes
  bool expects_continue = false;

  bool has_body() const { return chunked || content_length > 0; }
  // The values of all fields of that name (any case), joined with ", "; nullopt: there is none.
  std::optional<std::string> Find(std::string_view name) const;
};

struct RequestLimits {
  size_t line_bytes = 20 * 1024;  // a URL of 16 KiB, and what stands before it
  size_t head_bytes = 64 * 1024;
  size_t headers = 128;
};

// What a request that can't be meant is answered, before the connection is closed.
struct BadRequest {
  int status = 400;  // 400, 414, 431, 501 or 505
  std::string why;   // for people
};

class RequestParser {
 public:
  enum class State : uint8_t { kMore, kDone, kBad };

  explicit RequestParser(RequestLimits limits = {}) : limits_(limits) {}

  // Takes bytes of the connection until the head is complete or can't become one; returns how many
  // were taken. Empty lines before a request mean nothing.
  size_t Feed(std::string_view bytes);
  State state() const { return state_; }
  // Whether a request has begun.
  bool started() const { return !head_.empty(); }
  // kDone: the request; the parser begins anew.
  Request Take();
  const BadRequest& bad() const { return bad_; }  // kBad

 private:
  void Fail(int status, std::string why);
  void FailVersion();
  void Parse();

  const RequestLimits limits_;
  State state_ = State::kMore;
  std::string head_;  // what has come of it
  Request request_;
  BadRequest bad_;
};

}  // namespace dartfs::httpd
