#include "ctl/asker.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/control_client.h"
#include "app/json_fields.h"
#include "core/base/text.h"

namespace dartfs::ctl {
namespace {

using core::Code;
using core::Error;
using core::MakeError;
using core::Result;
using nlohmann::json;

constexpr core::Duration kTimeout = std::chrono::seconds(15);

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

}  // namespace

int Fail(ExitCode code, const std::string& text) {
  fmt::print(stderr, "dartfsctl: {}\n", text);
  return code;
}

Asker::Asker(std::string socket, std::string where)
    : socket_(std::move(socket)), where_(std::move(where)) {}

Result<json> Asker::Ask(const json& request, bool& refused) const {
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

Result<json> Asker::AskOrFail(const json& request, int& code) const {
  bool refused = false;
  Result<json> answer = Ask(request, refused);
  code = answer ? kExitOk : Fail(refused ? kExitRefused : kExitNoNode, answer.error().context);
  return answer;
}

}  // namespace dartfs::ctl
