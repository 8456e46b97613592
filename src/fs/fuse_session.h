// FuseSession: one connection to the kernel: libfuse's session and its loop of threads. Owns the
// device's descriptor; knows nothing of mountpoints. Thread-safe.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/base/time.h"
#include "core/base/unique_fd.h"
#include "fs/file_system.h"
#include "fs/op_counts.h"

namespace dartfs::fs {

class FuseSession {
 public:
  struct Options {
    core::UniqueFd device;  // an open /dev/fuse, already mounted
    unsigned threads = 8;
    unsigned max_background = 64;
    bool passthrough = true;  // agree on it by INIT, where the kernel offers it
  };

  // Starts the loop. `fs` and `scheduler` outlive the session.
  static core::Result<std::unique_ptr<FuseSession>> Create(Options options, FileSystem& fs,
                                                           core::Scheduler& scheduler);
  ~FuseSession();  // Stop

  // Blocks until the kernel's INIT has been worked on. kDeadlineExceeded, or kIo when the session
  // ended first.
  core::Status WaitReady(core::Duration timeout);
  // From here on complete files are read by the kernel itself. After WaitReady. `probe_file` lies
  // where their cache files do. Errors say in words for people why not; then all goes the ordinary
  // way. Local system calls.
  core::Status StartPassthrough(const std::string& probe_file);
  // Blocks until the session has ended (unmounted, connection aborted, Stop); false: `timeout`
  // first.
  bool WaitEnded(core::Duration timeout);
  bool ended() const;

  // Lets waiting requests finish for `grace`; answers those that still wait with kUnavailable.
  // Blocks.
  void AnswerWaiting(core::Duration grace);

  // Ends the loop and joins it, answers everything that waits. Twice is fine.
  void Stop();

  const OpCounts& counts() const;
  size_t waiting() const;  // requests that wait for an answer

 private:
  struct Impl;
  explicit FuseSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dartfs::fs
