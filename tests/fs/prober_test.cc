#include "fs/prober.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "fake/fake_engine.h"
#include "fake/fake_http_client.h"
#include "fake/manual_scheduler.h"

namespace dartfs::fs {
namespace {

class ProberTest : public ::testing::Test {
 protected:
  core::ManualScheduler scheduler_;
  core::FakeHttpClient http_{&scheduler_};
  core::FakeEngine engine_{http_, scheduler_};
  Prober prober_{engine_, core::OpenOptions()};
};

TEST_F(ProberTest, ManyEntriesThatNeedNoProbeAreNotForTheCaller) {
  constexpr size_t kCount = 10 * Prober::kLooksAtOnce + 1;
  size_t looks = 0;
  prober_.Start(kCount, [&](size_t i) -> std::optional<ProbeTarget> {
    ++looks;
    if (i + 1 < kCount) return std::nullopt;
    return ProbeTarget{core::ParseUrl("http://h/last").value(), ""};
  });
  EXPECT_EQ(looks, Prober::kLooksAtOnce);
  scheduler_.RunReady();
  EXPECT_EQ(looks, kCount);
  EXPECT_EQ(engine_.Opens("http://h/last"), 1U);
}

TEST_F(ProberTest, NothingIsLookedAtAfterItsEnd) {
  size_t looks = 0;
  prober_.Start(10 * Prober::kLooksAtOnce, [&](size_t) -> std::optional<ProbeTarget> {
    ++looks;
    return std::nullopt;
  });
  prober_.Stop();
  scheduler_.RunReady();
  EXPECT_EQ(looks, Prober::kLooksAtOnce);
}

}  // namespace
}  // namespace dartfs::fs
