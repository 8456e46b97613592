// Named threads, joined when dropped.
#pragma once

#include <string>
#include <thread>

#include "core/base/unique_function.h"

namespace dartfs::core {

// Sets the calling thread's name (cut to the kernel's 15 bytes).
void SetThreadName(const std::string& name);

// Starts a thread named `name` with all signals blocked, so that signals reach only the thread
// that waits for them.
std::thread StartThread(const std::string& name, UniqueFunction<void()> body);

}  // namespace dartfs::core
