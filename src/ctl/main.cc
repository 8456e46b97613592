// dartfsctl: asks a node over its control socket.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/argv.h"
#include "app/json_fields.h"
#include "app/options.h"
#include "core/base/text.h"
#include "core/base/url.h"
#include "ctl/asker.h"
#include "ctl/job_wait.h"
#include "ctl/render.h"
#include "ctl/target.h"

namespace dartfs::ctl {
namespace {

using core::Result;
using nlohmann::json;

constexpr const char* kCommands =
    "status, mounts, explain, warm, evict, verify, pin, unpin, jobs, cancel or set";

struct Arguments {
  std::string command;
  std::string cache_dir;
  std::string socket;
  std::vector<std::string> targets;
  std::string name;   // of set
  std::string value;  // of set
  int64_t job = 0;    // of cancel
  bool wait = false;  // of warm
  bool as_json = false;
};

std::vector<std::string> Mountpoints(const json& status) {
  std::vector<std::string> paths;
  const json* mounts = app::Field(status, "mounts");
  if (mounts == nullptr) return paths;
  for (const json& mount : *mounts) {
    if (auto path = app::TextField(mount, "mountpoint")) paths.push_back(std::move(*path));
  }
  return paths;
}

json TargetJson(const std::string& target, const std::vector<std::string>& mountpoints) {
  if (IsUrl(target)) return {{"url", target}};
  const std::string path = ResolveUpToMount(target, mountpoints);
  // JSON is text, a path is bytes.
  return {{"path", core::PercentEncode(path, core::UrlSet::kPath)}};
}

class Command {
 public:
  Command(const Arguments& arguments, const Asker& asker) : arguments_(arguments), asker_(asker) {}

  int Run() {
    const std::string& command = arguments_.command;
    if (command == "status") return Print({{"verb", "status"}}, RenderStatus);
    if (command == "mounts") return Print({{"verb", "status"}}, RenderMounts);
    if (command == "jobs") return Print({{"verb", "jobs"}}, RenderJobs);
    if (command == "cancel") {
      return Print({{"verb", "cancel"}, {"job", arguments_.job}}, RenderCancelled);
    }
    if (command == "set") {
      const int code = Print(
          {{"verb", "set"}, {"name", arguments_.name}, {"value", arguments_.value}}, RenderSet);
      return code == kExitRefused ? kExitUsage : code;  // it knows the names and values
    }
    const Result<json> targets = Targets();
    if (!targets) return code_;
    if (command == "explain") {
      json request = targets->front();
      request["verb"] = "explain";
      return Print(request, RenderExplain);
    }
    return RunJob(*targets);
  }

 private:
  using Render = std::string (*)(const json& answer);

  int Show(const json& answer, Render render) const {
    if (arguments_.as_json) {
      const json& shown = arguments_.command == "mounts" && app::Field(answer, "mounts") != nullptr
                              ? *app::Field(answer, "mounts")
                              : answer;
      fmt::print("{}\n", shown.dump(2, ' ', true, json::error_handler_t::replace));
    } else {
      fmt::print("{}", render(answer));
    }
    return kExitOk;
  }

  int Print(const json& request, Render render) {
    const Result<json> answer = asker_.AskOrFail(request, code_);
    return answer ? Show(*answer, render) : code_;
  }

  // Paths are made absolute without touching a mount of the node, so it is asked for them.
  Result<json> Targets() {
    std::vector<std::string> mountpoints;
    for (const std::string& target : arguments_.targets) {
      if (IsUrl(target)) continue;
      TRY_ASSIGN(const json status, asker_.AskOrFail({{"verb", "status"}}, code_));
      mountpoints = Mountpoints(status);
      break;
    }
    json targets = json::array();
    for (const std::string& target : arguments_.targets) {
      targets.push_back(TargetJson(target, mountpoints));
    }
    return targets;
  }

  int RunJob(const json& targets) {
    const bool waits = arguments_.command != "warm" || arguments_.wait;
    if (waits) CatchInterrupt();
    const Result<json> started =
        asker_.AskOrFail({{"verb", arguments_.command}, {"targets", targets}}, code_);
    if (!started) return code_;
    const int64_t id = app::NumberField(*started, "job").value_or(0);
    if (!waits) return Show(*started, RenderStarted);
    const Result<json> job = WaitForJob(asker_, id, code_);
    if (!job) return code_;
    Show(*job, RenderJobEnd);
    return app::TextField(*job, "state") == "done" ? kExitOk : kExitFailed;
  }

