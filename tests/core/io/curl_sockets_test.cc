#include "core/io/curl_sockets.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace dartfs::core {
namespace {

// libcurl closes sockets that are still connecting without its callback; their numbers go to
// others.
TEST(CurlSockets, ANumberThatBelongsToAnotherSocketByNow) {
  CurlSockets sockets;
  const int fd = sockets.Open(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(fd, 0);
  std::array<int, 2> pair{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  ASSERT_EQ(dup2(pair[0], fd), fd);
  EXPECT_FALSE(sockets.Unclean("127.0.0.1", 1000, "127.0.0.1", 2000));
  EXPECT_FALSE(sockets.Unclean("127.0.0.1", 1000, "127.0.0.1", 2000));
  close(pair[0]);
  close(pair[1]);
  EXPECT_EQ(sockets.Close(fd), 0);
}

}  // namespace
}  // namespace dartfs::core
