#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <vector>

namespace dartfs::sim {
namespace {

using std::chrono::milliseconds;

TEST(EventQueue, GivesByTimeThenByOrder) {
  EventQueue queue;
  std::mt19937 random(1);
  for (uint32_t i = 0; i < 5000; ++i) {
    queue.Add(core::TimePoint(milliseconds(random() % 50)), 0, i);
  }
  core::TimePoint last{};
  uint32_t last_node = 0;
  while (!queue.empty()) {
    EXPECT_EQ(queue.next_at(), queue.next_at());
    const Event event = queue.Pop();
    EXPECT_EQ(queue.now(), event.at);
    ASSERT_GE(event.at, last);
    if (event.at == last) {
      ASSERT_GE(event.node, last_node);
    }
    last = event.at;
    last_node = event.node;
  }
  EXPECT_EQ(queue.popped(), 5000U);
}

TEST(EventQueue, NothingHappensBeforeNow) {
  EventQueue queue;
  queue.Add(core::TimePoint(milliseconds(5)), 1, 0);
  queue.Pop();
  queue.Add(core::TimePoint(milliseconds(1)), 2, 7, 8, 9);
  const Event event = queue.Pop();
  EXPECT_EQ(event.at, core::TimePoint(milliseconds(5)));
  EXPECT_EQ(event.kind, 2);
  EXPECT_EQ(event.node, 7U);
  EXPECT_EQ(event.a, 8U);
  EXPECT_EQ(event.b, 9U);
}

}  // namespace
}  // namespace dartfs::sim
