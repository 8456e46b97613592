// Heads of requests, and what is read out of them: cut anywhere they are the same, and nothing that
// comes out of them can begin a line of its own.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "httpd/conditions.h"
#include "httpd/door.h"
#include "httpd/multipart.h"
#include "httpd/range_header.h"
#include "httpd/request.h"

namespace {

using dartfs::httpd::AnswerRange;
using dartfs::httpd::ByteRange;
using dartfs::httpd::FindDoor;
using dartfs::httpd::Multipart;
using dartfs::httpd::RangeAnswer;
using dartfs::httpd::Request;
using dartfs::httpd::RequestParser;

struct Outcome {
  RequestParser::State state = RequestParser::State::kMore;
  int status = 0;
  size_t taken = 0;
  std::string target;
};

Outcome Feed(std::string_view text, size_t cut, Request* request) {
  RequestParser parser;
  Outcome outcome;
  outcome.taken = parser.Feed(text.substr(0, cut));
  if (outcome.taken == cut) outcome.taken += parser.Feed(text.substr(cut));
  outcome.state = parser.state();
  if (outcome.state == RequestParser::State::kBad) outcome.status = parser.bad().status;
  if (outcome.state == RequestParser::State::kDone) {
    *request = parser.Take();
    outcome.target = request->target;
  }
  return outcome;
}

void CheckText(std::string_view text) {
  DARTFS_CHECK(text.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos);
}

void CheckRange(std::string_view header, uint64_t size) {
  const RangeAnswer answer = AnswerRange(header, size);
  DARTFS_CHECK((answer.kind == RangeAnswer::Kind::kParts) == !answer.parts.empty());
  std::vector<ByteRange> seen;
  for (const ByteRange& part : answer.parts) {
    DARTFS_CHECK(part.first <= part.last && part.last < size);
    for (const ByteRange& other : seen) {
      DARTFS_CHECK(part.last + 1 < other.first || other.last + 1 < part.first);
    }
    seen.push_back(part);
  }
  if (answer.parts.size() > 1) DARTFS_CHECK(Multipart(seen, size, "a/b", "x").length() > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  Request request, again;
  const Outcome whole = Feed(text, text.size(), &request);
  const Outcome parts = Feed(text, data[0] % (text.size() + 1), &again);
  DARTFS_CHECK(whole.taken <= text.size());
  if (whole.state != RequestParser::State::kBad) DARTFS_CHECK(parts.taken == whole.taken);
  DARTFS_CHECK(parts.state == whole.state && parts.status == whole.status);
  DARTFS_CHECK(parts.target == whole.target);
  if (whole.state != RequestParser::State::kDone) {
    CheckRange(text, data[0]);
    return 0;
  }
  CheckText(request.method);
  CheckText(request.target);
  for (const auto& header : request.headers) {
    CheckText(header.name);
    CheckText(header.value);
  }
  DARTFS_CHECK(!request.chunked || request.content_length == 0);
  FindDoor(request.method, request.target, {});
  if (const auto range = request.Find("Range")) CheckRange(*range, data[0]);
  const auto tags = request.Find("If-None-Match");
  dartfs::httpd::Conditions conditions;
  if (tags) conditions.if_none_match = *tags;
  dartfs::httpd::Judge(conditions, {"\"a\"", 5});
  return 0;
}
