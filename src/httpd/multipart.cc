#include "httpd/multipart.h"

#include <fmt/format.h>

#include <utility>

namespace dartfs::httpd {

Multipart::Multipart(std::vector<ByteRange> parts, uint64_t size, std::string_view content_type,
                     std::string boundary)
    : parts_(std::move(parts)),
      size_(size),
      content_type_(content_type),
      boundary_(std::move(boundary)) {
  for (size_t i = 0; i <= parts_.size(); ++i) length_ += Before(i).size();
  for (const ByteRange& part : parts_) length_ += part.length();
}

std::string Multipart::ContentType() const { return "multipart/byteranges; boundary=" + boundary_; }

std::string Multipart::Before(size_t index) const {
  const std::string_view line_end = index == 0 ? "" : "\r\n";
  if (index == parts_.size()) return fmt::format("{}--{}--\r\n", line_end, boundary_);
  return fmt::format("{}--{}\r\nContent-Type: {}\r\nContent-Range: {}\r\n\r\n", line_end, boundary_,
                     content_type_, ContentRange(parts_[index], size_));
}

}  // namespace dartfs::httpd
