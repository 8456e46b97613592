// Seeders: the addresses at which peers may be found. What lives there, and who it is, only the
// roster exchange tells (spec/cluster.md 3.9).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace dartfs::p2p {

class Seeder {
 public:
  virtual ~Seeder() = default;
  // "host:port", "[v6]:port"; none is no error. May block, as a resolver does.
  virtual core::Result<std::vector<std::string>> Seeds() = 0;
};

struct SeederContext {
  // The addresses of a host name, as text without port. May block.
  std::function<core::Result<std::vector<std::string>>(const std::string& host)> resolve;
};

// `dns:<name>:<port>`: every address of the name, looked up each time. `static:<host:port>,...`, or
// the bare list: those. kInvalidArgument with a sentence that says what would be right.
core::Result<std::unique_ptr<Seeder>> ParseSeeder(std::string_view spec,
                                                  const SeederContext& context);

}  // namespace dartfs::p2p
