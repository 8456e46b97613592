#include "app/control_dispatch.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "app/json_fields.h"
#include "core/base/text.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::MakeError;
using core::Result;
using nlohmann::json;

std::string ToLine(const json& answer) {
  // Names and messages are escaped where they are made; "replace" only keeps dump from throwing.
  return answer.dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace

void ControlDispatch::Add(std::string verb, ControlVerb answer) {
  verbs_.insert_or_assign(std::move(verb), std::move(answer));
}

std::string ControlDispatch::Handle(std::string_view line) const {
  const auto answer = [this, line]() -> Result<json> {
    const json request = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!request.is_object()) {
      return MakeError(Code::kInvalidArgument, "the request is no JSON object");
    }
    const auto name = TextField(request, "verb");
    const auto verb = name ? verbs_.find(*name) : verbs_.end();
    if (verb == verbs_.end()) {
      return MakeError(Code::kUnsupported,
                       "no such verb: '" + core::EscapeForeign(name.value_or(""), 64) + "'");
    }
    return verb->second(request);
  }();
  if (answer) return ToLine({{"ok", true}, {"result", *answer}});
  const core::Error& error = answer.error();
  return ToLine({{"ok", false},
                 {"error", {{"code", core::CodeName(error.code)}, {"message", error.context}}}});
}

}  // namespace dartfs::app
