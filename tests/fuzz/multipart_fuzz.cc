// Input: eight bytes of an object's size, then a Range header. The answer's parts, read as a client
// reads multipart/byteranges, are the ranges that were asked for, and as long as announced.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/engine/admission.h"
#include "httpd/multipart.h"
#include "httpd/range_header.h"

namespace dartfs::httpd {
namespace {

constexpr std::string_view kBoundary = "0123456789abcdef";

// What stands before a part, up to its first byte: the part's Content-Range.
std::string_view ReadFraming(std::string_view framing, bool first) {
  const auto take = [&framing](std::string_view expected) {
    DARTFS_CHECK(framing.starts_with(expected));
    framing.remove_prefix(expected.size());
  };
  if (!first) take("\r\n");
  take("--");
  take(kBoundary);
  take("\r\nContent-Type: a/b\r\nContent-Range: ");
  const std::string_view range = framing.substr(0, framing.find('\r'));
  framing.remove_prefix(range.size());
  take("\r\n\r\n");
  DARTFS_CHECK(framing.empty());
  return range;
}

void CheckParts(const Multipart& multipart, uint64_t size) {
  uint64_t length = 0;
  for (size_t i = 0; i < multipart.parts().size(); ++i) {
    const std::string framing = multipart.Before(i);
    const auto range = core::ParseContentRange(ReadFraming(framing, i == 0));
    const ByteRange& part = multipart.parts()[i];
    DARTFS_CHECK(range && range->first == part.first && range->last == part.last);
    DARTFS_CHECK(range->total == size);
    length += framing.size() + part.length();
  }
  const std::string end = multipart.Before(multipart.parts().size());
  DARTFS_CHECK(end == "\r\n--" + std::string(kBoundary) + "--\r\n");
  DARTFS_CHECK(multipart.length() == length + end.size());
}

void Check(uint64_t size, std::string_view header) {
  const RangeAnswer answer = AnswerRange(header, size);
  DARTFS_CHECK((answer.kind == RangeAnswer::Kind::kParts) == !answer.parts.empty());
  uint64_t bytes = 0;
  for (const ByteRange& part : answer.parts) {
    DARTFS_CHECK(part.first <= part.last && part.last < size);
    bytes += part.length();
  }
  DARTFS_CHECK(bytes <= size);  // nothing twice
  if (answer.parts.size() < 2) return;
  CheckParts(Multipart(answer.parts, size, "a/b", std::string(kBoundary)), size);
}

}  // namespace
}  // namespace dartfs::httpd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint64_t object = 0;
  if (size < sizeof object) return 0;
  std::memcpy(&object, data, sizeof object);
  object >>= 1;  // sizes are below 2^63
  dartfs::httpd::Check(object,
                       {reinterpret_cast<const char*>(data) + sizeof object, size - sizeof object});
  return 0;
}
