#include "origin/service.h"

#include <ctime>

#include "origin/control.h"

namespace dartfs::origin {

Service::Play Service::Answer(const Request& request, std::uint64_t connection,
                              bool first_on_connection) {
  const std::time_t now = std::time(nullptr);
  if (IsControl(request)) {
    ControlAnswer control = HandleControl(request, *this);
    Script script =
        MakeScript(std::move(control.answer), {request, {}, {}, first_on_connection, now});
    if (control.then) {
      Step step;
      step.kind = Step::Kind::kCall;
      step.call = std::move(control.then);
      script.steps.push_back(std::move(step));
    }
    return {std::move(script), nullptr};
  }
  const Behaviour current = behaviour();
  const FiredFaults faults = faults_.Match(request);
  const std::uint64_t sequence = sequence_.fetch_add(1, std::memory_order_relaxed) + 1;
  origin::Answer answer = MakeAnswer({request, faults, content_, current, sequence, now});
  StatsTable::EntryPtr entry = stats_.Begin(request, answer.status, connection);
  return {MakeScript(std::move(answer), {request, faults, current, first_on_connection, now}),
          std::move(entry)};
}

Script Service::Refuse(int status) {
  origin::Answer answer = TextAnswer(status, "this is not a request that can be served\n");
  answer.close = true;
  return MakeScript(std::move(answer), {Request{}, {}, {}, true, std::time(nullptr)});
}

Behaviour Service::behaviour() const {
  const std::lock_guard lock(mu_);
  return behaviour_;
}

void Service::SetBehaviour(const Behaviour& behaviour) {
  const std::lock_guard lock(mu_);
  behaviour_ = behaviour;
}

}  // namespace dartfs::origin
