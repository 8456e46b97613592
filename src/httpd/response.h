// The head of a response, as text. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dartfs::httpd {

// How the end of the body is told (RFC 9112 section 6.3): always ours, whatever the origin used.
enum class Framing : uint8_t {
  kNone,     // 1xx, 204, 304: no body, nothing said of one
  kLength,   // Content-Length; of a HEAD the length that a GET would have
  kChunked,  // the length is not known
  kClose,    // the same towards an HTTP/1.0 client
};

// Holds no Content-Length, Transfer-Encoding, Connection or Date: the server sets those itself.
class ResponseHead {
 public:
  int status = 200;
  std::string_view reason;  // outlives the head; empty: the one that RFC 9110 gives the status
  Framing framing = Framing::kLength;
  uint64_t content_length = 0;  // bytes, with kLength

  void Add(std::string_view name, std::string_view value);
  // Takes over a field of an origin's answer, if its value may stand in a header: no control bytes.
  void AddForeign(std::string_view name, const std::optional<std::string_view>& value);
  // The value of the first field of that name (any case), until the head is changed.
  std::optional<std::string_view> Find(std::string_view name) const;
  void Remove(std::string_view name);  // all of that name
  // Lines that have been made by a head's Add, as lines() gives them.
  void AddLines(std::string_view lines);
  // The fields in their order, each "name: value" and CRLF.
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

struct ResponseLine {
  bool keep_alive = true;
  int minor_version = 1;  // of the request
  int64_t now = 0;        // seconds since the epoch
};

// Appends the head, up to the empty line behind it.
void RenderHead(const ResponseHead& head, const ResponseLine& line, std::string* text);

}  // namespace dartfs::httpd
