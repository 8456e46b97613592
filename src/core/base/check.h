// CHECK: an invariant of our own code; stays on in release builds and ends the process with the
// place and the expression. Never for input from outside.
#pragma once

namespace dartfs::core {

[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace dartfs::core

#define DARTFS_CHECK(expression)                        \
  (static_cast<bool>(expression) ? static_cast<void>(0) \
                                 : ::dartfs::core::CheckFailed(__FILE__, __LINE__, #expression))
