// What all connections share: content, faults, behaviour, counters, and the way from a request to
// the script that answers it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "origin/behaviour.h"
#include "origin/content.h"
#include "origin/fault.h"
#include "origin/script.h"
#include "origin/stats.h"

namespace dartfs::origin {

// Thread-safe.
class Service {
 public:
  Service(std::string root, StatsTable::LogOptions log) : content_(std::move(root)), stats_(log) {}

  // How the program is told to go away for a while, and to drop all connections; set before the
  // first request. Called on a connection's thread after its answer was written; must not block.
  struct Hooks {
    std::function<void(std::chrono::milliseconds)> go_away;
    std::function<void()> drop_connections;
  };
  void SetHooks(Hooks hooks) { hooks_ = std::move(hooks); }

  struct Play {
    Script script;
    StatsTable::EntryPtr entry;  // null: not counted
  };
  // Never blocks but for the file system. End() of the counters follows when the entry is set.
  Play Answer(const Request& request, std::uint64_t connection, bool first_on_connection);
  // To bytes that are no request.
  Script Refuse(int status);

  Content& content() { return content_; }
  FaultTable& faults() { return faults_; }
  StatsTable& stats() { return stats_; }
  const Hooks& hooks() const { return hooks_; }
  Behaviour behaviour() const;
  void SetBehaviour(const Behaviour& behaviour);

 private:
  Content content_;
  FaultTable faults_;
  StatsTable stats_;
  Hooks hooks_;
  std::atomic<std::uint64_t> sequence_{0};

  mutable std::mutex mu_;
  Behaviour behaviour_;  // guarded by mu_
};

}  // namespace dartfs::origin
