#include "core/base/unique_function.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace dartfs::core {
namespace {

TEST(UniqueFunction, CallsWhatItOwns) {
  auto owned = std::make_unique<int>(5);
  UniqueFunction<int(int)> add = [owned = std::move(owned)](int x) { return *owned + x; };
  EXPECT_TRUE(static_cast<bool>(add));
  EXPECT_EQ(add(2), 7);
}

TEST(UniqueFunction, TakesMoveOnlyArguments) {
  UniqueFunction<int(std::unique_ptr<int>)> take = [](std::unique_ptr<int> p) { return *p; };
  EXPECT_EQ(take(std::make_unique<int>(3)), 3);
}

TEST(UniqueFunction, IsEmptyAfterAMove) {
  UniqueFunction<void()> from = [] {};
  const UniqueFunction<void()> to = std::move(from);
  EXPECT_TRUE(static_cast<bool>(to));
  EXPECT_FALSE(static_cast<bool>(from));
}

TEST(UniqueFunction, NullptrDropsTheTarget) {
  const auto shared = std::make_shared<int>(1);
  UniqueFunction<void()> holds = [shared] {};
  EXPECT_EQ(shared.use_count(), 2);
  holds = nullptr;
  EXPECT_EQ(shared.use_count(), 1);
}

TEST(UniqueFunctionDeathTest, CallingAnEmptyOneEndsTheProcess) {
  UniqueFunction<void()> empty;
  EXPECT_DEATH(empty(), "check failed");
}

}  // namespace
}  // namespace dartfs::core
