#include "app/start_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

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

}  // namespace
}  // namespace dartfs::app
