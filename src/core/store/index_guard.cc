#include "core/store/index_guard.h"

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "core/base/check.h"

namespace dartfs::core {
namespace {

struct Region {
  sigjmp_buf start;
  const GuardedMaps* maps = nullptr;
  GuardEnd end = GuardEnd::kDone;
};

// The signal is not blocked while its handler runs, so that there is no mask to restore, and a
// guard costs no call of the kernel. But the thread sanitizer's handler runs with all signals
// blocked.
#if defined(__SANITIZE_THREAD__)
constexpr int kRestoreMask = 1;
#else
constexpr int kRestoreMask = 0;
#endif

// The one this thread is in.
thread_local Region* current_region = nullptr;

struct sigaction previous_action;  // set before the handler can run

void Leave(Region* region, GuardEnd end) {
  current_region = nullptr;
  region->end = end;
  siglongjmp(region->start, 1);
}

// As if there had been no handler of ours.
void PassOn(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    return previous_action.sa_sigaction(signal, info, context);
  }
  const bool was_sent = info->si_code <= 0;
  if (previous_action.sa_handler == SIG_IGN && was_sent) return;
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    return previous_action.sa_handler(signal);
  }
  // The instruction faults again on return, and finds the default action.
  ::sigaction(signal, &previous_action, nullptr);
  if (was_sent) ::raise(signal);
}

void OnBus(int signal, siginfo_t* info, void* context) {
  Region* const region = current_region;
  const bool is_fault = info->si_code > 0;
  if (region != nullptr && is_fault && region->maps->Contains(info->si_addr)) {
    Leave(region, GuardEnd::kFault);
  }
  PassOn(signal, info, context);
}

bool Install() {
  // Before the handler, which may run at once on another thread.
  DARTFS_CHECK(::sigaction(SIGBUS, nullptr, &previous_action) == 0);
  struct sigaction action = {};
  action.sa_sigaction = OnBus;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  return ::sigaction(SIGBUS, &action, nullptr) == 0;
}

}  // namespace

GuardedMaps GuardedMaps::OfFilesIn(const std::string& dir) {
  GuardedMaps maps;
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(dir.c_str(), nullptr), std::free);
  if (real == nullptr) return maps;
  const std::string prefix = std::string(real.get()) + "/";
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    // begin-end permissions offset device inode path (proc(5))
    const size_t path = line.find('/');
    if (path == std::string::npos || line.compare(path, prefix.size(), prefix) != 0) continue;
    char* rest = nullptr;
    Range range;
    range.begin = std::strtoull(line.c_str(), &rest, 16);
    if (*rest != '-') continue;
    range.end = std::strtoull(rest + 1, nullptr, 16);
    maps.ranges_.push_back(range);
  }
  return maps;
}

const GuardedMaps::Range* GuardedMaps::Find(const void* address) const {
  const auto number = reinterpret_cast<uintptr_t>(address);
  for (const Range& range : ranges_) {
    if (number >= range.begin && number < range.end) return &range;
  }
  return nullptr;
}

bool GuardedMaps::Contains(const void* address) const {
  return ranges_.empty() || Find(address) != nullptr;
}

bool GuardedMaps::EndsWhereItBegins(const void* begin, size_t bytes) const {
  const Range* const range = Find(begin);
  return range == nullptr || bytes <= range->end - reinterpret_cast<uintptr_t>(begin);
}

[[gnu::noinline]] GuardEnd RunGuarded(const GuardedMaps& maps, void (*body)(void*),
                                      void* argument) {
  static const bool installed = Install();
  DARTFS_CHECK(installed && current_region == nullptr);
  Region region;
  region.maps = &maps;
  if (sigsetjmp(region.start, kRestoreMask) != 0) return region.end;
  current_region = &region;
  body(argument);
  current_region = nullptr;
  return GuardEnd::kDone;
}

void LeaveGuardByAssertion() {
  Region* const region = current_region;
  if (region != nullptr) Leave(region, GuardEnd::kAssertion);
}

}  // namespace dartfs::core
