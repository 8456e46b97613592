// dartfsctl: asks a node over its control socket.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/argv.h"
#include "app/control_client.h"
#include "app/json_fields.h"
#include "app/options.h"
#include "core/base/text.h"
#include "core/base/url.h"
#include "ctl/render.h"
#include "ctl/target.h"

namespace dartfs::ctl {
namespace {

using core::Code;
using core::Error;
using core::MakeError;
using core::Result;
using nlohmann::json;

enum ExitCode : int { kExitOk = 0, kExitUsage = 1, kExitNoNode = 2, kExitRefused = 3 };

constexpr core::Duration kTimeout = std::chrono::seconds(15);

struct Arguments {
  std::string cache_dir;
  std::string socket;
  std::string target;
  bool as_json = false;
  bool explain = false;
};

int Fail(ExitCode code, const std::string& text) {
  fmt::print(stderr, "dartfsctl: {}\n", text);
  return code;
}

Error NoNode(const std::string& where, const Error& error) {
  const std::string what = core::EscapeForeign(where);
  switch (error.code) {
    case Code::kUnavailable:
      return MakeError(error.code, "no node on " + what +
                                       ": nothing is mounted with this cache directory (name "
                                       "another with --cache-dir)");
    case Code::kForbidden:
      return MakeError(error.code, "no permission to ask the node on " + what +
                                       ": be root, or the user whose node it is");
    default:
      return MakeError(error.code, "the node on " + what + ": " + error.context);
  }
}

class Asker {
 public:
  Asker(std::string socket, std::string where)
      : socket_(std::move(socket)), where_(std::move(where)) {}

  // The "result" of the answer; `refused` tells that the node answered with an error.
  Result<json> Ask(const json& request, bool& refused) const {
    const std::string line = request.dump(-1, ' ', true, json::error_handler_t::replace);
    Result<std::string> answer = app::AskNode(socket_, {line}, kTimeout);
    if (!answer) return NoNode(where_, answer.error());
    json parsed = json::parse(*answer, nullptr, /*allow_exceptions=*/false);
    const auto ok = app::BoolField(parsed, "ok");
    if (!ok) return NoNode(where_, MakeError(Code::kBadResponse, "an answer that is none"));
    if (*ok && app::Field(parsed, "result") != nullptr) return std::move(parsed["result"]);
    refused = true;
    const json* error = app::Field(parsed, "error");
    const auto message = error == nullptr ? std::nullopt : app::TextField(*error, "message");
    return MakeError(Code::kInvalidArgument, message.value_or("refused without a reason"));
  }

 private:
  const std::string socket_;
  const std::string where_;  // for messages
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

Result<json> AskFor(const Arguments& arguments, const Asker& asker, bool& refused) {
  if (!arguments.explain) return asker.Ask({{"verb", "status"}}, refused);
  if (IsUrl(arguments.target)) {
    return asker.Ask({{"verb", "explain"}, {"url", arguments.target}}, refused);
  }
  TRY_ASSIGN(const json status, asker.Ask({{"verb", "status"}}, refused));
  const std::string path = ResolveUpToMount(arguments.target, Mountpoints(status));
  // JSON is text, a path is bytes.
  const std::string encoded = core::PercentEncode(path, core::UrlSet::kPath);
  return asker.Ask({{"verb", "explain"}, {"path", encoded}}, refused);
}

int Run(const Arguments& arguments) {
  std::string where = arguments.socket.empty() ? arguments.cache_dir : arguments.socket;
  if (where.empty()) {
    const auto dir = app::DefaultCacheDir(app::CurrentSurroundings());
    if (!dir) return Fail(kExitUsage, dir.error().context);
    where = *dir;
  }
  const std::string socket = arguments.socket.empty() ? where + "/control" : arguments.socket;
  bool refused = false;
  const Result<json> answer = AskFor(arguments, Asker(socket, where), refused);
  if (!answer) return Fail(refused ? kExitRefused : kExitNoNode, answer.error().context);
  if (arguments.as_json) {
    fmt::print("{}\n", answer->dump(2, ' ', true, json::error_handler_t::replace));
  } else {
    fmt::print("{}", arguments.explain ? RenderExplain(*answer) : RenderStatus(*answer));
  }
  return kExitOk;
}

// What CLI11 has left over, and its want of a command, in words of ours; "" when all is well.
std::string WhatIsWrong(const CLI::App& cli) {
  const std::vector<std::string> rest = cli.remaining(/*recurse=*/true);
  const bool has_command = !cli.get_subcommands().empty();
  if (rest.empty()) return has_command ? "" : "no command: status, or explain PATH|URL";
  const std::string first = "'" + core::RedactUrl(rest.front()) + "'";
  if (rest.front().starts_with('-')) return "unknown option " + first;
  if (has_command) return "one argument too many: " + first;
  return "unknown command " + first + ": status, or explain PATH|URL";
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App cli("Asks a dartfs node what it does and what it holds.", "dartfsctl");
  cli.set_version_flag("-V,--version", "dartfsctl " DARTFS_VERSION);
  cli.fallthrough();
  cli.require_subcommand(0, 1);  // ours to say what is missing
  cli.allow_extras();
  auto* dir = cli.add_option("--cache-dir", arguments.cache_dir,
                             "the node's cache directory [/var/cache/dartfs; users: "
                             "~/.cache/dartfs]");
  cli.add_option("--socket", arguments.socket, "the node's control socket")->excludes(dir);
  cli.add_flag("--json", arguments.as_json, "print JSON");
  cli.add_subcommand("status", "mount, cache, traffic, what is under way, origins");
  CLI::App* explain = cli.add_subcommand("explain", "what is known of one file or URL");
  explain->add_option("PATH|URL", arguments.target, "a path on a mount, or a URL")->required();
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
  arguments.explain = explain->parsed();
  app::HideSecretArguments(argc, argv);
  return Run(arguments);
}

}  // namespace
}  // namespace dartfs::ctl

int main(int argc, char** argv) { return dartfs::ctl::Main(argc, argv); }