  const Arguments& arguments_;
  const Asker& asker_;
  int code_ = kExitOk;
};

int Run(const Arguments& arguments) {
  std::string where = arguments.socket.empty() ? arguments.cache_dir : arguments.socket;
  if (where.empty()) {
    const auto dir = app::DefaultCacheDir(app::CurrentSurroundings());
    if (!dir) return Fail(kExitUsage, dir.error().context);
    where = *dir;
  }
  const std::string socket = arguments.socket.empty() ? where + "/control" : arguments.socket;
  return Command(arguments, Asker(socket, where)).Run();
}

// What CLI11 has left over, and its want of a command, in words of ours; "" when all is well.
std::string WhatIsWrong(const CLI::App& cli) {
  const std::vector<std::string> rest = cli.remaining(/*recurse=*/true);
  const bool has_command = !cli.get_subcommands().empty();
  const std::string choose = std::string(": ") + kCommands;
  if (rest.empty()) return has_command ? "" : "no command" + choose;
  const std::string first = "'" + core::RedactUrl(rest.front()) + "'";
  if (rest.front().starts_with('-')) return "unknown option " + first;
  if (has_command) return "one argument too many: " + first;
  return "unknown command " + first + choose;
}

void AddCommands(CLI::App& cli, Arguments& arguments) {
  cli.add_subcommand("status", "mounts, cache, traffic, what is under way, origins");
  cli.add_subcommand("mounts", "each mount: its source, options and use");
  cli.add_subcommand("explain", "what is known of one file or URL")
      ->add_option("PATH|URL", arguments.targets, "a path on a mount, or a URL")
      ->required()
      ->expected(1);
  const std::pair<const char*, const char*> jobs[] = {
      {"warm", "fetch all of it into the cache; directories with all that is below them"},
      {"evict", "give up what the cache holds of it"},
      {"verify", "check what the cache holds of it against its checksums"},
      {"pin", "never evict it, until it is unpinned"},
      {"unpin", "let it be evicted again"}};
  for (const auto& [name, help] : jobs) {
    CLI::App* const command = cli.add_subcommand(name, help);
    command->add_option("PATH|URL", arguments.targets, "paths on a mount, or URLs")->required();
    if (std::string_view(name) == "warm") {
      command->add_flag("--wait", arguments.wait, "wait for the end, and show how it gets on");
    }
  }
  cli.add_subcommand("jobs", "what warm, evict and verify have under way, and the last that ended");
  cli.add_subcommand("cancel", "end a job")
      ->add_option("JOB", arguments.job, "its number")
      ->required()
      ->check(CLI::Validator(
          [](const std::string& text) -> std::string {
            return core::ParseUint(text) ? "" : "expected a number that 'dartfsctl jobs' lists";
          },
          "NUMBER"));
  CLI::App* const set = cli.add_subcommand("set", "bypass on|off; log-level LEVEL");
  set->add_option("NAME", arguments.name, "bypass or log-level")->required();
  set->add_option("VALUE", arguments.value, "on or off; trace, debug, info, warn or error")
      ->required();
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App cli("Asks a dartfs node what it does and what it holds, and tells it what to.",
               "dartfsctl");
  cli.set_version_flag("-V,--version", "dartfsctl " DARTFS_VERSION);
  cli.fallthrough();
  cli.require_subcommand(0, 1);  // ours to say what is missing
  cli.allow_extras();
  auto* dir = cli.add_option("--cache-dir", arguments.cache_dir,
                             "the node's cache directory [/var/cache/dartfs; users: "
                             "~/.cache/dartfs]");
  cli.add_option("--socket", arguments.socket, "the node's control socket")->excludes(dir);
  cli.add_flag("--json", arguments.as_json, "print JSON");
  AddCommands(cli, arguments);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return cli.exit(asked);
  } catch (const CLI::Error& failure) {
    return Fail(kExitUsage, std::string(failure.what()) + "\nTry 'dartfsctl --help'.");
  }
  if (const std::string wrong = WhatIsWrong(cli); !wrong.empty()) {
    return Fail(kExitUsage, wrong + "\nTry 'dartfsctl --help'.");
  }
  arguments.command = cli.get_subcommands().front()->get_name();
  app::HideSecretArguments(argc, argv);
  return Run(arguments);
}

}  // namespace
}  // namespace dartfs::ctl

int main(int argc, char** argv) { return dartfs::ctl::Main(argc, argv); }
