// Real kills: the store runs in a child process under load, which says over a pipe what it has
// flushed, and is killed with SIGKILL at a random moment. The child is this executable again.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <sstream>

#include "core/base/unique_fd.h"
#include "core/store/store_fixture.h"

namespace dartfs::core {
namespace {

constexpr uint64_t kBlock = kTinyGrid.block_size;
constexpr uint64_t kBlocks = 4;
constexpr char kDirVariable[] = "DARTFS_KILL_TEST_DIR";
constexpr char kRoundVariable[] = "DARTFS_KILL_TEST_ROUND";
constexpr int kReportFd = 3;

class StoreKillTest : public StoreFixture {
 protected:
  static std::string Name(const std::string& round, int thread, int i) {
    return "k" + round + "-" + std::to_string(thread) + "-" + std::to_string(i);
  }
  struct Child {
    pid_t pid = -1;
    UniqueFd report;
  };
  Child Spawn(int round) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    Child child;
    child.report.Reset(ends[0]);
    const UniqueFd write_end(ends[1]);
    const std::string round_text = std::to_string(round);
    const std::string filter = "--gtest_filter=StoreKillTest.DISABLED_Child";
    child.pid = ::fork();
    if (child.pid == 0) {
      ::setenv(kDirVariable, options_.dir.c_str(), 1);
      ::setenv("DARTFS_STORE_TEST_BASE", root_.c_str(), 1);
      ::setenv(kRoundVariable, round_text.c_str(), 1);
      ::dup2(write_end.get(), kReportFd);
      ::close(STDOUT_FILENO);
      ::execl("/proc/self/exe", "store_test", filter.c_str(), "--gtest_also_run_disabled_tests",
              nullptr);
      ::_exit(127);
    }
    return child;
  }
  // Names of objects whose blocks the child has flushed.
  static std::vector<std::string> ReadReport(int fd) {
    std::string text;
    char piece[4096];
    for (;;) {
      const ssize_t bytes = ::read(fd, piece, sizeof piece);
      if (bytes <= 0) break;
      text.append(piece, static_cast<size_t>(bytes));
    }
    text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n'));
    std::vector<std::string> names;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) names.push_back(line);
    return names;
  }
};

// Not a test: what Spawn runs.
TEST_F(StoreKillTest, DISABLED_Child) {
  const char* const dir = std::getenv(kDirVariable);
  if (dir == nullptr) GTEST_SKIP() << "only as the child of another test";
  const std::string round = std::getenv(kRoundVariable);
  options_.dir = dir;
  options_.commit_interval = std::chrono::milliseconds(1);
  Start();
  std::mutex mu;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0;; ++i) {
        const auto held = Object(Name(round, t, i), kBlocks * kBlock);
        for (uint64_t block = 0; block < kBlocks; ++block) {
          if (!Put(held, block)) ::_exit(1);
        }
        if (i % 8 == 7) (void)store_->DropObject(Object(Name(round, t, i), held.size).object);
        if (i % 2 != 0 || !store_->Flush()) continue;
        const std::lock_guard<std::mutex> lock(mu);
        const std::string line = held.name + "\n";
        (void)!::write(kReportFd, line.data(), line.size());
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(StoreKillTest, KilledWhileItIsMadeItIsMadeAgain) {
  for (int delay_ms = 1; delay_ms < 60 && !HasFailure(); delay_ms += 4) {
    const Child child = Spawn(0);
    ASSERT_GT(child.pid, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    ASSERT_EQ(::kill(child.pid, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child.pid, &status, 0), child.pid);
    Start();
    EXPECT_FALSE(std::filesystem::exists(options_.dir + "/index.bad-1"));
    Stop();
    std::filesystem::remove_all(options_.dir);
  }
}

TEST_F(StoreKillTest, WhatWasFlushedIsThereAfterAKill) {
  SeededRandom random(TestSeed());
  uint64_t checked = 0;
  for (int round = 0; round < 15 && !HasFailure(); ++round) {
    const Child child = Spawn(round);
    ASSERT_GT(child.pid, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(30 + random.Below(250)));
    ASSERT_EQ(::kill(child.pid, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child.pid, &status, 0), child.pid);
    ASSERT_TRUE(WIFSIGNALED(status));
    Start();
    for (const auto& name : ReadReport(child.report.get())) {
      const auto held = Object(name, kBlocks * kBlock);
      for (uint64_t block = 0; block < kBlocks; ++block) {
        EXPECT_EQ(Get(held, block), Got::kHit) << name << " block " << block;
        ++checked;
      }
    }
    EXPECT_EQ(store_->Stats().corrupt_granules, 0U);
    EXPECT_EQ(store_->Stats().corrupt_records, 0U);
    EXPECT_FALSE(std::filesystem::exists(options_.dir + "/index.bad-1"));
    // Sometimes stopped, sometimes the next child starts after a kill of this one too.
    Stop();
  }
  EXPECT_GT(checked, 0U);
}

}  // namespace
}  // namespace dartfs::core
