// fuse_ops: libfuse's requests into calls of a FileSystem, and its replies into libfuse's. A thin
// translation: no state of its own but the requests that wait.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <atomic>
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
  KernelOffer offer;             // what the kernel's INIT offers
  uint32_t init_flags = 0;       // FUSE_CAP_*: agreed with the kernel by INIT
  bool has_passthrough = false;  // agreed by INIT
  std::atomic<bool> init_answered{false};
  std::atomic<bool> initialised{false};  // release: set once INIT has been worked on
};

// One READ at most; mount option and connection must say the same.
inline constexpr unsigned kMaxReadBytes = 1 << 20;

fuse_lowlevel_ops FuseOperations();

}  // namespace dartfs::fs
