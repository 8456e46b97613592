#include "app/run.h"

#include <poll.h>
#include <sys/mount.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "app/argv.h"
#include "app/limits.h"
#include "app/logging.h"
#include "app/node.h"
#include "app/options.h"
#include "app/pid_file.h"
#include "app/preflight.h"
#include "app/signals.h"
#include "app/start_report.h"
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

// SIGHUP: the log file anew, the level as the options have it now.
void Reload(const CommandLine& command, const Options& running) {
  if (const Status reopened = ReopenLog(running); !reopened) {
    LOG_ERROR("the log stays where it was: {}", reopened.error().context);
  }
  const Result<Invocation> again = Parse(command);
  if (!again) {
    LOG_ERROR("reload: the options stay as they are: {}", again.error().context);
    return;
  }
  core::SetLogLevel(again->options.log_level);
  LOG_INFO("reloaded: log level {}", again->options.log_level);
}

enum class StopReason { kSignal, kUnmounted };

StopReason WaitForEnd(Node& node, Signals& signals, const CommandLine& command,
                      const Options& options) {
  while (true) {
    std::array<pollfd, 2> polled = {{{signals.fd(), POLLIN, 0}, {node.ended_fd(), POLLIN, 0}}};
    poll(polled.data(), polled.size(), -1);
    if (polled[1].revents != 0) {
      LOG_INFO("{} was unmounted", core::EscapeForeign(node.mountpoint()));
      return StopReason::kUnmounted;
    }
    const int signal = signals.Next().value_or(0);
    if (signal == SIGHUP) Reload(command, options);
    if (signal == SIGTERM || signal == SIGINT) {
      LOG_INFO("stopping on {}", signal == SIGTERM ? "SIGTERM" : "SIGINT");
      return StopReason::kSignal;
    }
  }
}

void StopInOrder(Node& node, Signals& signals, StopReason reason, const PidFile& pid_file) {
  sd_notify(0, "STOPPING=1");
  StopGuard::Options guarded;
  guarded.limit = kStopLimit;
  guarded.signals = reason == StopReason::kSignal ? 1 : 2;
  guarded.force = [mountpoint = node.mountpoint(), pid_path = pid_file.path()](const char* why) {
    LOG_ERROR("stopped by force: {}", why);
    umount2(mountpoint.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    if (!pid_path.empty()) unlink(pid_path.c_str());
    _exit(kExitMount);
  };
  const StopGuard guard(signals, std::move(guarded));
  node.Stop();
}

// The process that serves: threads start here.
int Serve(StartReport report, const Options& options, const CommandLine& command) {
  const auto fail = [&report](ExitCode code, const core::Error& error) {
    report.Failed(code, error);
    return static_cast<int>(code);
  };
  if (const Status log = SetUpLog(options); !log) return fail(kExitUsage, log.error());
  RaiseOpenFilesLimit();
  Result<Signals> signals = Signals::Create();
  if (!signals) return fail(kExitSystem, signals.error());
  if (const Status mine = CheckPidFile(options.pid_file); !mine) {
    return fail(kExitMount, mine.error());
  }
  Result<std::unique_ptr<Node>> node =
      Node::Start(options, [&report](const std::string& mountpoint, dev_t device) {
        report.Mounted(mountpoint, device);
      });
  if (!node) return fail(kExitMount, node.error());
  PidFile pid_file;
  if (const Status written = pid_file.Write(options.pid_file); !written) {
    (*node)->Stop();
    return fail(kExitMount, written.error());
  }
  report.Ready();
  sd_notify(0, "READY=1");
  const StopReason reason = WaitForEnd(**node, *signals, command, options);
  StopInOrder(**node, *signals, reason, pid_file);
  return kExitOk;
}

int Mount(const Options& options, const CommandLine& command) {
  if (options.foreground) return Serve(StartReport::Foreground(), options, command);
  Result<StartReport> report = StartReport::Background(options.cache_dir);
  if (!report) {
    PrintError(report.error().context);
    return kExitSystem;
  }
  return Serve(std::move(*report), options, command);
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
  return Mount(options, command);
}

}  // namespace dartfs::app
