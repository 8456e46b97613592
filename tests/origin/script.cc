#include "origin/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace dartfs::origin {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMinChunk = 64U << 10U;
constexpr std::uint64_t kMaxChunks = 1024;  // per body, so that scripts stay small

Step BytesStep(std::string text, bool body_bytes) {
  Step step;
  step.text = std::move(text);
  step.body_bytes = body_bytes;
  return step;
}

Step BodyStep(const Body& body, ByteRange range) {
  Step step;
  step.kind = Step::Kind::kBody;
  step.body = body;
  step.range = range;
  return step;
}

Step TimedStep(Step::Kind kind, std::uint64_t ms, std::string text = "") {
  Step step;
  step.kind = kind;
  step.wait = milliseconds(ms);
  step.text = std::move(text);
  return step;
}

Step EndStep(Step::Kind kind) { return TimedStep(kind, 0); }

bool BodyFollows(const Answer& answer, const Request& request) {
  return request.method != "HEAD" && answer.status != 204 && answer.status != 304;
}

void ApplyFramingFaults(const FiredFaults& faults, const Request& request, Answer& answer) {
  if (faults.Has(Fault::kNoLength)) answer.framing = Framing::kUntilClose;
  if (faults.Has(Fault::kChunked) || faults.Has(Fault::kLengthAndChunked)) {
    answer.framing = request.minor_version == 0 ? Framing::kUntilClose : Framing::kChunked;
  }
  if (answer.framing == Framing::kUntilClose) answer.close = true;
}

std::string ExtraLines(std::uint64_t bytes) {
  constexpr std::size_t kValue = 1000;
  std::string out;
  for (int i = 0; out.size() < bytes; ++i) {
    out += fmt::format("X-Padding-{}: {}\r\n", i, std::string(kValue, 'x'));
  }
  return out;
}

std::string FramingLines(const Answer& answer, const FiredFaults& faults) {
  std::string out;
  const std::uint64_t size = answer.BodySize();
  if (answer.framing == Framing::kLength || faults.Has(Fault::kLengthAndChunked)) {
    if (answer.status != 304) out += fmt::format("Content-Length: {}\r\n", size);
  }
  if (const FaultRule* rule = faults.Find(Fault::kDuplicateLength)) {
    out += fmt::format("Content-Length: {}\r\n", size + static_cast<std::uint64_t>(rule->shift));
  }
  if (answer.framing == Framing::kChunked) out += "Transfer-Encoding: chunked\r\n";
  return out;
}

std::string Head(const Answer& answer, const ScriptContext& context) {
  const FiredFaults& faults = context.faults;
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\nServer: test-origin\r\nDate: {}\r\n", answer.status,
                  ReasonPhrase(answer.status), FormatHttpDate(context.now));
  for (const auto& [name, value] : answer.headers) out += fmt::format("{}: {}\r\n", name, value);
  if (const FaultRule* rule = faults.Find(Fault::kHugeHead)) {
    out += ExtraLines(rule->count.value_or(65536));
  }
  out += FramingLines(answer, faults);
  if (answer.close) {
    out += "Connection: close\r\n";
  } else if (context.request.minor_version == 0) {
    out += "Connection: keep-alive\r\n";
  }
  return out + "\r\n";
}

void AddInterim(const FiredFaults& faults, std::vector<Step>& steps) {
  std::string text;
  const auto repeat = [&text](const FaultRule* rule, const char* head) {
    for (std::uint64_t i = 0; rule != nullptr && i < rule->count.value_or(1); ++i) text += head;
  };
  repeat(faults.Find(Fault::kInterim100), "HTTP/1.1 100 Continue\r\n\r\n");
  repeat(faults.Find(Fault::kInterim103),
         "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n");
  if (!text.empty()) steps.push_back(BytesStep(std::move(text), false));
}

void AddHead(const FiredFaults& faults, std::string head, std::vector<Step>& steps) {
  if (const FaultRule* rule = faults.Find(Fault::kStallHead)) {
    const std::size_t cut = std::min<std::size_t>(rule->after_bytes, head.size());
    if (cut > 0) steps.push_back(BytesStep(head.substr(0, cut), false));
    steps.push_back(TimedStep(Step::Kind::kStall, rule->delay_ms));
    head.erase(0, cut);
  }
  if (const FaultRule* rule = faults.Find(Fault::kSlowHead)) {
    const std::uint64_t pace = std::max<std::uint64_t>(rule->delay_ms, 1);
    steps.push_back(TimedStep(Step::Kind::kDrip, pace, std::move(head)));
  } else {
    steps.push_back(BytesStep(std::move(head), false));
  }
}

std::vector<Step> PlainBody(const Answer& answer) {
  std::vector<Step> steps;
  if (!answer.prefix.empty()) steps.push_back(BytesStep(answer.prefix, true));
  if (answer.range.size() > 0) steps.push_back(BodyStep(answer.body, answer.range));
  if (!answer.suffix.empty()) steps.push_back(BytesStep(answer.suffix, true));
  return steps;
}

