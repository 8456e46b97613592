// PoolDiskIo: DiskIo over a pool of threads with pread, pwrite and fdatasync. The first-class way
// where a container's seccomp profile refuses io_uring, and under the thread sanitizer.
//
// Life cycle: threads run from Create until Stop, which joins them. Thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/io/disk_io.h"
#include "core/io/disk_op.h"

namespace dartfs::core {

class PoolDiskIo final : public DiskIo {
 public:
  static Result<std::unique_ptr<DiskIo>> Create(const DiskIoOptions& options);
  ~PoolDiskIo() override { Stop(); }

  void Read(int fd, std::span<std::byte> into, uint64_t offset, IoDone done) override;
  void Write(int fd, std::span<const std::byte> from, uint64_t offset, IoDone done) override;
  void Sync(int fd, IoDone done) override;
  std::string Describe() const override;
  void Stop() override EXCLUDES(mu_, stop_mu_);

 private:
  explicit PoolDiskIo(size_t queue_limit) : queue_limit_(queue_limit) {}

  void Enqueue(DiskOp op) EXCLUDES(mu_);
  void Work() EXCLUDES(mu_);

  const size_t queue_limit_;
  size_t thread_count_ = 0;  // constant once Create returned

  // Held for the whole of Stop, so that a second caller waits for the first; taken before mu_.
  Mutex stop_mu_;
  std::vector<std::thread> threads_ GUARDED_BY(stop_mu_);

  Mutex mu_;  // a leaf
  CondVar wake_;
  std::deque<DiskOp> queue_ GUARDED_BY(mu_);
  std::deque<DiskOp> rejected_ GUARDED_BY(mu_);  // to be answered with kBusy, on a pool thread
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
