#include "app/run.h"

#include <poll.h>
#include <sys/mount.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/argv.h"
#include "app/attach.h"
#include "app/limits.h"
#include "app/logging.h"
#include "app/node.h"
#include "app/options.h"
#include "app/pid_file.h"
#include "app/preflight.h"
#include "app/signals.h"
#include "app/start_report.h"
#include "app/watchdog.h"
#include "core/base/log.h"
#include "core/base/text.h"

namespace dartfs::app {
namespace {

using core::Result;
using core::Status;

// A stop that takes longer is ended by force: reads are answered within a second, the cache is
// local.
constexpr core::Duration kStopLimit = std::chrono::seconds(30);

// What the options come from: again on SIGHUP, when the working directory is another.
struct CommandLine {
  std::vector<std::string> arguments;
  std::string working_dir;
};

Result<Invocation> Parse(const CommandLine& command) {
  return ParseCommandLine(command.arguments, command.working_dir);
}

// What a service manager is told, if one listens.
void Tell(const std::string& text) { sd_notify(0, text.c_str()); }

std::string Microseconds(core::Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

void TellReady(const Node& node) { Tell("READY=1\nSTATUS=" + node.Summary()); }

// SIGHUP: the log file anew, the level as the options have it now. Those options, or the running
// ones where they are wrong.
Options Reload(const CommandLine& command, const Options& running) {
  if (const Status reopened = ReopenLog(running); !reopened) {
    LOG_ERROR("the log stays where it was: {}", reopened.error().context);
  }
  const Result<Invocation> again = Parse(command);
  if (!again) {
    LOG_ERROR("reload: the options stay as they are: {}", again.error().context);
    return running;
  }
  core::SetLogLevel(again->options.log_level);
  LOG_INFO("reloading: log level {}", again->options.log_level);
  return again->options;
}

void ReloadAndTell(Node& node, const CommandLine& command, const Options& running) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto since = std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  Tell("RELOADING=1\nMONOTONIC_USEC=" + Microseconds(since) + "\nSTATUS=reloading");
  node.Reload(Reload(command, running), [&node] {
    LOG_INFO("reloaded");
    TellReady(node);
  });
}

enum class StopReason { kSignal, kUnmounted };

StopReason WaitForEnd(Node& node, Signals& signals, const CommandLine& command,
                      const Options& options) {
  Watchdog watchdog(Watchdog::LimitOfService(), node.scheduler(), [] { Tell("WATCHDOG=1"); });
  while (true) {
    watchdog.Tick();
    const auto left = watchdog.Left();
    const int timeout_ms = left ? static_cast<int>(core::ToMillis(*left)) + 1 : -1;
    std::array<pollfd, 2> polled = {{{signals.fd(), POLLIN, 0}, {node.ended_fd(), POLLIN, 0}}};
    if (poll(polled.data(), polled.size(), timeout_ms) <= 0) continue;
    if (polled[1].revents != 0) {
      LOG_INFO("ending: the last mount has ended");
      return StopReason::kUnmounted;
    }
    const int signal = signals.Next().value_or(0);
    if (signal == SIGHUP) ReloadAndTell(node, command, options);
    if (signal == SIGTERM || signal == SIGINT) {
      LOG_INFO("stopping on {}", signal == SIGTERM ? "SIGTERM" : "SIGINT");
      return StopReason::kSignal;
    }
  }
}

void StopInOrder(Node& node, Signals& signals, StopReason reason, const PidFile& pid_file) {
  Tell("STOPPING=1\nSTATUS=unmounting\nEXTEND_TIMEOUT_USEC=" + Microseconds(2 * kStopLimit));
  StopGuard::Options guarded;
  guarded.limit = kStopLimit;
  guarded.signals = reason == StopReason::kSignal ? 1 : 2;
  guarded.force = [mountpoints = node.mountpoints(), pid_path = pid_file.path()](const char* why) {
    LOG_ERROR("stopped by force: {}", why);
    for (const std::string& mountpoint : mountpoints) {
      umount2(mountpoint.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
    if (!pid_path.empty()) unlink(pid_path.c_str());
    _exit(kExitMount);
  };
  const StopGuard guard(signals, std::move(guarded));
  node.Stop();
}

// The process of one start, once it has left whoever started it or stays with him.
class Process {
 public:
  Process(StartReport report, const Invocation& invocation, const CommandLine& command)
      : report_(std::move(report)),
        invocation_(invocation),
        options_(invocation.options),
        command_(command) {}

  // Joins the node that has the cache directory, or becomes it. The exit code.
  int Run() {
    for (int attempt = 0;; ++attempt) {
      Result<std::optional<Joined>> joined = Join();
      if (!joined) return Fail(kExitMount, joined.error());
      if (*joined) return Stay(**joined);
      if (const Status ready = Prepare(); !ready) return Fail(kExitUsage, ready.error());
      Result<std::unique_ptr<Node>> node = Node::Open(options_);
      if (node) return Serve(**node);
      // Another was quicker, or only looked.
      const bool busy = node.error().code == core::Code::kBusy;
      if (!busy || attempt == kMostAttempts) return Fail(kExitMount, Explained(node.error()));
      poll(nullptr, 0, kPauseMs);
    }
  }

 private:
  static constexpr int kMostAttempts = 100;
  static constexpr int kPauseMs = 20;

  int Fail(ExitCode code, const core::Error& error) {
    report_.Failed(code, error);
    return code;
  }

  OnMounted ReportMounted() {
    return [this](const std::string& mountpoint, dev_t device) {
      report_.Mounted(mountpoint, device);
    };
  }

  Result<std::optional<Joined>> Join() {
    if (options_.no_mount) return std::optional<Joined>();
    if (!signals_) core::LogToStderr();  // a process that joins has no log of its own
    return JoinNode(invocation_, ReportMounted());
  }

  core::Error Explained(const core::Error& error) const {
    core::Error explained = error;
    if (error.code == core::Code::kBusy) {
      explained.context += options_.no_mount
                               ? ": unmount what that node serves first, or name another cache "
                                 "directory (--cache-dir DIR)"
                               : ": give this mount a cache directory of its own (--cache-dir DIR, "
                                 "or -o cache_dir=DIR)";
    }
    return explained;
  }

  // The mount is served by another process.
  int Stay(const Joined& joined) {
    if (!options_.foreground) {
      report_.Ready();
      return kExitOk;
    }
    Result<Signals> signals = Signals::Create();
    if (!signals) return Fail(kExitSystem, signals.error());
    report_.Ready();
    Tell("READY=1");
    const Status ended = StayJoined(joined, *signals);
    return ended ? kExitOk : Fail(kExitMount, ended.error());
  }

  // What a node needs before its first thread; once.
  Status Prepare() {
    if (signals_) return {};
    TRY(SetUpLog(options_));
    RaiseOpenFilesLimit();
    KeepHeapSmall();
    TRY_ASSIGN(signals_, Signals::Create());
    Tell("STATUS=opening the cache\nEXTEND_TIMEOUT_USEC=" + Microseconds(StartReport::kDeadline));
    return {};
  }

  int Serve(Node& node) {
    if (const Status mine = CheckPidFile(options_.pid_file); !mine) {
      return Fail(kExitMount, mine.error());
    }
    if (const Status begun = node.Begin(ReportMounted()); !begun) {
      return Fail(kExitMount, begun.error());
    }
    PidFile pid_file;
    if (const Status written = pid_file.Write(options_.pid_file); !written) {
      node.Stop();
      return Fail(kExitMount, written.error());
    }
    report_.Ready();
    TellReady(node);
    const StopReason reason = WaitForEnd(node, *signals_, command_, options_);
    StopInOrder(node, *signals_, reason, pid_file);
    return kExitOk;
  }

  StartReport report_;
  const Invocation& invocation_;
  const Options& options_;
  const CommandLine& command_;
  std::optional<Signals> signals_;
};

int Mount(const Invocation& invocation, const CommandLine& command) {
  if (invocation.options.foreground) {
    return Process(StartReport::Foreground(), invocation, command).Run();
  }
  Result<StartReport> report = StartReport::Background(invocation.options.cache_dir);
  if (!report) {
    PrintError(report.error().context);
    return kExitSystem;
  }
  return Process(std::move(*report), invocation, command).Run();
}

}  // namespace

int Run(int argc, char** argv) {
  const Surroundings surroundings = CurrentSurroundings();
  const CommandLine command{{argv + std::min(argc, 1), argv + argc}, surroundings.working_dir};
  HideSecretArguments(argc, argv);
  Result<Invocation> invocation = Parse(command);
  if (!invocation) {
    PrintError(invocation.error().context + "\nTry 'dartfs --help'.");
    return kExitUsage;
  }
  Options& options = invocation->options;
  switch (invocation->action) {
    case Action::kHelp:
      std::fputs(HelpText().c_str(), stdout);
      return kExitOk;
    case Action::kVersion:
      std::puts("dartfs " DARTFS_VERSION);
      return kExitOk;
    case Action::kCheckConfig:
    case Action::kRun:
      break;
  }
  if (const Status resolved = ResolveDefaults(options, surroundings); !resolved) {
    PrintError(resolved.error().context);
    return kExitUsage;
  }
  const bool check_only = invocation->action == Action::kCheckConfig;
  if (const Status places = check_only ? CheckPlaces(options) : CheckFiles(options); !places) {
    PrintError(places.error().context);
    return kExitUsage;
  }
  if (check_only) {
    std::puts("the options are right");
    return kExitOk;
  }
  return Mount(*invocation, command);
}

}  // namespace dartfs::app
