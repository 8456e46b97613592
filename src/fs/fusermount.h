// fusermount3: the set-user-ID helper through which users other than root mount and unmount.
// Blocking, ten seconds at most. What the helper has to say goes to standard error.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/unique_fd.h"

namespace dartfs::fs {

// Mounts, and gives the /dev/fuse of the mount. `options` is what stands after -o: comma-separated,
// escaped. kIo: the helper is not there, or refuses.
core::Result<core::UniqueFd> MountByFusermount(const std::string& mountpoint,
                                               const std::string& options);

// `lazy`: also while in use. kBusy: the helper refuses (in use, or not this user's mount).
core::Status UnmountByFusermount(const std::string& mountpoint, bool lazy);

}  // namespace dartfs::fs
