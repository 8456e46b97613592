// Multipart: the framing of a multipart/byteranges body (RFC 9110 section 14.6): what stands
// between the parts, and how long all of it is, known before the first byte. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "httpd/range_header.h"

namespace dartfs::httpd {

class Multipart {
 public:
  // `parts` of a representation of `size` bytes and that type; two at least. `boundary`: letters
  // and digits that are not to be guessed, so that no part can hold it on purpose.
  Multipart(std::vector<ByteRange> parts, uint64_t size, std::string_view content_type,
            std::string boundary);

  const std::vector<ByteRange>& parts() const { return parts_; }
  // The response's own Content-Type.
  std::string ContentType() const;
  // Of the whole body, bytes.
  uint64_t length() const { return length_; }
  // What stands before part `index`; behind the last one for index == parts().size().
  std::string Before(size_t index) const;

 private:
  const std::vector<ByteRange> parts_;
  const uint64_t size_;
  const std::string content_type_;
  const std::string boundary_;
  uint64_t length_ = 0;
};

}  // namespace dartfs::httpd
