// FileLoan: an object's complete, checked file, lent to somebody who reads it past the store: the
// kernel (FUSE passthrough). A file that was ever lent is only ever unlinked, never changed and
// never given back in part, so that its descriptors read right bytes whatever becomes of the
// object, or of this process (FORMAT.md, "Lent files").
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/unique_fd.h"
#include "core/base/unique_function.h"

namespace dartfs::core {

// Whether Store::Lend would succeed, as far as is known without I/O.
enum class LendState : uint8_t {
  kReady,
  kIncomplete,
  kUnverified,  // complete, but not all of it has been checked in this run: Store::Verify
  kTooMuchLent,
  kDiskRefuses,  // bypass, or a write that the disk has not answered; not of files lent before
  kNotPossible,  // volatile objects, and small ones
};

// What Store::Verify has found.
struct VerifyReport {
  uint64_t checked_bytes = 0;  // by this call
  uint64_t bad_granules = 0;   // their blocks have been dropped (a lent file: the whole object)
  bool verified = false;       // the object is complete and every granule has been checked
};

// Move-only; dropping it ends the loan. While it lasts nothing of the object is evicted.
class FileLoan {
 public:
  FileLoan() = default;
  // `end` runs once, when the loan ends, on whichever thread ends it. `broken`: set once the file
  // is; null where it never is.
  FileLoan(UniqueFd fd, UniqueFunction<void()> end,
           std::shared_ptr<const std::atomic<bool>> broken = nullptr)
      : fd_(std::move(fd)), end_(std::move(end)), broken_(std::move(broken)) {}
  FileLoan(FileLoan&& other) noexcept
      : fd_(std::move(other.fd_)),
        end_(std::exchange(other.end_, nullptr)),
        broken_(std::move(other.broken_)) {}
  FileLoan& operator=(FileLoan&& other) noexcept {
    if (this == &other) return *this;
    End();
    fd_ = std::move(other.fd_);
    end_ = std::exchange(other.end_, nullptr);
    broken_ = std::move(other.broken_);
    return *this;
  }
  ~FileLoan() { End(); }

  explicit operator bool() const { return static_cast<bool>(end_); }
  // For reading alone; -1 once closed.
  int fd() const { return fd_.get(); }
  // The store has dropped the object since: a block of it was found damaged, or its bytes are not
  // the object's. The descriptor stays as it is, but should be given to nobody else. Thread-safe,
  // cheap; once true it stays so.
  bool broken() const { return broken_ != nullptr && broken_->load(std::memory_order_acquire); }
  // The borrower has a reference of its own (the kernel's, to a backing file): the loan goes on
  // without a descriptor of this process.
  void CloseFd() { fd_.Reset(); }

 private:
  void End() {
    fd_.Reset();
    if (end_) std::exchange(end_, nullptr)();
  }

  UniqueFd fd_;
  UniqueFunction<void()> end_;
  std::shared_ptr<const std::atomic<bool>> broken_;
};

}  // namespace dartfs::core
