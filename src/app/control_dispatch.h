// ControlDispatch: from a request line to the verb that answers it, and back to an answer line
// (CONTROL.md). Filled before the server starts, then constant: thread-safe if the verbs are.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dartfs::app {

// The whole request object to the "result" of the answer. Must not block.
using ControlVerb = std::function<core::Result<nlohmann::json>(const nlohmann::json& request)>;

class ControlDispatch {
 public:
  void Add(std::string verb, ControlVerb answer);
  // A ControlHandler: always one line of valid JSON.
  std::string Handle(std::string_view line) const;

 private:
  std::map<std::string, ControlVerb, std::less<>> verbs_;
};

}  // namespace dartfs::app
