#include "fs/caller.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace dartfs::fs {
namespace {

std::string Status(const std::string& own, const std::string& shared) {
  return "Name:\tcat\nState:\tD (disk sleep)\nSigPnd:\t" + own + "\nShdPnd:\t" + shared +
         "\nSigBlk:\t0000000000000100\n";
}

TEST(Caller, FatalSignalsAmongThePendingOnes) {
  const std::string none = "0000000000000000";
  const std::string alive = "7 (a b) c) D 1 7 7 0 -1 4194304 100";
  const struct {
    const char* name;
    std::string status, stat;
    CallerState expected;
  } cases[] = {
      {"nothing", Status(none, none), alive, CallerState::kAlive},
      {"killed thread", Status("0000000000000100", none), alive, CallerState::kDying},
      {"killed process", Status(none, "0000000000000100"), alive, CallerState::kDying},
      {"fatal SIGINT", Status("0000000000000102", none), alive, CallerState::kDying},
      {"handled SIGINT", Status("0000000000000002", none), alive, CallerState::kAlive},
      {"handled SIGURG", Status("0000000000400000", none), alive, CallerState::kAlive},
      {"exiting", Status(none, none), "7 (a b) c) D 1 7 7 0 -1 4194308 100", CallerState::kDying},
      {"no stat", Status(none, none), "", CallerState::kAlive},
      {"unseen", "", "", CallerState::kUnseen},
      {"garbage", "SigPn\n\n::", ")))", CallerState::kUnseen},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(CallerStateOf(test.status, test.stat), test.expected) << test.name;
  }
}

TEST(Caller, LooksAtRealThreads) {
  EXPECT_EQ(LookAtCaller(gettid()), CallerState::kAlive);
  EXPECT_EQ(LookAtCaller(0), CallerState::kUnseen);
  EXPECT_EQ(LookAtCaller(0x7FFFFFF0), CallerState::kUnseen);
}

}  // namespace
}  // namespace dartfs::fs
