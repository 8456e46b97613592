#include "core/io/http_head.h"

#include <algorithm>
#include <string>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

Error Bad(const std::string& what) { return MakeError(Code::kBadResponse, what); }

std::string_view StripEol(std::string_view line) {
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// RFC 9110 section 5.6.2.
bool IsToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool HasControls(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return (u < 0x20 && c != '\t') || u == 0x7f;
  });
}

}  // namespace

std::optional<std::string_view> HttpHead::Find(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const HttpHeader& header : headers) {
    if (!EqualsIgnoreCase(header.name, name)) continue;
    if (found && *found != header.value) return std::nullopt;
    found = header.value;
  }
  return found;
}

std::optional<uint64_t> HttpFraming::BodyBytes(int status) const {
  if (status == 204 || status == 304) return 0;
  return chunked ? std::nullopt : content_length;
}

Result<HeadParser::Step> HeadParser::Line(std::string_view line) {
  bytes_ += line.size();
  if (bytes_ > kMaxHeadBytes) {
    return Bad("the head of the answer is longer than " + std::to_string(kMaxHeadBytes) + " bytes");
  }
  line = StripEol(line);
  if (!in_block_) return StatusLine(line);
  if (line.empty()) return EndOfBlock();
  TRY(HeaderLine(line));
  return Step::kMore;
}

Result<HeadParser::Step> HeadParser::StatusLine(std::string_view line) {
  // "HTTP/1.1 206 Partial Content"; the reason may be absent.
  const size_t blank = line.find(' ');
  const bool shaped = line.substr(0, 5) == "HTTP/" && blank != std::string_view::npos &&
                      line.size() >= blank + 4 && IsDigit(line[blank + 1]) &&
                      IsDigit(line[blank + 2]) && IsDigit(line[blank + 3]) &&
                      (line.size() == blank + 4 || line[blank + 4] == ' ');
  if (!shaped) return Bad("no HTTP status line: \"" + EscapeForeign(line, 80) + "\"");
  head_.status = static_cast<int>(ParseUint(line.substr(blank + 1, 3)).value_or(0));
  if (head_.status < 100 || head_.status == 101) {
    return Bad("an answer with status " + std::to_string(head_.status));
  }
  head_.headers.clear();
  in_block_ = true;
  return Step::kMore;
}

Status HeadParser::HeaderLine(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') {  // obs-fold, RFC 9112 section 5.2
    if (head_.headers.empty()) return Bad("a header that begins with a blank");
    if (HasControls(line)) return Bad("a control character in a header");
    head_.headers.back().value += ' ';
    head_.headers.back().value += TrimAscii(line);
    return {};
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
    return Bad("not a header: \"" + EscapeForeign(line, 80) + "\"");
  }
  const std::string_view value = TrimAscii(line.substr(colon + 1));
  if (HasControls(value)) return Bad("a control character in a header");
  head_.headers.push_back({std::string(line.substr(0, colon)), std::string(value)});
  return {};
}

Result<HeadParser::Step> HeadParser::EndOfBlock() {
  if (head_.status < 200) {
    in_block_ = false;
    return Step::kMore;
  }
  TRY(ReadFraming());
  return Step::kComplete;
}

Status HeadParser::ReadFraming() {
  for (const HttpHeader& header : head_.headers) {
    if (EqualsIgnoreCase(header.name, "content-length")) {
      const auto length = ParseUint(header.value);
      // Lengths are signed 64-bit numbers wherever they go next.
      if (!length || *length > INT64_MAX) {
        return Bad("Content-Length is \"" + EscapeForeign(header.value, 80) + "\"");
      }
      if (framing_.content_length && *framing_.content_length != *length) {
        return Bad("two unlike Content-Length headers");
      }
      framing_.content_length = length;
    } else if (EqualsIgnoreCase(header.name, "transfer-encoding")) {
      if (framing_.chunked || !EqualsIgnoreCase(header.value, "chunked")) {
        return Bad("Transfer-Encoding is \"" + EscapeForeign(header.value, 80) +
                   "\", not a lone chunked");
      }
      framing_.chunked = true;
    }
  }
  if (framing_.chunked && framing_.content_length) {
    return Bad("both Transfer-Encoding and Content-Length");
  }
  return {};
}

std::optional<Duration> ParseRetryAfter(std::string_view value, int64_t now_unix_seconds) {
  value = TrimAscii(value);
  constexpr uint64_t kYear = 366 * 86400;  // far from overflow; callers cut to less
  if (const auto seconds = ParseUint(value)) {
    return std::chrono::seconds(std::min(*seconds, kYear));
  }
  const auto date = ParseHttpDate(value);
  if (!date) return std::nullopt;
  if (*date <= now_unix_seconds) return Duration::zero();
  const int64_t wait = *date - now_unix_seconds;
  return std::chrono::seconds(std::min(wait, static_cast<int64_t>(kYear)));
}

}  // namespace dartfs::core
