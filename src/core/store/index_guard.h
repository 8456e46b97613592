// RunGuarded: LMDB calls that survive a page which the disk can't give. The index is memory-mapped,
// so that EIO below it, or a file cut short, is no error but SIGBUS; and what LMDB's assertions
// find ends in abort(). Both leave the guarded region by siglongjmp instead.
//
// No frame between RunGuarded and the fault is unwound: a region may hold nothing but LMDB's C
// calls and copies of mapped bytes into memory that was there before, and no object with a
// destructor. What LMDB held at the fault (its locks, its memory) stays held: the environment must
// never be called again, not even to close it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace dartfs::core {

// Addresses at which a fault is a guard's. Immutable; outlives the regions that name it.
class GuardedMaps {
 public:
  // Any address: until it is known where the files are mapped.
  GuardedMaps() = default;
  // Where this process has the files of the directory mapped; any address where that can't be told.
  static GuardedMaps OfFilesIn(const std::string& dir);

  bool Contains(const void* address) const;
  // False for bytes that begin in a map and end beyond it.
  bool EndsWhereItBegins(const void* begin, size_t bytes) const;

 private:
  struct Range {
    uintptr_t begin = 0;
    uintptr_t end = 0;
  };
  const Range* Find(const void* address) const;
  std::vector<Range> ranges_;
};

enum class GuardEnd {
  kDone,
  kFault,      // SIGBUS in the maps
  kAssertion,  // LeaveGuardByAssertion
};

// Runs `body(argument)` on this thread. Handles SIGBUS for the whole process from the first call
// on; what is no guard's goes to whoever handled it before. Regions do not nest.
GuardEnd RunGuarded(const GuardedMaps& maps, void (*body)(void*), void* argument);

template <typename Body>
GuardEnd RunGuarded(const GuardedMaps& maps, Body& body) {
  return RunGuarded(
      maps, [](void* argument) { (*static_cast<Body*>(argument))(); }, &body);
}

// From within a region it does not return; outside it does nothing.
void LeaveGuardByAssertion();

}  // namespace dartfs::core
