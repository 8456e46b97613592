// A real mount of a tree in memory. Needs root and /dev/fuse; without them its tests are skipped,
// said on stderr.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/base/scheduler.h"
#include "core/base/time.h"
#include "core/base/unique_fd.h"
#include "fs/memory_engine.h"
#include "fs/mount.h"

namespace dartfs::fs {

class MountTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0 || access("/dev/fuse", R_OK | W_OK) != 0) {
      std::fprintf(stderr, "SKIPPED: tests of a real mount need root and /dev/fuse\n");
      GTEST_SKIP();
    }
    char name[] = "/tmp/dartfs_mount_test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    tree_owned_ = std::make_unique<MemoryNamespace>(engine_);
    tree_ = tree_owned_.get();
  }
  void TearDown() override {
    if (dir_.empty()) return;
    engine_.reads.Open();
    if (tree_ != nullptr && (mount_ || tree_owned_)) tree_->lookups.Open();
    mount_.reset();
    while (umount2(dir_.c_str(), MNT_DETACH) == 0) {
    }
    rmdir(dir_.c_str());
  }

  MountOptions Options() {
    MountOptions options;
    options.mountpoint = dir_;
    options.source = "http://h/?token=secret";
    options.probe_file = "/proc/self/exe";
    options.fill = FillMode::kOff;
    return options;
  }
  void Mounted() { Mounted(Options()); }
  void Mounted(MountOptions options) {
    auto mount = Mount::Create(std::move(options), std::move(tree_owned_), engine_);
    ASSERT_TRUE(mount.has_value()) << mount.error().ToString();
    mount_ = std::move(mount).value();
  }
  std::string Path(const std::string& name) const { return dir_ + "/" + name; }

  // Forks; the child runs `body` with default signals and exits with its result.
  template <typename Body>
  pid_t InChild(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    return child;
  }
  // True when the child is gone within `within`; reaps it.
  static bool Gone(pid_t child, std::chrono::milliseconds within, int* status = nullptr) {
    const auto until = std::chrono::steady_clock::now() + within;
    int unused;
    for (;;) {
      if (waitpid(child, status != nullptr ? status : &unused, WNOHANG) == child) return true;
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  static std::string ReadAll(const std::string& path) {
    const core::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string all;
    char buffer[65536];
    for (;;) {
      const ssize_t got = fd.valid() ? read(fd.get(), buffer, sizeof buffer) : -1;
      if (got <= 0) return all;
      all.append(buffer, static_cast<size_t>(got));
    }
  }
  uint64_t Requests(const std::string& kind) {
    for (const auto& [name, count] : mount_->Stats().requests) {
      if (name == kind) return count;
    }
    return 0;
  }

  std::unique_ptr<core::Scheduler> scheduler_ =
      core::MakeThreadScheduler("test", 2, core::RealClock());
  MemoryEngine engine_{*scheduler_};
  std::string dir_;
  std::unique_ptr<MemoryNamespace> tree_owned_;
  MemoryNamespace* tree_ = nullptr;
  std::unique_ptr<Mount> mount_;
};

}  // namespace dartfs::fs
