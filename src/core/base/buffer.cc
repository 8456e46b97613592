#include "core/base/buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/base/check.h"

namespace dartfs::core {
namespace {

// From here on memory is a mapping of its own: given back as a whole when it is freed, whatever was
// freed before it.
constexpr size_t kOwnMapping = size_t{128} << 10;
// Memory that is first touched page by page costs more than the transfer that fills it; with huge
// pages it is a few faults a block (transparent_hugepage: "madvise" or "always").
constexpr size_t kHugePage = size_t{2} << 20;

void Unmap(std::byte* from, size_t bytes) {
  if (bytes > 0) DARTFS_CHECK(munmap(from, bytes) == 0);
}

// Zeroed; whole huge pages where it is large enough.
std::byte* Map(size_t bytes) {
  const bool is_huge = bytes >= kHugePage;
  const size_t mapped = is_huge ? bytes + kHugePage : bytes;
  void* const memory =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  DARTFS_CHECK(memory != MAP_FAILED);
  auto* const start = static_cast<std::byte*>(memory);
  if (!is_huge) return start;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
  Unmap(start, before);
  Unmap(start + before + bytes, mapped - before - bytes);
  madvise(start + before, bytes, MADV_HUGEPAGE);  // advice: may be refused
  return start + before;
}

}  // namespace

AlignedBuffer AlignedBuffer::Allocate(size_t size) {
  DARTFS_CHECK(size <= SIZE_MAX - 2 * kHugePage);
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  const size_t capacity = (size + kPageSize - 1) / kPageSize * kPageSize;
  buffer.capacity_ = capacity;
  buffer.size_ = size;
  if (capacity >= kOwnMapping) {
    buffer.data_ = std::unique_ptr<std::byte, Free>(Map(capacity), Free(capacity));
    return buffer;
  }
  buffer.data_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageSize, capacity)));
  DARTFS_CHECK(buffer.data_ != nullptr);
  std::memset(buffer.data_.get() + size, 0, capacity - size);
  return buffer;
}

void AlignedBuffer::Free::operator()(std::byte* p) const {
  if (mapped_bytes > 0) {
    Unmap(p, mapped_bytes);
  } else {
    std::free(p);
  }
}

}  // namespace dartfs::core
