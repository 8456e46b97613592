#include "httpd/response.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/check.h"
#include "core/base/text.h"
#include "httpd/status_map.h"

namespace dartfs::httpd {
namespace {

// RFC 9110 section 5.5, without obs-text at the edges of meaning: visible bytes, spaces, tabs, and
// bytes above ASCII.
bool IsFieldValue(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t') || byte == 0x7F;
  });
}

}  // namespace

void ResponseHead::Add(std::string_view name, std::string_view value) {
  DARTFS_CHECK(IsFieldValue(value));
  headers.push_back({std::string(name), std::string(value)});
}

void ResponseHead::AddForeign(std::string_view name, const std::optional<std::string_view>& value) {
  if (value && IsFieldValue(*value)) Add(name, *value);
}

std::string RenderHead(const ResponseHead& head, const ResponseLine& line) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "HTTP/1.1 {} {}\r\n", head.status, ReasonOf(head.status));
  fmt::format_to(out, "Date: {}\r\n", core::FormatHttpDate(line.now));
  for (const auto& header : head.headers) {
    fmt::format_to(out, "{}: {}\r\n", header.name, header.value);
  }
  if (head.framing == Framing::kLength) {
    fmt::format_to(out, "Content-Length: {}\r\n", head.content_length);
  } else if (head.framing == Framing::kChunked) {
    text += "Transfer-Encoding: chunked\r\n";
  }
  const bool keep = line.keep_alive && head.framing != Framing::kClose;
  if (!keep) text += "Connection: close\r\n";
  if (keep && line.minor_version == 0) text += "Connection: keep-alive\r\n";
  text += "\r\n";
  return text;
}

}  // namespace dartfs::httpd
