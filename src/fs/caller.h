// Is the thread that made a request being killed? (KERNEL.md: a fatal signal shows as SIGKILL among
// the pending ones, also when it was sent as another; a handled one does not.)
#pragma once

#include <sys/types.h>

#include <string_view>

namespace dartfs::fs {

enum class CallerState {
  kAlive,
  kDying,
  kUnseen,  // in another PID namespace, or gone
};

// Reads /proc/<tid>/status. Does not wait.
CallerState LookAtCaller(pid_t tid);

// The same from the file's text. Pure.
CallerState CallerStateOf(std::string_view proc_status);

}  // namespace dartfs::fs
