// fuse_ops: libfuse's requests into calls of a FileSystem, and its replies into libfuse's. A thin
// translation: no state of its own but the requests that wait.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "fs/file_system.h"
#include "fs/fuse_io.h"
#include "fs/op_counts.h"
#include "fs/pending_replies.h"

namespace dartfs::fs {

// The session's userdata.
struct FuseContext {
  FileSystem& fs;
  const std::shared_ptr<PendingReplies> pending;
  const unsigned max_background;  // requests of the kernel's read-ahead under way
  const bool want_passthrough;
  OpCounts counts;
  InitState init;
  std::atomic<uint64_t> interrupts_read = 0;
};

// One READ at most; mount option and connection must say the same.
inline constexpr unsigned kMaxReadBytes = 1 << 20;

fuse_lowlevel_ops FuseOperations();

}  // namespace dartfs::fs