std::vector<Step> ChunkedBody(const Answer& answer) {
  std::vector<Step> steps;
  const auto chunk = [&steps](std::uint64_t size, Step content) {
    steps.push_back(BytesStep(fmt::format("{:x}\r\n", size), false));
    steps.push_back(std::move(content));
    steps.push_back(BytesStep("\r\n", false));
  };
  if (!answer.prefix.empty()) chunk(answer.prefix.size(), BytesStep(answer.prefix, true));
  const std::uint64_t each = std::max(kMinChunk, answer.range.size() / kMaxChunks);
  for (std::uint64_t at = answer.range.begin; at < answer.range.end;) {
    const std::uint64_t end = std::min(answer.range.end, at + each);
    chunk(end - at, BodyStep(answer.body, {at, end}));
    at = end;
  }
  if (!answer.suffix.empty()) chunk(answer.suffix.size(), BytesStep(answer.suffix, true));
  steps.push_back(BytesStep("0\r\n\r\n", false));
  return steps;
}

std::uint64_t SizeOf(const Step& step) {
  return step.kind == Step::Kind::kBody ? step.range.size() : step.text.size();
}

// Splits `steps` after so many bytes on the wire; returns what comes after.
std::vector<Step> SplitAfter(std::vector<Step>& steps, std::uint64_t bytes) {
  std::size_t i = 0;
  for (; i < steps.size() && SizeOf(steps[i]) <= bytes; ++i) bytes -= SizeOf(steps[i]);
  std::vector<Step> rest(std::make_move_iterator(steps.begin() + static_cast<std::ptrdiff_t>(i)),
                         std::make_move_iterator(steps.end()));
  steps.resize(i);
  if (rest.empty() || bytes == 0) return rest;
  Step head = rest.front();
  Step& tail = rest.front();
  if (head.kind == Step::Kind::kBody) {
    head.range.end = tail.range.begin = head.range.begin + bytes;
  } else {
    head.text.resize(bytes);
    tail.text.erase(0, bytes);
  }
  steps.push_back(std::move(head));
  return rest;
}

void AddBody(const FiredFaults& faults, const Answer& answer, std::vector<Step>& steps) {
  std::vector<Step> body =
      answer.framing == Framing::kChunked ? ChunkedBody(answer) : PlainBody(answer);
  if (const FaultRule* rule = faults.Find(Fault::kExtraBody)) {
    body.push_back(BytesStep(std::string(rule->count.value_or(1), '!'), true));
  }
  if (const FaultRule* rule = faults.Find(Fault::kShortBody)) {
    SplitAfter(body, rule->after_bytes);
    body.push_back(EndStep(Step::Kind::kClose));
  } else if (const FaultRule* reset = faults.Find(Fault::kReset)) {
    SplitAfter(body, reset->after_bytes);
    body.push_back(EndStep(Step::Kind::kReset));
  } else if (const FaultRule* stall = faults.Find(Fault::kStallBody)) {
    std::vector<Step> rest = SplitAfter(body, stall->after_bytes);
    body.push_back(TimedStep(Step::Kind::kStall, stall->delay_ms));
    std::move(rest.begin(), rest.end(), std::back_inserter(body));
  }
  std::move(body.begin(), body.end(), std::back_inserter(steps));
}

std::uint64_t DelayMs(const ScriptContext& context) {
  std::uint64_t ms = context.behaviour.delay_ms;
  if (context.first_on_connection) ms += context.behaviour.connect_delay_ms;
  if (const FaultRule* rule = context.faults.Find(Fault::kDelay)) ms += rule->delay_ms;
  return ms;
}

}  // namespace

Script MakeScript(Answer answer, const ScriptContext& context) {
  const FiredFaults& faults = context.faults;
  Script script;
  std::vector<Step>& steps = script.steps;
  if (const std::uint64_t ms = DelayMs(context)) steps.push_back(TimedStep(Step::Kind::kWait, ms));
  if (faults.Has(Fault::kHangUp) ||
      (faults.Has(Fault::kCloseOnReuse) && !context.first_on_connection)) {
    steps.push_back(EndStep(Step::Kind::kClose));
    return script;
  }
  if (faults.Has(Fault::kGarbage)) {
    steps.push_back(BytesStep("SSH-2.0-OpenSSH_9.2p1\r\n\x01\x02\x03\r\n", false));
    steps.push_back(EndStep(Step::Kind::kClose));
    return script;
  }

  ApplyFramingFaults(faults, context.request, answer);
  if (!context.request.KeepAlive() || !context.behaviour.keep_alive) answer.close = true;
  const FaultRule* slow = faults.Find(Fault::kSlowBody);
  script.rate = slow != nullptr ? slow->rate : context.behaviour.rate;
  script.keep_alive = !answer.close;

  AddInterim(faults, steps);
  AddHead(faults, Head(answer, context), steps);
  if (BodyFollows(answer, context.request)) AddBody(faults, answer, steps);
  if (const FaultRule* rule = faults.Find(Fault::kCloseEarly)) {
    steps.push_back(TimedStep(Step::Kind::kWait, rule->delay_ms));
    steps.push_back(EndStep(Step::Kind::kClose));
  }
  return script;
}

}  // namespace dartfs::origin
