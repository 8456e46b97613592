// An answer as the steps that a connection plays: bytes, waits, silence, an end.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "origin/answer.h"

namespace dartfs::origin {

struct Step {
  enum class Kind {
    kBytes,  // `text`, as fast as it goes
    kBody,   // `range` of `body`, at the connection's rate
    kDrip,   // `text` byte by byte, `wait` apart
    kWait,   // nothing for `wait`
    kStall,  // the same, and ends at once when the client has closed; zero: for ever
    kClose,  // FIN
    kReset,  // RST, once all before it has been acknowledged
    kCall,   // `call`, on the connection's thread
  };
  Kind kind = Kind::kBytes;
  std::string text;
  bool body_bytes = false;  // kBytes that belong to the body (counted, limited by the rate)
  Body body;
  ByteRange range;
  std::chrono::milliseconds wait{0};
  std::function<void()> call;
};

struct Script {
  std::vector<Step> steps;
  std::uint64_t rate = 0;   // body bytes a second; 0: no limit
  bool keep_alive = false;  // after the last step
};

struct ScriptContext {
  const Request& request;
  const FiredFaults& faults;
  const Behaviour& behaviour;
  bool first_on_connection = true;
  std::time_t now = 0;
};

Script MakeScript(Answer answer, const ScriptContext& context);

}  // namespace dartfs::origin
