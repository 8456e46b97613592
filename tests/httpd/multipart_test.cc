#include "httpd/multipart.h"

#include <gtest/gtest.h>

namespace dartfs::httpd {
namespace {

TEST(Multipart, AWholeBody) {
  const std::string object = "0123456789";
  const Multipart multipart({{0, 1}, {9, 9}, {4, 6}}, object.size(), "text/plain", "xyz");
  EXPECT_EQ(multipart.ContentType(), "multipart/byteranges; boundary=xyz");
  std::string body;
  for (size_t i = 0; i < multipart.parts().size(); ++i) {
    const ByteRange& part = multipart.parts()[i];
    body += multipart.Before(i) + object.substr(part.first, part.length());
  }
  body += multipart.Before(multipart.parts().size());
  EXPECT_EQ(body,
            "--xyz\r\n"
            "Content-Type: text/plain\r\n"
            "Content-Range: bytes 0-1/10\r\n"
            "\r\n"
            "01\r\n"
            "--xyz\r\n"
            "Content-Type: text/plain\r\n"
            "Content-Range: bytes 9-9/10\r\n"
            "\r\n"
            "9\r\n"
            "--xyz\r\n"
            "Content-Type: text/plain\r\n"
            "Content-Range: bytes 4-6/10\r\n"
            "\r\n"
            "456\r\n"
            "--xyz--\r\n");
  EXPECT_EQ(multipart.length(), body.size());
}

TEST(Multipart, LengthOfManyBytesIsOnlyComputed) {
  constexpr uint64_t kSize = uint64_t{1} << 60;
  const Multipart multipart({{0, kSize / 2}, {kSize - 1, kSize - 1}}, kSize, "a/b", "q");
  const uint64_t framing =
      multipart.Before(0).size() + multipart.Before(1).size() + multipart.Before(2).size();
  EXPECT_EQ(multipart.length(), framing + kSize / 2 + 2);
}

}  // namespace
}  // namespace dartfs::httpd
