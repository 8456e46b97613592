// Waits for the end of a job of the node, and shows how it gets on.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "core/base/result.h"
#include "ctl/asker.h"

namespace dartfs::ctl {

// From here on SIGINT ends a WaitForJob, not the program: before a job is asked for that is to be
// waited for.
void CatchInterrupt();

// The job as it is at its end. Progress goes to stderr: a line that is drawn anew on a terminal,
// else a line now and then. SIGINT ends the waiting, not the job (CatchInterrupt). On an error,
// `code` says what to end with; it has been printed.
core::Result<nlohmann::json> WaitForJob(const Asker& asker, int64_t id, int& code);

}  // namespace dartfs::ctl
