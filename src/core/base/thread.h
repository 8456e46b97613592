// Named threads, to be joined by who started them.
#pragma once

#include <string>
#include <thread>

#include "core/base/unique_function.h"

namespace dartfs::core {

// Sets the calling thread's name (cut to the kernel's 15 bytes).
void SetThreadName(const std::string& name);

// The calling thread runs when others do not want to: for work that nobody waits for.
void LowerThreadPriority();

// Starts a thread named `name` with all signals blocked but those that report a fault of the
// thread itself, so that signals reach only the thread that waits for them. Ends the process when
// the system has no thread left: threads are started only at start and for a mount.
std::thread StartThread(const std::string& name, UniqueFunction<void()> body);

}  // namespace dartfs::core
