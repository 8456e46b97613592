// Where the log goes: stderr in the foreground, syslog in the background, or a file that is opened
// anew on request (logrotate).
#pragma once

#include <string>

#include "app/options.h"
#include "core/base/result.h"

namespace dartfs::app {

// Sets destination and level. Before other threads start. kIo: the log file can't be opened.
core::Status SetUpLog(const Options& options);

// Opens the log file again, as after its renaming. Any thread. Nothing to do without --log-file; on
// an error the old file stays in use.
core::Status ReopenLog(const Options& options);

}  // namespace dartfs::app
