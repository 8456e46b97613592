// The Range request header: which bytes of a representation a client wants (RFC 9110 section 14).
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dartfs::httpd {

// Bytes first to last of a representation, both included.
struct ByteRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t length() const { return last - first + 1; }
  bool operator==(const ByteRange&) const = default;
};

struct RangeAnswer {
  enum class Kind : uint8_t {
    kWhole,          // 200: no range, or one that is to be ignored
    kParts,          // 206: one part, or several as multipart/byteranges
    kUnsatisfiable,  // 416
  };
  Kind kind = Kind::kWhole;
  std::vector<ByteRange> parts;  // kParts: one at least, none overlaps or touches another
  bool operator==(const RangeAnswer&) const = default;
};

// More ranges than that in one header are no request in good faith: the header is ignored.
inline constexpr size_t kMostRanges = 64;

// What a Range header asks for of `size` bytes. Ignored: any unit but bytes, and what does not
// follow the grammar. Of what does, ranges beyond the end are left out; nothing left is 416, on an
// empty representation always. Ranges that overlap or touch become one; the others keep the
// client's order.
RangeAnswer AnswerRange(std::string_view header, uint64_t size);

// "bytes 0-9/10", "bytes */10".
std::string ContentRange(const ByteRange& range, uint64_t size);
std::string UnsatisfiedContentRange(uint64_t size);

}  // namespace dartfs::httpd
