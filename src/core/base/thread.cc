#include "core/base/thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <system_error>

#include "core/base/check.h"
#include "core/base/log.h"

namespace dartfs::core {
namespace {

// All but the signals by which the kernel reports a fault of the thread itself: a blocked one of
// those would end the process without a handler's report.
sigset_t AsynchronousSignals() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
    sigdelset(&set, fault);
  }
  return set;
}

}  // namespace

void SetThreadName(const std::string& name) {
  constexpr size_t kMaxNameBytes = 15;
  pthread_setname_np(pthread_self(), name.substr(0, kMaxNameBytes).c_str());
}

void LowerThreadPriority() {
  constexpr int kNicest = 19;
  // Of a thread, on Linux, when given its ID. Refused: it runs like the others.
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNicest));
}

std::thread StartThread(const std::string& name, UniqueFunction<void()> body) {
  // The logger comes to be before the thread that may use it: spdlog makes it at first use, in a
  // library whose synchronisation the thread sanitizer does not see.
  spdlog::default_logger_raw();
  // Blocked before the start, so that the new thread inherits the mask and has no moment without.
  const sigset_t blocked = AsynchronousSignals();
  sigset_t before;
  DARTFS_CHECK(pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0);
  std::thread thread;
  try {
    thread = std::thread([name, run = std::move(body)]() mutable {
      SetThreadName(name);
      run();
      // What the body owns goes on this thread, before a join returns.
      run = nullptr;
    });
  } catch (const std::system_error&) {
    // The limit of threads (ulimit -u, TasksMax) is reached; the check below says where.
  }
  DARTFS_CHECK(thread.joinable());
  DARTFS_CHECK(pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
  return thread;
}

}  // namespace dartfs::core
