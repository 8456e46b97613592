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

struct ControlDispatch::Asked {
  json request;
  core::UniqueFd fd;
  ControlAnswer answer;
};

void ControlDispatch::Add(std::string verb, ControlVerb answer) {
  const auto without_fd = [answer = std::move(answer)](const json& request, const core::UniqueFd&) {
    return answer(request);
  };
  verbs_.insert_or_assign(std::move(verb), Verb{without_fd, nullptr});
}

void ControlDispatch::AddBlocking(std::string verb, ControlVerb answer, core::Scheduler& worker) {
  const auto without_fd = [answer = std::move(answer)](const json& request, const core::UniqueFd&) {
    return answer(request);
  };
  verbs_.insert_or_assign(std::move(verb), Verb{without_fd, &worker});
}

void ControlDispatch::AddBlockingWithFd(std::string verb, ControlVerbWithFd answer,
                                        core::Scheduler& worker) {
  verbs_.insert_or_assign(std::move(verb), Verb{std::move(answer), &worker});
}

void ControlDispatch::Handle(ControlRequest request, ControlAnswer answer) const {
  json parsed = json::parse(request.line, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) {
    return answer(ToLine(MakeError(Code::kInvalidArgument, "the request is no JSON object")));
  }
  const auto name = TextField(parsed, "verb");
  const auto verb = name ? verbs_.find(*name) : verbs_.end();
  if (verb == verbs_.end()) {
    return answer(ToLine(MakeError(
        Code::kUnsupported, "no such verb: '" + core::EscapeForeign(name.value_or(""), 64) + "'")));
  }
  if (verb->second.worker == nullptr) {
    return answer(ToLine(verb->second.answer(parsed, std::move(request.fd))));
  }
  AnswerLater(verb->second, {std::move(parsed), std::move(request.fd), std::move(answer)});
}

void ControlDispatch::AnswerLater(const Verb& verb, Asked asked) const {
  if (waiting_->load(std::memory_order_relaxed) >= kMostWaiting) {
    return asked.answer(ToLine(MakeError(
        Code::kBusy,
        "earlier questions still wait for the cache's disk; when that lasts, the disk hangs: see "
        "the node's log and dmesg")));
  }
  waiting_->fetch_add(1, std::memory_order_relaxed);
  verb.worker->Post([&verb, waiting = waiting_, asked = std::move(asked)]() mutable {
    asked.answer(ToLine(verb.answer(asked.request, std::move(asked.fd))));
    waiting->fetch_sub(1, std::memory_order_relaxed);
  });
}

}  // namespace dartfs::app
