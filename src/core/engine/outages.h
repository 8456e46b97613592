// Outages: which origins could not be reached when they were last asked, so that they are left
// alone for a while (DESIGN.md section 7). Pure: time comes as an argument. Not thread-safe.
#pragma once

#include <string>
#include <unordered_map>

#include "core/base/time.h"

namespace dartfs::core {

class Outages {
 public:
  struct Limits {
    Duration served_on;  // so long, what the cache knows is served without asking
    Duration hopeless;   // so long, what it does not know is not asked for either
  };
  explicit Outages(Limits limits) : limits_(limits) {}

  // `no_connection`: not even a bad answer, after all tries.
  void Note(const std::string& authority, bool no_connection, TimePoint now);
  void Clear(const std::string& authority) { by_authority_.erase(authority); }
  bool ServedOn(const std::string& authority, TimePoint now) const;
  bool Hopeless(const std::string& authority, TimePoint now) const;

 private:
  struct Outage {
    TimePoint at{};
    bool no_connection = false;
  };
  const Limits limits_;
  std::unordered_map<std::string, Outage> by_authority_;  // bounded
};

}  // namespace dartfs::core
