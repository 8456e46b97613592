#include "core/engine/read_buffers.h"

#include <gtest/gtest.h>

#include <vector>

#include "fake/manual_scheduler.h"

namespace dartfs::core {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class ReadBuffersTest : public ::testing::Test {
 protected:
  void Wait(int name) {
    buffers_.Wait(kMiB, [this, name](AlignedBuffer buffer) {
      EXPECT_GE(buffer.size(), kMiB);
      granted_.push_back(name);
      held_.push_back(std::move(buffer));
    });
  }
  ManualScheduler scheduler_;
  ReadBuffers buffers_{2 * kMiB, scheduler_};
  std::vector<int> granted_;
  std::vector<AlignedBuffer> held_;
};

TEST_F(ReadBuffersTest, NoneIsGrantedBeyondTheLimit) {
  auto a = buffers_.TryTake(kMiB);
  auto b = buffers_.TryTake(kMiB / 2);  // takes a whole one
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(buffers_.TryTake(4096));
  EXPECT_EQ(buffers_.used_bytes(), 2 * kMiB);
  buffers_.Give(std::move(*a));
  EXPECT_TRUE(buffers_.TryTake(4096));
}

TEST_F(ReadBuffersTest, OneIsAlwaysGrantedWhileNoneIsOut) {
  auto large = buffers_.TryTake(16 * kMiB);
  ASSERT_TRUE(large);
  EXPECT_EQ(large->size(), 16 * kMiB);
  buffers_.Give(std::move(*large));
  EXPECT_EQ(buffers_.used_bytes(), 0u);
}

TEST_F(ReadBuffersTest, WhoWaitsIsServedInOrderAndNobodyOvertakes) {
  auto a = buffers_.TryTake(kMiB);
  auto b = buffers_.TryTake(kMiB);
  Wait(1);
  Wait(2);
  scheduler_.RunReady();
  EXPECT_TRUE(granted_.empty());
  buffers_.Give(std::move(*a));
  EXPECT_FALSE(buffers_.TryTake(4096));
  scheduler_.RunReady();
  EXPECT_EQ(granted_, std::vector<int>{1});
  buffers_.Give(std::move(*b));
  scheduler_.RunReady();
  EXPECT_EQ(granted_, (std::vector<int>{1, 2}));
}

TEST_F(ReadBuffersTest, AWaitWithRoomIsGrantedSoon) {
  Wait(1);
  EXPECT_TRUE(granted_.empty());  // not on the caller's stack
  scheduler_.RunReady();
  EXPECT_EQ(granted_, std::vector<int>{1});
}

TEST_F(ReadBuffersTest, ABufferIsUsedAgain) {
  AlignedBuffer buffer = buffers_.Take(kMiB);
  const std::byte* const at = buffer.data();
  buffers_.Give(std::move(buffer));
  EXPECT_EQ(buffers_.Take(kMiB).data(), at);
}

}  // namespace
}  // namespace dartfs::core
