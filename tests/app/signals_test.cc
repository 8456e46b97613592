#include "app/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>

#include "core/base/mutex.h"

namespace dartfs::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What a guard's force was told.
class Forced {
 public:
  void Tell(const char* why) {
    core::MutexLock lock(mu_);
    why_ = why;
    told_.NotifyAll();
  }
  // Waits up to ten seconds.
  std::string Why() {
    core::MutexLock lock(mu_);
    while (why_.empty() && told_.WaitFor(mu_, seconds(10))) {
    }
    return why_;
  }

 private:
  core::Mutex mu_;
  core::CondVar told_;
  std::string why_ GUARDED_BY(mu_);
};

class SignalsTest : public testing::Test {
 protected:
  SignalsTest() {
    pthread_sigmask(SIG_SETMASK, nullptr, &before_);
    auto made = Signals::Create();
    signals_ = std::make_unique<Signals>(std::move(*made));
  }
  ~SignalsTest() override {
    while (signals_->Next()) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  sigset_t before_{};
  std::unique_ptr<Signals> signals_;
};

TEST_F(SignalsTest, ArriveAsEvents) {
  EXPECT_FALSE(signals_->Next());
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ASSERT_EQ(kill(getpid(), signal), 0);
    pollfd polled{signals_->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&polled, 1, 10'000), 1);
    EXPECT_EQ(signals_->Next(), signal);
  }
}

TEST_F(SignalsTest, GuardForcesOnTheGivenNumberOfSignals) {
  for (const int count : {1, 2}) {
    Forced forced;
    StopGuard::Options options;
    options.limit = seconds(60);
    options.signals = count;
    options.force = [&forced](const char* why) { forced.Tell(why); };
    const StopGuard guard(*signals_, options);
    kill(getpid(), SIGHUP);  // no reason to force
    if (count == 2) kill(getpid(), SIGINT);
    kill(getpid(), SIGTERM);
    EXPECT_EQ(forced.Why(), "a further signal came");
  }
}

TEST_F(SignalsTest, GuardForcesWhenTimeIsUp) {
  Forced forced;
  StopGuard::Options options;
  options.limit = milliseconds(1);
  options.force = [&forced](const char* why) { forced.Tell(why); };
  const StopGuard guard(*signals_, options);
  EXPECT_EQ(forced.Why(), "it took too long");
}

TEST_F(SignalsTest, GuardEndsQuietly) {
  bool forced = false;
  {
    StopGuard::Options options;
    options.force = [&forced](const char*) { forced = true; };
    const StopGuard guard(*signals_, options);
  }
  EXPECT_FALSE(forced);
}

}  // namespace
}  // namespace dartfs::app
