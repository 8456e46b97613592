#include "app/start_report.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>

#include "core/base/text.h"
#include "fs/fuse_mount.h"

namespace dartfs::app {
namespace {

using core::UniqueFd;

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the starter has gone; nobody is left to tell
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// All that the child writes until it closes the pipe; false when the deadline passed first.
bool ReadReport(int fd, core::TimePoint deadline, std::string& report) {
  std::array<char, 1024> buffer;
  while (true) {
    const int64_t left_ms = core::ToMillis(deadline - core::RealClock().Now());
    if (left_ms <= 0) return false;
    pollfd polled{fd, POLLIN, 0};
    if (poll(&polled, 1, static_cast<int>(left_ms)) <= 0) continue;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    report.append(buffer.data(), static_cast<size_t>(got));
  }
}

std::string TookTooLong(const std::string& cache_dir, core::Duration deadline) {
  const std::string dir = core::EscapeForeign(cache_dir);
  return "not mounted: after " + std::to_string(core::ToMillis(deadline) / 1000) +
         " seconds the index of the cache in " + dir +
         " was still being opened and checked, so its disk hangs or is very slow. Look at the "
         "kernel's log (dmesg) and try again; or give the mount a cache directory on another disk "
         "(--cache-dir DIR, -o cache_dir=DIR)";
}

// What the child writes: "mounted <major> <minor> <mountpoint>\0" once it is, then "<exit code>
// <text>".
constexpr std::string_view kMounted = "mounted ";

struct OwnMount {
  std::string mountpoint;
  dev_t device = 0;
};

// Takes the first part off the report.
std::optional<OwnMount> TakeMount(std::string& report) {
  const size_t end = report.find('\0');
  if (!report.starts_with(kMounted) || end == std::string::npos) return std::nullopt;
  const std::string_view text = std::string_view(report).substr(0, end);
  const size_t second = text.find(' ', kMounted.size());
  const size_t third = text.find(' ', second + 1);
  if (second == std::string_view::npos || third == std::string_view::npos) return std::nullopt;
  const auto high = core::ParseUint(text.substr(kMounted.size(), second - kMounted.size()));
  const auto low = core::ParseUint(text.substr(second + 1, third - second - 1));
  OwnMount mount{
      std::string(text.substr(third + 1)),
      makedev(static_cast<unsigned>(high.value_or(0)), static_cast<unsigned>(low.value_or(0)))};
  report.erase(0, end + 1);
  return mount;
}

std::string NeverUsable(const OwnMount& mount, core::Duration deadline) {
  return "unmounted again: " + core::EscapeForeign(mount.mountpoint) +
         " was mounted, but not usable after " + std::to_string(core::ToMillis(deadline) / 1000) +
         " seconds. Look at the kernel's log (dmesg) and try again";
}

// The child has gone, or hangs and won't come back.
void Undo(const std::optional<OwnMount>& mount) {
  if (!mount) return;
  const core::Status undone = fs::AbortFuse(mount->mountpoint, mount->device);
  if (!undone) {
    PrintError("the mount stays behind: " + undone.error().context +
               "; detach it: fusermount3 -u -z " + core::EscapeForeign(mount->mountpoint));
  }
}

// The parent's part.
[[noreturn]] void WaitAsParent(UniqueFd pipe, pid_t child, const std::string& cache_dir,
                               core::Duration deadline) {
  std::string report;
  if (!ReadReport(pipe.get(), core::RealClock().Now() + deadline, report)) {
    kill(child, SIGKILL);
    const std::optional<OwnMount> mount = TakeMount(report);
    Undo(mount);
    PrintError(mount ? NeverUsable(*mount, deadline) : TookTooLong(cache_dir, deadline));
    _exit(kExitMount);
  }
  const std::optional<OwnMount> mount = TakeMount(report);
  int code = kExitMount;
  const char* end = report.data() + report.size();
  const auto [rest, failure] = std::from_chars(report.data(), end, code);
  if (failure != std::errc()) {
    Undo(mount);
    PrintError("the process ended before the mount was usable; its log may say why");
    _exit(kExitMount);
  }
  if (code != kExitOk) PrintError(std::string(std::min(rest + 1, end), end));
  _exit(code);
}

void LeaveTerminal() {
  setsid();
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return;
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    dup2(null.get(), standard);
}

}  // namespace

void PrintError(const std::string& text) {
  const std::string line = "dartfs: " + text + "\n";
  WriteAll(STDERR_FILENO, line);
}

core::Result<StartReport> StartReport::Background(const std::string& cache_dir,
                                                  core::Duration deadline) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return core::ErrnoError(errno, "pipe");
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return core::ErrnoError(errno, "fork");
  if (child > 0) {
    writing.Reset();
    WaitAsParent(std::move(reading), child, cache_dir, deadline);
  }
  return StartReport(std::move(writing), true);
}

void StartReport::Mounted(const std::string& mountpoint, dev_t device) {
  if (!background_) return;
  std::string line = std::string(kMounted) + std::to_string(major(device)) + " " +
                     std::to_string(minor(device)) + " " + mountpoint;
  line.push_back('\0');
  WriteAll(pipe_.get(), line);
}

void StartReport::Ready() {
  // Keeps no directory busy.
  if (chdir("/") != 0) PrintError("can't change to the root directory");
  if (!background_) return;
  LeaveTerminal();
  WriteAll(pipe_.get(), "0 ");
  pipe_.Reset();
}

void StartReport::Failed(ExitCode code, const core::Error& error) {
  const std::string text = error.context.empty() ? error.ToString() : error.context;
  if (!background_) {
    PrintError(text);
    return;
  }
  WriteAll(pipe_.get(), std::to_string(code) + " " + text);
  pipe_.Reset();
}

}  // namespace dartfs::app
