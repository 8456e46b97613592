#include "fs/fusermount.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace dartfs::fs {
namespace {

using core::Code;

constexpr core::Duration kShort = std::chrono::milliseconds(50);

// A helper of the test's own, found first.
class FusermountTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = (std::filesystem::temp_directory_path() / "dartfs-fusermount-XXXXXX").string();
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
    path_ = getenv("PATH");
    setenv("PATH", (dir_ + ":" + path_).c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), 1);
    std::filesystem::remove_all(dir_);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a helper is left";
    EXPECT_EQ(errno, ECHILD);
  }
  void Helper(const std::string& script) {
    std::ofstream(dir_ + "/fusermount3") << "#!/bin/sh\n" << script << "\n";
    chmod((dir_ + "/fusermount3").c_str(), 0755);
  }

  std::string dir_, path_;
};

TEST_F(FusermountTest, OneThatHangsIsEnded) {
  Helper("exec sleep 1000");
  EXPECT_EQ(MountByFusermount("/nowhere", "ro", kShort).error().code, Code::kIo);
  EXPECT_EQ(UnmountByFusermount("/nowhere", false, kShort).error().code, Code::kBusy);
}

TEST_F(FusermountTest, OneThatSendsNothingOrRefuses) {
  Helper("exit 0");
  EXPECT_EQ(MountByFusermount("/nowhere", "ro").error().code, Code::kIo);
  EXPECT_TRUE(UnmountByFusermount("/nowhere", true));
  Helper("exit 1");
  EXPECT_EQ(MountByFusermount("/nowhere", "ro").error().code, Code::kIo);
  EXPECT_EQ(UnmountByFusermount("/nowhere", true).error().code, Code::kBusy);
}

}  // namespace
}  // namespace dartfs::fs
