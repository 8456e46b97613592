#include "core/base/unique_function.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
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

// Within and on the heap alike.
template <size_t kWords>
void ExpectOneTarget() {
  const auto shared = std::make_shared<int>(4);
  const std::array<uint64_t, kWords> more = {1, 2};
  UniqueFunction<uint64_t()> first = [shared, more] {
    return static_cast<uint64_t>(*shared) + more[0] + more[1];
  };
  EXPECT_EQ(shared.use_count(), 2) << kWords;
  UniqueFunction<uint64_t()> second = std::move(first);
  EXPECT_EQ(shared.use_count(), 2) << kWords;
  EXPECT_EQ(second(), 7U);
  first = std::move(second);
  EXPECT_EQ(first(), 7U);
  auto& self = first;
  first = std::move(self);
  EXPECT_EQ(first(), 7U) << "moved onto itself";
  first = [] { return uint64_t{1}; };
  EXPECT_EQ(shared.use_count(), 1) << kWords;
}

TEST(UniqueFunction, TargetsOfAnySizeMoveAndGoOnce) {
  ExpectOneTarget<2>();
  ExpectOneTarget<4>();
  ExpectOneTarget<5>();
  ExpectOneTarget<40>();
}

TEST(UniqueFunction, ATargetThatResetsItsOwnHolderGoesOnce) {
  UniqueFunction<void()> holds;
  struct Resets {
    UniqueFunction<void()>* holder;
    int* gone;
    ~Resets() {
      ++*gone;
      *holder = nullptr;
    }
  };
  int gone = 0;
  holds = [resets = std::unique_ptr<Resets>(new Resets{&holds, &gone})] {};
  EXPECT_EQ(gone, 0);
  holds = [] {};
  EXPECT_EQ(gone, 1);
}

TEST(UniqueFunctionDeathTest, CallingAnEmptyOneEndsTheProcess) {
  UniqueFunction<void()> empty;
  EXPECT_DEATH(empty(), "check failed");
}

}  // namespace
}  // namespace dartfs::core
