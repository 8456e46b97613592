// Vetting of an index before this process maps it. LMDB trusts its pages, so a flipped bit in one
// can end the process that follows it; what is suspect is therefore walked in a child process.
//
//   seal matches                      nothing changed since the last clean stop: opened as it is
//   no seal, walk sound               unclean stop: opened as it is
//   seal differs, or walk not sound   records that decode are copied into a fresh index
//   the child dies or copies nothing  the caller sets the index aside
//   the child is late                 opened as it is, if nothing was found so far
//
// What keeps the index from being looked at or copied and is not its own fault (no descriptor, no
// permission, no space for the copy) is an error: the index stays as it is.
//
// Blocking. The child is alone in its process: it takes no lock of this one and writes no log.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"

namespace dartfs::core {

struct IndexVetOptions {
  std::string dir;       // of the index
  std::string copy_dir;  // where a copy is made; must not exist
  uint64_t map_bytes = 0;
  bool always_copy = false;  // however sound it looks
  // Of one child; there are two at most. Together clearly less than what a start has in all before
  // it is given up from outside, which would count as a death: 120 s (app/start_report).
  Duration deadline = std::chrono::seconds(40);
};

struct IndexVerdict {
  enum class Action { kUse, kUseCopy, kSetAside };
  Action action = Action::kUse;
  uint64_t records = 0;       // seen
  uint64_t lost_records = 0;  // did not decode, or could not be reached
  std::string reason;         // for the log, empty where all is well
};

Result<IndexVerdict> VetIndex(const IndexVetOptions& options);

// The seal of a clean stop: a checksum of the whole index file. Nobody may have it open.
Status WriteIndexSeal(const std::string& dir);
enum class SealState { kAbsent, kMatches, kDiffers };
SealState CheckIndexSeal(const std::string& dir);
// Before the first change. Absent is fine.
Status RemoveIndexSeal(const std::string& dir);

// Runs in the child; exposed for tests. `report` lives in shared memory.
struct IndexWalkReport {
  uint64_t records = 0;
  uint64_t bad_records = 0;
  bool walked = false;  // before it was copied
  bool sound = false;   // structure and records
  bool copied = false;  // to the end
  uint64_t copied_records = 0;
  // Why it could not be looked at, or the copy not be written: an errno, 0 where that is not why.
  int open_errno = 0;
  int copy_errno = 0;
};
void WalkIndex(const IndexVetOptions& options, IndexWalkReport* report);

}  // namespace dartfs::core
