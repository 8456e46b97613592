// The head of a response, as text. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/http_client.h"

namespace dartfs::httpd {

// How the end of the body is told (RFC 9112 section 6.3): always ours, whatever the origin used.
enum class Framing : uint8_t {
  kNone,     // 1xx, 204, 304: no body, nothing said of one
  kLength,   // Content-Length; of a HEAD the length that a GET would have
  kChunked,  // the length is not known
  kClose,    // the same towards an HTTP/1.0 client
};

struct ResponseHead {
  int status = 200;
  // Without those that the server sets itself: Content-Length, Transfer-Encoding, Connection, Date.
  std::vector<core::HttpHeader> headers;
  Framing framing = Framing::kLength;
  uint64_t content_length = 0;  // bytes, with kLength

  void Add(std::string_view name, std::string_view value);
  // Takes over a field of an origin's answer, if its value may stand in a header: no control bytes.
  void AddForeign(std::string_view name, const std::optional<std::string_view>& value);
};

struct ResponseLine {
  bool keep_alive = true;
  int minor_version = 1;  // of the request
  int64_t now = 0;        // seconds since the epoch
};

std::string RenderHead(const ResponseHead& head, const ResponseLine& line);

}  // namespace dartfs::httpd
