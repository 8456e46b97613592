#include "app/start_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>

#include "fs/fuse_mount.h"
#include "fs/mount_info.h"

namespace dartfs::app {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

struct Ended {
  int code = -1;
  std::string said;  // on stderr
};

// Starts in the background, as `dartfs` does, in a process of its own; `serve` is what the child
// does.
Ended InBackground(core::Duration deadline, const std::function<void(StartReport)>& serve) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t starter = fork();
  if (starter == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    auto report = StartReport::Background("/cache\n/dir", deadline);
    if (!report) _exit(99);
    serve(std::move(*report));
    _exit(0);
  }
  close(ends[1]);
  Ended ended;
  std::array<char, 1024> buffer;
  ssize_t got = 0;
  while ((got = read(ends[0], buffer.data(), buffer.size())) > 0) {
    ended.said.append(buffer.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(starter, &status, 0);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

TEST(StartReport, ReadyEndsTheStarterWithoutAWord) {
  const Ended ended = InBackground(std::chrono::seconds(60), [](StartReport r) { r.Ready(); });
  EXPECT_EQ(ended.code, kExitOk);
  EXPECT_EQ(ended.said, "");
}

TEST(StartReport, AFailureReachesTheStarter) {
  const Ended ended = InBackground(std::chrono::seconds(60), [](StartReport report) {
    report.Failed(kExitUsage, core::MakeError(core::Code::kInvalidArgument, "do this"));
  });
  EXPECT_EQ(ended.code, kExitUsage);
  EXPECT_EQ(ended.said, "dartfs: do this\n");
}

TEST(StartReport, AChildThatDiesIsSaidSo) {
  const Ended ended = InBackground(std::chrono::seconds(60), [](StartReport) { abort(); });
  EXPECT_EQ(ended.code, kExitMount);
  EXPECT_THAT(ended.said, HasSubstr("log"));
}

// The end of its stderr shows that the child is gone as well.
TEST(StartReport, AStartThatHangsIsEndedAndExplained) {
  const Ended ended = InBackground(milliseconds(50), [](StartReport) { pause(); });
  EXPECT_EQ(ended.code, kExitMount);
  EXPECT_THAT(ended.said, HasSubstr("index of the cache in /cache\\x0a/dir"));
  EXPECT_THAT(ended.said, HasSubstr("--cache-dir"));
  EXPECT_THAT(ended.said, HasSubstr("dmesg"));
}

// What a child that ends so leaves at its mountpoint, and what its starter says.
Ended InBackgroundMounted(core::Duration deadline, const std::string& point,
                          void (*end)(StartReport)) {
  return InBackground(deadline, [&](StartReport report) {
    auto device = fs::MountFuse({.mountpoint = point, .source = "test"});
    if (!device) _exit(98);
    for (const fs::MountedFs& mount : fs::ReadMountInfo()) {
      if (mount.mountpoint == point) report.Mounted(point, makedev(mount.major, mount.minor));
    }
    end(std::move(report));
  });
}

TEST(StartReport, AMountOfAStartThatFailedIsTakenAway) {
  if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0) {
    std::fprintf(stderr, "SKIPPED: tests of a real mount need root and /dev/fuse\n");
    GTEST_SKIP();
  }
  std::string point = "/tmp/dartfs_start_test.XXXXXX";
  ASSERT_NE(mkdtemp(point.data()), nullptr);
  void (*const ends[])(StartReport) = {[](StartReport) { abort(); }, [](StartReport) { pause(); }};
  for (const auto end : ends) {
    const Ended ended = InBackgroundMounted(milliseconds(500), point, end);
    EXPECT_EQ(ended.code, kExitMount);
    EXPECT_THAT(ended.said, testing::Not(HasSubstr("index of the cache")));
    EXPECT_FALSE(fs::TopMountAt(fs::ReadMountInfo(), point));
    while (umount2(point.c_str(), MNT_DETACH) == 0) {
    }
  }
  rmdir(point.c_str());
}

TEST(StartReport, AMountAloneIsNoAnswer) {
  const Ended ended = InBackground(std::chrono::seconds(60), [](StartReport report) {
    report.Mounted("/no\nwhere", 7);
    report.Failed(kExitMount, core::MakeError(core::Code::kIo, "why"));
  });
  EXPECT_EQ(ended.code, kExitMount);
  EXPECT_EQ(ended.said, "dartfs: why\n");
}

}  // namespace
}  // namespace dartfs::app
