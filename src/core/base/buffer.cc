#include "core/base/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "core/base/check.h"

namespace dartfs::core {
namespace {

// Memory that is first touched page by page costs more than the transfer that fills it; with huge
// pages it is a few faults a block (transparent_hugepage: "madvise" or "always").
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

AlignedBuffer AlignedBuffer::Allocate(size_t size) {
  DARTFS_CHECK(size <= SIZE_MAX - kPageSize);
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  buffer.capacity_ = (size + kPageSize - 1) / kPageSize * kPageSize;
  buffer.size_ = size;
  const bool is_huge = buffer.capacity_ >= kHugePage;
  const size_t alignment = is_huge ? kHugePage : kPageSize;
  void* memory = nullptr;
  DARTFS_CHECK(posix_memalign(&memory, alignment, buffer.capacity_) == 0);
  if (is_huge) madvise(memory, buffer.capacity_, MADV_HUGEPAGE);  // advice: may be refused
  buffer.data_.reset(static_cast<std::byte*>(memory));
  std::memset(buffer.data_.get() + size, 0, buffer.capacity_ - size);
  return buffer;
}

void AlignedBuffer::Free::operator()(std::byte* p) const { std::free(p); }

}  // namespace dartfs::core
