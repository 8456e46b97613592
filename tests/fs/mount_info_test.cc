#include "fs/mount_info.h"

#include <gtest/gtest.h>

namespace dartfs::fs {
namespace {

TEST(MountInfo, ParsesTheKernelsTable) {
  const auto mounts = ParseMountInfo(
      "22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
      "51 28 0:45 / /mnt/a\\040b\\134c ro,nosuid,nodev - fuse.dartfs http://h/x\\040y "
      "ro,user_id=0\n"
      "52 51 0:46 / /mnt/a\\040b\\134c ro shared:1 master:2 - ext4 /dev/loop0 ro\n");
  ASSERT_EQ(mounts.size(), 3u);
  EXPECT_EQ(mounts[1], (MountedFs{0, 45, "/mnt/a b\\c", "fuse.dartfs", "http://h/x y"}));
  const auto top = TopMountAt(mounts, "/mnt/a b\\c");
  ASSERT_TRUE(top);
  EXPECT_EQ(top->type, "ext4");
  EXPECT_FALSE(TopMountAt(mounts, "/mnt"));
}

TEST(MountInfo, LeavesOutWhatItDoesNotUnderstand) {
  for (const char* text : {"", "\n", "1 2 3 4", "22 28 020 / /sys rw - sysfs sysfs rw",
                           "22 28 0:x / /sys rw - sysfs sysfs rw", "22 28 0:1 / /sys rw sysfs x y",
                           "22 28 0:1 / /sys rw -"}) {
    EXPECT_TRUE(ParseMountInfo(text).empty()) << text;
  }
}

TEST(MountInfo, ReadsThisMachines) { EXPECT_TRUE(TopMountAt(ReadMountInfo(), "/proc")); }

}  // namespace
}  // namespace dartfs::fs
