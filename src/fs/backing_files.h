// BackingFiles: files that the kernel reads by itself for a mount (FUSE passthrough). fuse_* has
// the real one; tests have their own. Thread-safe.
#pragma once

#include <cstdint>

#include "core/base/result.h"

namespace dartfs::fs {

class BackingFiles {
 public:
  virtual ~BackingFiles() = default;
  // The kernel's number for an open file, which may be closed afterwards. A local system call.
  // Errors are the system's word.
  virtual core::Result<int32_t> Register(int fd) = 0;
  // Ends that; opens that use it go on.
  virtual void Unregister(int32_t id) = 0;
};

}  // namespace dartfs::fs
