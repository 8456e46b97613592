// StoreLendFixture: the words of tests about lent files. A descriptor that outlives everything
// stands for what the kernel holds after a kill.
#pragma once

#include <sys/stat.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "core/base/unique_fd.h"
#include "core/store/store_fixture.h"

namespace dartfs::core {

inline constexpr uint64_t kBlock = kTinyGrid.block_size;
inline constexpr uint64_t kTail = 1000;

class StoreLendFixture : public StoreFixture {
 protected:
  Held Full(const std::string& name, uint64_t size) {
    const Held held = Object(name, size);
    PutAll(held);
    return held;
  }
  VerifyReport Verify(const Held& held) {
    auto report = store_->Verify(held.object, [] { return true; });
    EXPECT_TRUE(report) << report.error().ToString();
    return report ? *report : VerifyReport();
  }
  FileLoan Lend(const Held& held) {
    Verify(held);
    auto loan = store_->Lend(held.object);
    EXPECT_TRUE(loan) << loan.error().ToString();
    return loan ? *std::move(loan) : FileLoan();
  }
  Code LendError(const Held& held) {
    auto loan = store_->Lend(held.object);
    return loan ? Code::kInternal : loan.error().code;
  }
  // Whether the descriptor still has all of the object's bytes.
  bool HasAll(int fd, const Held& held) {
    for (uint64_t i = 0; i < options_.grid.BlockCount(held.size); ++i) {
      const auto expected = BytesOf(held.name, i, options_.grid.BlockLength(held.size, i));
      std::vector<std::byte> got(expected.size());
      const auto at = static_cast<off_t>(options_.grid.BlockOffset(i));
      if (::pread(fd, got.data(), got.size(), at) != static_cast<ssize_t>(got.size())) return false;
      if (got != expected) return false;
    }
    return true;
  }
  // What the kernel would hold.
  static UniqueFd KernelsOwn(const FileLoan& loan) { return UniqueFd(::dup(loan.fd())); }
  ino_t InodeOf(const std::string& name) const {
    struct stat st = {};
    return ::stat(PathOf(name).c_str(), &st) == 0 ? st.st_ino : 0;
  }
  // No page of the index can be written behind its first: commits fail meanwhile.
  class FullIndex {
   public:
    FullIndex() : before_(::signal(SIGXFSZ, SIG_IGN)), limit_(RLIMIT_FSIZE, 4096) {}
    ~FullIndex() { ::signal(SIGXFSZ, before_); }
    FullIndex(const FullIndex&) = delete;
    FullIndex& operator=(const FullIndex&) = delete;

   private:
    void (*const before_)(int);
    const ScopedLimit limit_;
  };
};

}  // namespace dartfs::core
