#include "core/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace dartfs::core {
namespace {

int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, ClosesWhenDropped) {
  const int fd = OpenNull();
  {
    const UniqueFd owned(fd);
    EXPECT_TRUE(owned.valid());
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(UniqueFd, MovesWithoutClosing) {
  const int fd = OpenNull();
  const int other = OpenNull();
  UniqueFd a(fd);
  UniqueFd b(other);
  b = std::move(a);
  EXPECT_FALSE(a.valid());
  EXPECT_EQ(b.get(), fd);
  EXPECT_TRUE(IsOpen(fd));
  EXPECT_FALSE(IsOpen(other));
  const UniqueFd c(std::move(b));
  EXPECT_EQ(c.get(), fd);
}

TEST(UniqueFd, ReleaseGivesItAway) {
  const int fd = OpenNull();
  UniqueFd owned(fd);
  EXPECT_EQ(owned.Release(), fd);
  owned.Reset();
  EXPECT_TRUE(IsOpen(fd));
  close(fd);
}

TEST(UniqueFd, ResetKeepsErrno) {
  UniqueFd owned(OpenNull());
  errno = ENOSPC;
  owned.Reset(OpenNull());
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_TRUE(owned.valid());
}

TEST(UniqueFdDeathTest, ADescriptorClosedByOthersEndsTheProcess) {
  EXPECT_DEATH(
      {
        UniqueFd owned(OpenNull());
        close(owned.get());
        owned.Reset();
      },
      "check failed");
}

}  // namespace
}  // namespace dartfs::core
