#include "httpd/response.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/text.h"
#include "httpd/status_map.h"

namespace dartfs::httpd {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr size_t kUsualBytes = 512;
constexpr std::string_view kAfterName = ": ";

// RFC 9110 section 5.5, without obs-text at the edges of meaning: visible bytes, spaces, tabs, and
// bytes above ASCII.
bool IsFieldValue(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && byte != '\t') || byte == 0x7F;
  });
}

// The date of this second, made once a second and thread.
const std::string& DateOf(int64_t now) {
  static thread_local int64_t second = -1;
  static thread_local std::string text;
  if (second != now) text = core::FormatHttpDate(now);
  second = now;
  return text;
}

// The name of the line at the head of `lines`.
std::string_view NameOf(std::string_view lines) { return lines.substr(0, lines.find(':')); }

}  // namespace

void ResponseHead::AddLines(std::string_view lines) {
  if (lines_.empty()) lines_.reserve(kUsualBytes);
  lines_.append(lines);
}

void ResponseHead::Add(std::string_view name, std::string_view value) {
  DARTFS_CHECK(IsFieldValue(value));
  if (lines_.empty()) lines_.reserve(kUsualBytes);
  lines_.append(name).append(kAfterName).append(value).append(kLineEnd);
}

void ResponseHead::AddForeign(std::string_view name, const std::optional<std::string_view>& value) {
  if (value && IsFieldValue(*value)) Add(name, *value);
}

std::optional<std::string_view> ResponseHead::Find(std::string_view name) const {
  for (std::string_view rest = lines_; !rest.empty();) {
    const size_t end = rest.find(kLineEnd);
    if (core::EqualsIgnoreCase(NameOf(rest), name)) {
      const size_t value = name.size() + kAfterName.size();
      return rest.substr(value, end - value);
    }
    rest.remove_prefix(end + kLineEnd.size());
  }
  return std::nullopt;
}

void ResponseHead::Remove(std::string_view name) {
  for (size_t at = 0; at < lines_.size();) {
    const size_t next = lines_.find(kLineEnd, at) + kLineEnd.size();
    if (core::EqualsIgnoreCase(NameOf(std::string_view(lines_).substr(at)), name)) {
      lines_.erase(at, next - at);
    } else {
      at = next;
    }
  }
}

void RenderHead(const ResponseHead& head, const ResponseLine& line, std::string* text) {
  constexpr size_t kOwnBytes = 192;
  text->reserve(text->size() + head.lines().size() + kOwnBytes);
  text->append("HTTP/1.1 ");
  core::AppendNumber(static_cast<uint64_t>(head.status), text);
  text->append(" ")
      .append(head.reason.empty() ? ReasonOf(head.status) : head.reason)
      .append("\r\nDate: ")
      .append(DateOf(line.now));
  text->append(kLineEnd).append(head.lines());
  if (head.framing == Framing::kLength) {
    text->append("Content-Length: ");
    core::AppendNumber(head.content_length, text);
    text->append(kLineEnd);
  } else if (head.framing == Framing::kChunked) {
    text->append("Transfer-Encoding: chunked\r\n");
  }
  const bool keep = line.keep_alive && head.framing != Framing::kClose;
  if (!keep) text->append("Connection: close\r\n");
  if (keep && line.minor_version == 0) text->append("Connection: keep-alive\r\n");
  text->append(kLineEnd);
}

}  // namespace dartfs::httpd
