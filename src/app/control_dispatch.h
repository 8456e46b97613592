// ControlDispatch: from a request line to the verb that answers it, and back to an answer line
// (CONTROL.md). Filled before the server starts, then constant: thread-safe if the verbs are.
// Outlives the tasks of its verbs' workers.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/control_server.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"

namespace dartfs::app {

// The whole request object to the "result" of the answer.
using ControlVerb = std::function<core::Result<nlohmann::json>(const nlohmann::json& request)>;

// The same, with the descriptor that came with the request, valid or not.
using ControlVerbWithFd =
    std::function<core::Result<nlohmann::json>(const nlohmann::json& request, core::UniqueFd fd)>;

class ControlDispatch {
 public:
  // Answered on the stack of Handle: must not block.
  void Add(std::string verb, ControlVerb answer);
  // Answered by a task of `worker`: may block on the local disk. While too many wait, kBusy.
  void AddBlocking(std::string verb, ControlVerb answer, core::Scheduler& worker);

  void AddBlockingWithFd(std::string verb, ControlVerbWithFd answer, core::Scheduler& worker);

  // A ControlHandler: always one line of valid JSON.
  void Handle(ControlRequest request, ControlAnswer answer) const;

 private:
  static constexpr size_t kMostWaiting = 32;
  struct Verb {
    ControlVerbWithFd answer;
    core::Scheduler* worker = nullptr;  // null: must not block
  };
  struct Asked;
  void AnswerLater(const Verb& verb, Asked asked) const;

  std::map<std::string, Verb, std::less<>> verbs_;
  // Tasks of workers not yet done, of all verbs.
  const std::shared_ptr<std::atomic<size_t>> waiting_ = std::make_shared<std::atomic<size_t>>(0);
};

}  // namespace dartfs::app
