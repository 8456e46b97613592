// What is read off a response's head: lines -> HttpHead, and whether its framing can be believed
// (RFC 9112 sections 4 to 6). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/io/http_client.h"

namespace dartfs::core {

inline constexpr size_t kMaxHeadBytes = 64 * 1024;

// How the body ends; both absent: with the connection.
struct HttpFraming {
  std::optional<uint64_t> content_length;
  bool chunked = false;

  // At most so many bytes follow, as far as one can know; nullopt when one cannot.
  std::optional<uint64_t> BodyBytes(int status) const;
};

// Collects the lines of one request's answer. Interim answers (1xx) are skipped but count towards
// kMaxHeadBytes, so that a stream of them ends too.
class HeadParser final {
 public:
  enum class Step : uint8_t { kMore, kComplete };
  // `line` with or without its CRLF. kBadResponse: no status line, an illegal header name or value,
  // Content-Length repeated with unlike values or not a number, any Transfer-Encoding but a lone
  // "chunked", both of these at once, 101, or more than kMaxHeadBytes. After kComplete: not to be
  // called.
  Result<Step> Line(std::string_view line);

  HttpHead& head() { return head_; }
  const HttpFraming& framing() const { return framing_; }

 private:
  Result<Step> StatusLine(std::string_view line);
  Status HeaderLine(std::string_view line);
  Result<Step> EndOfBlock();
  Status ReadFraming();

  HttpHead head_;
  HttpFraming framing_;
  size_t bytes_ = 0;
  bool in_block_ = false;
};

// The value of Retry-After: seconds, or an HTTP date against `now_unix_seconds` (a past one gives
// zero). nullopt when it is neither.
std::optional<Duration> ParseRetryAfter(std::string_view value, int64_t now_unix_seconds);

}  // namespace dartfs::core
