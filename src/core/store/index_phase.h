// IndexPhase: a note beside the index of what the process does with it, so that the next start
// knows whether the last one died inside LMDB, and how often in a row. Survives the process, not
// the machine, except where said: a power loss is not the index's fault.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace dartfs::core {

class IndexPhase {
 public:
  enum class Phase : char { kIdle = 'i', kOpening = 'o', kCommitting = 'c' };
  // Deaths in a row with the same phase written.
  struct Deaths {
    Phase phase = Phase::kIdle;
    unsigned in_a_row = 0;
  };

  // The note in `path`: reads how the last run ended and writes kOpening, durably. A note that
  // makes no sense counts as none.
  static Result<IndexPhase> Begin(const std::string& path);
  const Deaths& deaths() const { return deaths_; }
  // Not durable, microseconds. Failing is harmless: a note less.
  void Enter(Phase phase);
  // The note as Begin found it, for a start that fails without dying.
  void PutBack();

 private:
  IndexPhase(UniqueFd fd, Deaths deaths) : fd_(std::move(fd)), deaths_(deaths) {}
  bool Write(Phase phase, unsigned deaths_in_a_row);

  UniqueFd fd_;
  Deaths deaths_;
};

}  // namespace dartfs::core
