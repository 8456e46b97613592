#include "core/io/pool_disk_io.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/thread.h"

namespace dartfs::core {
namespace {

int64_t IssueOnce(const DiskOp& op) {
  ssize_t result = 0;
  switch (op.kind) {
    case DiskOp::Kind::kRead:
      result = ::pread(op.fd, op.data, op.NextBytes(), static_cast<off_t>(op.offset));
      break;
    case DiskOp::Kind::kWrite:
      result = ::pwrite(op.fd, op.data, op.NextBytes(), static_cast<off_t>(op.offset));
      break;
    case DiskOp::Kind::kSync:
      result = ::fdatasync(op.fd);
      break;
  }
  return result < 0 ? -int64_t{errno} : int64_t{result};
}

Status Run(DiskOp& op) {
  for (;;) {
    auto outcome = op.Take(IssueOnce(op));
    if (outcome) return *std::move(outcome);
  }
}

}  // namespace

Result<std::unique_ptr<DiskIo>> PoolDiskIo::Create(const DiskIoOptions& options) {
  if (options.pool_threads == 0) {
    return MakeError(Code::kInvalidArgument, "disk I/O needs at least one thread");
  }
  std::unique_ptr<PoolDiskIo> pool(new PoolDiskIo(options.queue_limit));
  PoolDiskIo* const self = pool.get();
  self->thread_count_ = options.pool_threads;
  MutexLock lock(self->stop_mu_);
  for (size_t i = 0; i < options.pool_threads; ++i) {
    self->threads_.push_back(StartThread("disk-" + std::to_string(i), [self] { self->Work(); }));
  }
  return std::unique_ptr<DiskIo>(std::move(pool));
}

void PoolDiskIo::Read(int fd, std::span<std::byte> into, uint64_t offset, IoDone done) {
  Enqueue(MakeReadOp(fd, into, offset, std::move(done)));
}

void PoolDiskIo::Write(int fd, std::span<const std::byte> from, uint64_t offset, IoDone done) {
  Enqueue(MakeWriteOp(fd, from, offset, std::move(done)));
}

void PoolDiskIo::Sync(int fd, IoDone done) { Enqueue(MakeSyncOp(fd, std::move(done))); }

std::string PoolDiskIo::Describe() const { return std::to_string(thread_count_) + " threads"; }

void PoolDiskIo::Enqueue(DiskOp op) {
  {
    MutexLock lock(mu_);
    if (!stopping_) {
      auto& queue = queue_.size() < queue_limit_ ? queue_ : rejected_;
      queue.push_back(std::move(op));
      wake_.NotifyOne();
      return;
    }
  }
  op.done(DiskStopped());
}

void PoolDiskIo::Work() {
  for (;;) {
    DiskOp op;
    bool reject = false;
    bool cancel = false;
    {
      MutexLock lock(mu_);
      while (queue_.empty() && rejected_.empty() && !stopping_) wake_.Wait(mu_);
      if (queue_.empty() && rejected_.empty()) return;
      reject = !rejected_.empty();
      cancel = stopping_;
      auto& queue = reject ? rejected_ : queue_;
      op = std::move(queue.front());
      queue.pop_front();
    }
    if (reject) {
      op.done(DiskQueueFull(queue_limit_));
    } else if (cancel) {
      op.done(DiskStopped());
    } else {
      op.done(Run(op));
    }
  }
}

void PoolDiskIo::Stop() {
  MutexLock stop_lock(stop_mu_);
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace dartfs::core
