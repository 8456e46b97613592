// StartReport: tells whoever started the process how the start went, then leaves them.
//
// In the background, the process forks at once; the parent waits for the report, prints an error
// and ends with the exit code it is told, 0 once the mount is usable. In the foreground there is no
// parent to tell. Made before threads start; used by the main thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_fd.h"

namespace dartfs::app {

// As mount(8) has them.
enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 1,
  kExitSystem = 2,  // no process, no memory: not the mount's own failure
  kExitMount = 32,
};

class StartReport {
 public:
  static StartReport Foreground() { return StartReport(core::UniqueFd(), false); }
  // A start waits for the local disk alone; one that takes longer hangs.
  static constexpr core::Duration kDeadline = std::chrono::seconds(120);
  // Returns in the child alone. After the deadline the parent kills the child and says that
  // `cache_dir` is what it waited for. kIo: no pipe or no process.
  static core::Result<StartReport> Background(const std::string& cache_dir,
                                              core::Duration deadline = kDeadline);

  // The kernel shows the mount from now on: should the start end without Ready or Failed, the
  // parent takes it away again.
  void Mounted(const std::string& mountpoint, dev_t device);
  // The start went well: in the background the terminal is left (own session, stdio on /dev/null).
  void Ready();
  // Prints the error at the starter's terminal; the caller then ends with the same code.
  void Failed(ExitCode code, const core::Error& error);

 private:
  StartReport(core::UniqueFd pipe, bool background)
      : pipe_(std::move(pipe)), background_(background) {}

  core::UniqueFd pipe_;
  bool background_;
};

// "dartfs: <text>" on stderr.
void PrintError(const std::string& text);

}  // namespace dartfs::app
