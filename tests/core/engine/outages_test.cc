#include "core/engine/outages.h"

#include <gtest/gtest.h>

namespace dartfs::core {
namespace {

using std::chrono::seconds;

TEST(Outages, AnOriginIsLeftAloneForAWhile) {
  Outages outages({seconds(5), seconds(1)});
  const TimePoint now{seconds(100)};
  EXPECT_FALSE(outages.ServedOn("http://h", now));
  outages.Note("http://h", true, now);
  EXPECT_TRUE(outages.ServedOn("http://h", now + seconds(4)));
  EXPECT_FALSE(outages.ServedOn("http://h", now + seconds(5)));
  EXPECT_TRUE(outages.Hopeless("http://h", now));
  EXPECT_FALSE(outages.Hopeless("http://h", now + seconds(1)));
  EXPECT_FALSE(outages.ServedOn("http://other", now));
  outages.Clear("http://h");
  EXPECT_FALSE(outages.ServedOn("http://h", now));
  EXPECT_FALSE(outages.Hopeless("http://h", now));
}

TEST(Outages, OneThatAnswersBadlyIsNotHopeless) {
  Outages outages({seconds(5), seconds(1)});
  const TimePoint now{seconds(100)};
  outages.Note("http://h", false, now);
  EXPECT_TRUE(outages.ServedOn("http://h", now));
  EXPECT_FALSE(outages.Hopeless("http://h", now));
}

TEST(Outages, TheTableIsBounded) {
  Outages outages({seconds(5), seconds(1)});
  const TimePoint now{seconds(100)};
  for (int i = 0; i < 10'000; ++i) outages.Note("http://h" + std::to_string(i), true, now);
  EXPECT_TRUE(outages.ServedOn("http://h9999", now));
  EXPECT_FALSE(outages.ServedOn("http://h0", now));
}

}  // namespace
}  // namespace dartfs::core
