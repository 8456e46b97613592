// Asker: questions to one node.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/result.h"

namespace dartfs::ctl {

// What dartfsctl ends with (dartfsctl(1)).
enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 1,
  kExitNoNode = 2,
  kExitRefused = 3,
  kExitFailed = 4,  // of a job: of what it was to do something is not done
  kExitInterrupted = 130,
};

// "dartfsctl: <text>" on stderr; the code.
int Fail(ExitCode code, const std::string& text);

class Asker {
 public:
  // `where` is for messages: the cache directory, or the socket.
  Asker(std::string socket, std::string where);

  // The "result" of the answer; `refused` tells that the node answered with an error.
  core::Result<nlohmann::json> Ask(const nlohmann::json& request, bool& refused) const;
  // The same; an error has been printed, and `code` says what to end with.
  core::Result<nlohmann::json> AskOrFail(const nlohmann::json& request, int& code) const;

 private:
  const std::string socket_;
  const std::string where_;
};

}  // namespace dartfs::ctl
