// Is the thread that made a request being killed?
#pragma once

#include <sys/types.h>

#include <string_view>

namespace dartfs::fs {

enum class CallerState {
  kAlive,
  kDying,
  kUnseen,  // in another PID namespace, or gone
};

// Reads /proc. Does not wait.
CallerState LookAtCaller(pid_t tid);

// The same from the texts of /proc/<tid>/status and stat. A fatal signal shows as SIGKILL among the
// pending ones, also when it was sent as another; a handled one does not (KERNEL.md). A thread that
// has begun to exit, and now waits for its asynchronous reads, shows PF_EXITING among its flags.
// Pure.
CallerState CallerStateOf(std::string_view proc_status, std::string_view proc_stat);

}  // namespace dartfs::fs
