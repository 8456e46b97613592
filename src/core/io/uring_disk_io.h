// UringDiskIo: DiskIo over one io_uring. One thread owns the ring: it takes calls from a bounded
// queue (an eventfd wakes it), submits them, and runs their completions.
//
// Large transfers are handed to the kernel's own workers at once (IOSQE_ASYNC): a buffered read
// from the page cache, or the block allocation of a write, would otherwise run inside submit, one
// after another on the ring's thread.
//
// Life cycle: the thread runs from Create until Stop, which joins it. Thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
#include "core/io/disk_io.h"
#include "core/io/disk_op.h"

namespace dartfs::core {

class UringDiskIo final : public DiskIo {
 public:
  // kUnsupported where the kernel refuses a ring.
  static Result<std::unique_ptr<DiskIo>> Create(const DiskIoOptions& options);
  ~UringDiskIo() override;

  void Read(int fd, std::span<std::byte> into, uint64_t offset, IoDone done) override;
  void Write(int fd, std::span<const std::byte> from, uint64_t offset, IoDone done) override;
  void Sync(int fd, IoDone done) override;
  std::string Describe() const override;
  void Stop() override EXCLUDES(mu_, stop_mu_);

 private:
  struct Ring;  // liburing's type stays in the .cc
  struct Finished {
    std::unique_ptr<DiskOp> op;
    Status status;
  };

  UringDiskIo(const DiskIoOptions& options, UniqueFd wake_fd);

  void Enqueue(DiskOp op) EXCLUDES(mu_);
  void Wake();
  // The ring thread's functions.
  Status SetUp();
  void Loop();
  // False once there is nothing left to do and Stop has been called.
  bool TakeQueued() EXCLUDES(mu_);
  void ArmWake();
  void SubmitReady();
  void Submit(std::unique_ptr<DiskOp> op);
  void Reap();
  void RunFinished();

  const unsigned entries_;
  const size_t queue_limit_;
  const UniqueFd wake_fd_;

  // The ring thread's own.
  std::unique_ptr<Ring> ring_;
  std::deque<std::unique_ptr<DiskOp>> ready_;  // to be submitted: at most entries_
  std::vector<Finished> finished_;
  size_t under_way_ = 0;
  bool wake_armed_ = false;
  uint64_t wake_count_ = 0;  // what the kernel reads from wake_fd_

  // Held for the whole of Stop, so that a second caller waits for the first; taken before mu_.
  Mutex stop_mu_;
  std::thread thread_ GUARDED_BY(stop_mu_);

  Mutex mu_;  // a leaf
  CondVar set_up_;
  bool is_set_up_ GUARDED_BY(mu_) = false;
  Status set_up_status_ GUARDED_BY(mu_);
  std::deque<DiskOp> queue_ GUARDED_BY(mu_);
  std::deque<DiskOp> rejected_ GUARDED_BY(mu_);  // to be answered with kBusy, on the ring thread
  bool woken_ GUARDED_BY(mu_) = false;           // wake_fd_ was written and not yet seen
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
