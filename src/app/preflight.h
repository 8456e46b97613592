// What can be told of options before anything is started, without changing anything: whether the
// files and directories that they name are there. Paths are absolute (ResolveDefaults).
#pragma once

#include <string>

#include "app/options.h"
#include "core/base/result.h"

namespace dartfs::app {

// --ca-file, --log-file, --pid-file, --access-log and --cache-dir.
core::Status CheckFiles(const Options& options);

// The same, and what is read or mounted where it is given: the catalogue, the registry logins, the
// mountpoint. For --check-config.
core::Status CheckPlaces(const Options& options);

// kInvalidArgument: the directory that a file is to be made in is not there. `what` names the file
// in the message.
core::Status CheckParent(const std::string& what, const std::string& path);

}  // namespace dartfs::app
