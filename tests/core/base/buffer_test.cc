#include "core/base/buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace dartfs::core {
namespace {

TEST(AlignedBuffer, IsAlignedRoundedUpAndZeroBehindItsSize) {
  for (const size_t size : {size_t{1}, kPageSize - 1, kPageSize, kPageSize + 1, size_t{1} << 22}) {
    AlignedBuffer buffer = AlignedBuffer::Allocate(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kPageSize, 0U);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.span().size(), size);
    EXPECT_EQ(buffer.capacity() % kPageSize, 0U);
    EXPECT_GE(buffer.capacity(), size);
    EXPECT_LT(buffer.capacity(), size + kPageSize);
    for (size_t i = size; i < buffer.capacity(); ++i) EXPECT_EQ(buffer.data()[i], std::byte{0});
    std::memset(buffer.data(), 1, size);
  }
}

TEST(AlignedBuffer, OfNothing) {
  const AlignedBuffer buffer = AlignedBuffer::Allocate(0);
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.capacity(), 0U);
  EXPECT_TRUE(buffer.span().empty());
}

TEST(AlignedBuffer, IsEmptyAfterAMove) {
  AlignedBuffer from = AlignedBuffer::Allocate(10);
  const std::byte* const data = from.data();
  AlignedBuffer to = AlignedBuffer::Allocate(20);
  to = std::move(from);
  EXPECT_EQ(to.data(), data);
  EXPECT_EQ(to.size(), 10U);
  EXPECT_TRUE(from.empty());
  EXPECT_EQ(from.capacity(), 0U);
  EXPECT_EQ(from.data(), nullptr);
}

}  // namespace
}  // namespace dartfs::core
