#include "core/base/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <memory>
#include <string>

#include "core/base/mutex.h"

namespace dartfs::core {
namespace {

std::string OwnName() {
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

sigset_t OwnMask() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return mask;
}

TEST(Thread, HasItsNameCutToWhatTheKernelTakes) {
  for (const std::string name : {"io-0", "fifteen-bytes-x", "more-than-fifteen-bytes"}) {
    std::string seen;
    StartThread(name, [&] { seen = OwnName(); }).join();
    EXPECT_EQ(seen, name.substr(0, 15));
  }
}

TEST(Thread, BlocksSignalsButThoseOfFaults) {
  sigset_t mask;
  StartThread("t", [&] { mask = OwnMask(); }).join();
  for (const int blocked : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD, SIGUSR1}) {
    EXPECT_EQ(sigismember(&mask, blocked), 1) << blocked;
  }
  for (const int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    EXPECT_EQ(sigismember(&mask, open), 0) << open;
  }
}

TEST(Thread, LeavesTheStartersSignalsAsTheyWere) {
  sigset_t before = OwnMask();
  StartThread("t", [] {}).join();
  sigset_t after = OwnMask();
  for (int signal = 1; signal < SIGRTMAX; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  }
}

TEST(Thread, DropsWhatTheBodyOwnsBeforeTheJoinReturns) {
  auto shared = std::make_shared<int>(1);
  StartThread("t", [copy = shared] {}).join();
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(Mutex, IsHeldByOneAtATime) {
  Mutex mu;
  bool taken = true;
  const auto try_elsewhere = [&] {
    StartThread("t", [&] {
      taken = false;
      if (mu.TryLock()) {
        taken = true;
        mu.Unlock();
      }
    }).join();
  };
  {
    MutexLock lock(mu);
    try_elsewhere();
    EXPECT_FALSE(taken);
  }
  try_elsewhere();
  EXPECT_TRUE(taken);
}

TEST(CondVar, TimedWaitEndsWithTheLockHeld) {
  Mutex mu;
  CondVar never;
  MutexLock lock(mu);
  // A loop, since a wait may also end for no reason.
  while (never.WaitFor(mu, std::chrono::milliseconds(1))) {
  }
  bool taken = true;
  StartThread("t", [&] {
    taken = false;
    if (mu.TryLock()) {
      taken = true;
      mu.Unlock();
    }
  }).join();
  EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace dartfs::core
