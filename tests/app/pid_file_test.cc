#include "app/pid_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace dartfs::app {
namespace {

std::string Path() { return testing::TempDir() + "dartfs-pid-" + std::to_string(getpid()); }

// A process that sleeps under that name until it is destroyed.
class Sleeper {
 public:
  explicit Sleeper(const char* comm) {
    int ends[2] = {};
    if (pipe(ends) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_NAME, comm);
      close(ends[0]);
      close(ends[1]);
      pause();
      _exit(0);
    }
    close(ends[1]);
    char none = 0;
    EXPECT_EQ(read(ends[0], &none, 1), 0);  // its name is set
    close(ends[0]);
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST(PidFile, IsWrittenAndRemoved) {
  {
    PidFile file;
    ASSERT_TRUE(file.Write(Path()));
    int pid = 0;
    std::ifstream(Path()) >> pid;
    EXPECT_EQ(pid, getpid());
  }
  EXPECT_NE(access(Path().c_str(), F_OK), 0);
}

TEST(PidFile, OfARunningDartfsIsLeftAlone) {
  const Sleeper other("dartfs");
  std::ofstream(Path()) << other.pid() << "\n";
  PidFile file;
  const auto written = file.Write(Path());
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().context, testing::HasSubstr(std::to_string(other.pid())));
  int pid = 0;
  std::ifstream(Path()) >> pid;
  EXPECT_EQ(pid, other.pid());
  unlink(Path().c_str());
}

TEST(PidFile, LeftBehindIsTakenOver) {
  const Sleeper other("sleeper");
  for (const std::string& text : {std::to_string(other.pid()), std::string("999999999"),
                                  std::string("no number"), std::string()}) {
    std::ofstream(Path()) << text;
    PidFile file;
    EXPECT_TRUE(file.Write(Path())) << text;
  }
}

}  // namespace
}  // namespace dartfs::app
