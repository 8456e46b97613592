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

std::string ToLine(const Result<json>& result) {
  json line;
  if (result) {
    line = {{"ok", true}, {"result", *result}};
  } else {
    const core::Error& error = result.error();
    line = {{"ok", false},
            {"error", {{"code", core::CodeName(error.code)}, {"message", error.context}}}};
  }
  // Names and messages are escaped where they are made; "replace" only keeps dump from throwing.
  return line.dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace

void ControlDispatch::Add(std::string verb, ControlVerb answer) {
  verbs_.insert_or_assign(std::move(verb), Verb{std::move(answer), nullptr});
}

void ControlDispatch::AddBlocking(std::string verb, ControlVerb answer, core::Scheduler& worker) {
  verbs_.insert_or_assign(std::move(verb), Verb{std::move(answer), &worker});
}

void ControlDispatch::Handle(const std::string& line, ControlAnswer answer) const {
  json request = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object()) {
    return answer(ToLine(MakeError(Code::kInvalidArgument, "the request is no JSON object")));
  }
  const auto name = TextField(request, "verb");
  const auto verb = name ? verbs_.find(*name) : verbs_.end();
  if (verb == verbs_.end()) {
    return answer(ToLine(MakeError(
        Code::kUnsupported, "no such verb: '" + core::EscapeForeign(name.value_or(""), 64) + "'")));
  }
  if (verb->second.worker == nullptr) return answer(ToLine(verb->second.answer(request)));
  AnswerLater(verb->second, std::move(request), std::move(answer));
}

void ControlDispatch::AnswerLater(const Verb& verb, json request, ControlAnswer answer) const {
  if (waiting_->load(std::memory_order_relaxed) >= kMostWaiting) {
    return answer(ToLine(MakeError(Code::kBusy,
                                   "earlier questions still wait for the cache's disk; when that "
                                   "lasts, the disk hangs: see the node's log and dmesg")));
  }
  waiting_->fetch_add(1, std::memory_order_relaxed);
  verb.worker->Post([&verb, waiting = waiting_, request = std::move(request),
                     answer = std::move(answer)]() mutable {
    answer(ToLine(verb.answer(request)));
    waiting->fetch_sub(1, std::memory_order_relaxed);
  });
}

}  // namespace dartfs::app
