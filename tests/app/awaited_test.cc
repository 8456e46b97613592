#include "app/awaited.h"

#include <gtest/gtest.h>

namespace dartfs::app {
namespace {

using core::Code;
using core::Result;

constexpr std::chrono::milliseconds kNoPause{0};

TEST(RetryWhileBusy, EndsWithTheAnswerOrAfterItsTries) {
  struct Row {
    const char* name;
    int busy;   // so many times
    Code then;  // kBusy: success
    int cancelled_after;
    int calls;
    Code result;
  };
  const Row rows[] = {
      {"at once", 0, Code::kBusy, 100, 1, Code::kInternal},
      {"later", 3, Code::kBusy, 100, 4, Code::kInternal},
      {"another error", 2, Code::kIo, 100, 3, Code::kIo},
      {"always busy", 1000, Code::kBusy, 100, 5, Code::kBusy},
      {"cancelled", 1000, Code::kBusy, 2, 2, Code::kBusy},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    int calls = 0;
    const auto call = [&]() -> Result<int> {
      if (++calls <= row.busy) return core::MakeError(Code::kBusy, "busy");
      if (row.then != Code::kBusy) return core::MakeError(row.then, "other");
      return 7;
    };
    const auto result =
        RetryWhileBusy(call, 5, kNoPause, [&] { return calls >= row.cancelled_after; });
    EXPECT_EQ(calls, row.calls);
    EXPECT_EQ(result ? Code::kInternal : result.error().code, row.result);
  }
}

}  // namespace
}  // namespace dartfs::app
