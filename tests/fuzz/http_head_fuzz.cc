// Input: what an origin sends before a body, up to an empty line. HeadParser keeps what http_head.h
// promises, and a redirect made of it keeps what http_redirect.h does.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "core/io/http_head.h"
#include "core/io/http_redirect.h"

namespace dartfs::core {
namespace {

void CheckHead(HeadParser& parser) {
  const HttpHead& head = parser.head();
  const HttpFraming& framing = parser.framing();
  DARTFS_CHECK(head.status >= 200 && head.status <= 999);
  DARTFS_CHECK(!(framing.chunked && framing.content_length));
  DARTFS_CHECK(!framing.content_length || *framing.content_length <= INT64_MAX);
  for (const HttpHeader& header : head.headers) {
    DARTFS_CHECK(!header.name.empty());
    DARTFS_CHECK(header.value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    const auto found = head.Find(header.name);
    DARTFS_CHECK(!found || *found == header.value);
  }
  if (const auto wait = head.Find("retry-after")) {
    const auto parsed = ParseRetryAfter(*wait, 1'700'000'000);
    DARTFS_CHECK(!parsed || *parsed >= Duration::zero());
  }
}

void CheckRedirect(const HttpHead& head) {
  HttpRequest request;
  request.url = "https://h.example/d/a?q";
  request.authorization = "secret";
  request.headers = {{"Range", "bytes=0-0"}, {"Cookie", "secret"}};
  auto hop = FirstHop(request);
  DARTFS_CHECK(hop.has_value());
  const auto next = FollowRedirect(std::move(hop).value(), head);
  if (!next) return;
  DARTFS_CHECK(next->url.scheme == "https" && next->url.userinfo.empty());
  const bool same = next->url.Authority() == "https://h.example:443";
  DARTFS_CHECK(next->authorization.empty() == !same);
  DARTFS_CHECK(next->headers.size() == (same ? 2U : 1U));
}

void Check(std::string_view text) {
  HeadParser parser;
  size_t given = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end == text.npos ? end : end + 1);
    text.remove_prefix(line.size());
    const auto step = parser.Line(line);
    if (!step) {
      DARTFS_CHECK(step.error().code == Code::kBadResponse);
      return;
    }
    given += line.size();
    DARTFS_CHECK(given <= kMaxHeadBytes);
    if (*step != HeadParser::Step::kComplete) continue;
    CheckHead(parser);
    CheckRedirect(parser.head());
    return;
  }
}

}  // namespace
}  // namespace dartfs::core

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dartfs::core::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
