// Syncs of many files at once, waited for together. For the committer.
#pragma once

#include <memory>
#include <vector>

#include "core/base/time.h"
#include "core/io/disk_io.h"
#include "core/store/object_file.h"

namespace dartfs::core {

// The outcome by file, in the order given; kDeadlineExceeded for those that took longer.
std::vector<Status> SyncAll(DiskIo& io, const std::vector<std::shared_ptr<ObjectFile>>& files,
                            Duration deadline);

}  // namespace dartfs::core
