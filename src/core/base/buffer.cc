#include "core/base/buffer.h"

#include <cstdlib>
#include <cstring>

#include "core/base/check.h"

namespace dartfs::core {

AlignedBuffer AlignedBuffer::Allocate(size_t size) {
  DARTFS_CHECK(size <= SIZE_MAX - kPageSize);
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  buffer.capacity_ = (size + kPageSize - 1) / kPageSize * kPageSize;
  buffer.size_ = size;
  buffer.data_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageSize, buffer.capacity_)));
  DARTFS_CHECK(buffer.data_ != nullptr);
  std::memset(buffer.data_.get() + size, 0, buffer.capacity_ - size);
  return buffer;
}

void AlignedBuffer::Free::operator()(std::byte* p) const { std::free(p); }

}  // namespace dartfs::core
