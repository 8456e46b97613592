// AlignedBuffer: owned memory aligned to a page, so that it can go to O_DIRECT writes as it is.
// Empty after a move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/base/page_size.h"

namespace dartfs::core {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::move(other.data_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }
  // Capacity is `size` rounded up to a page; bytes past `size` are zero, those
  // before it are not initialised. size 0 is allowed. Memory that is not to be had ends the
  // process.
  static AlignedBuffer Allocate(size_t size);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  std::span<std::byte> span() { return {data_.get(), size_}; }
  std::span<const std::byte> span() const { return {data_.get(), size_}; }

 private:
  struct Free {
    Free() : mapped_bytes(0) {}
    explicit Free(size_t mapped) : mapped_bytes(mapped) {}
    size_t mapped_bytes;  // 0: the heap's
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace dartfs::core
