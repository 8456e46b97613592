#include "app/limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace dartfs::app {
namespace {

TEST(Limits, OpenFilesUpToTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{.rlim_cur = before.rlim_max / 2, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int i = 0; i < 2; ++i) {
    RaiseOpenFilesLimit();
    rlimit after{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
    EXPECT_EQ(after.rlim_cur, before.rlim_max);
    EXPECT_EQ(after.rlim_max, before.rlim_max);
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace dartfs::app
