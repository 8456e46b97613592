// fusermount3: the set-user-ID helper through which users other than root mount and unmount.
// Blocking, up to `limit` and a second more for a helper that hangs: it is killed. What the helper
// has to say goes to standard error.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_fd.h"

namespace dartfs::fs {

inline constexpr core::Duration kFusermountLimit = std::chrono::seconds(10);

// Mounts, and gives the /dev/fuse of the mount. `options` is what stands after -o: comma-separated,
// escaped. kIo: the helper is not there, or refuses.
core::Result<core::UniqueFd> MountByFusermount(const std::string& mountpoint,
                                               const std::string& options,
                                               core::Duration limit = kFusermountLimit);

// `lazy`: also while in use. kBusy: the helper refuses (in use, or not this user's mount).
core::Status UnmountByFusermount(const std::string& mountpoint, bool lazy,
                                 core::Duration limit = kFusermountLimit);

}  // namespace dartfs::fs
