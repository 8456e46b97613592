#include "core/io/uring_disk_io.h"

#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/thread.h"

namespace dartfs::core {
namespace {

// From here on a copy or an allocation costs more than a hand-over to a kernel worker.
constexpr size_t kAsyncBytes = 128 << 10;

// The newest set of flags the kernel takes; both spare interrupts of the ring's thread.
int InitRing(unsigned entries, io_uring* ring) {
  int result = -EINVAL;
  for (const unsigned flags : {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0U}) {
    io_uring_params params = {};
    params.flags = flags;
    result = io_uring_queue_init_params(entries, ring, &params);
    if (result != -EINVAL) break;
  }
  return result;
}

}  // namespace

struct UringDiskIo::Ring {
  io_uring ring = {};
  ~Ring() { io_uring_queue_exit(&ring); }
};

Result<std::unique_ptr<DiskIo>> UringDiskIo::Create(const DiskIoOptions& options) {
  if (options.ring_entries == 0) {
    return MakeError(Code::kInvalidArgument, "an io_uring needs at least one entry");
  }
  UniqueFd wake_fd(::eventfd(0, EFD_CLOEXEC));
  if (!wake_fd.valid()) return ErrnoError(errno, "eventfd");
  std::unique_ptr<UringDiskIo> uring(new UringDiskIo(options, std::move(wake_fd)));
  UringDiskIo* const self = uring.get();
  {
    // With these flags a ring belongs to the thread that made it.
    MutexLock lock(self->stop_mu_);
    self->thread_ = StartThread("disk-ring", [self] { self->Loop(); });
  }
  {
    MutexLock lock(self->mu_);
    while (!self->is_set_up_) self->set_up_.Wait(self->mu_);
    TRY(self->set_up_status_);
  }
  return std::unique_ptr<DiskIo>(std::move(uring));
}

// One entry more than there are operations under way, for the wake-up.
UringDiskIo::UringDiskIo(const DiskIoOptions& options, UniqueFd wake_fd)
    : entries_(options.ring_entries),
      queue_limit_(options.queue_limit),
      wake_fd_(std::move(wake_fd)) {}

UringDiskIo::~UringDiskIo() { Stop(); }

void UringDiskIo::Read(int fd, std::span<std::byte> into, uint64_t offset, IoDone done) {
  Enqueue(MakeReadOp(fd, into, offset, std::move(done)));
}

void UringDiskIo::Write(int fd, std::span<const std::byte> from, uint64_t offset, IoDone done) {
  Enqueue(MakeWriteOp(fd, from, offset, std::move(done)));
}

void UringDiskIo::Sync(int fd, IoDone done) { Enqueue(MakeSyncOp(fd, std::move(done))); }

std::string UringDiskIo::Describe() const {
  return "io_uring, " + std::to_string(entries_) + " entries";
}

void UringDiskIo::Enqueue(DiskOp op) {
  bool wake = false;
  {
    MutexLock lock(mu_);
    if (!stopping_) {
      auto& queue = queue_.size() < queue_limit_ ? queue_ : rejected_;
      queue.push_back(std::move(op));
      wake = !std::exchange(woken_, true);
    }
  }
  if (wake) Wake();
  if (op.done) op.done(DiskStopped());
}

void UringDiskIo::Wake() {
  const uint64_t one = 1;
  while (::write(wake_fd_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

Status UringDiskIo::SetUp() {
  auto ring = std::make_unique<Ring>();
  const int result = InitRing(entries_ + 1, &ring->ring);
  if (result < 0) {
    ring.release();  // NOLINT: nothing was set up, so there is nothing to exit
    return MakeError(Code::kUnsupported, ErrnoError(-result, "io_uring").ToString());
  }
  ring_ = std::move(ring);
  return {};
}

void UringDiskIo::Loop() {
  const Status status = SetUp();
  {
    MutexLock lock(mu_);
    is_set_up_ = true;
    set_up_status_ = status;
    set_up_.NotifyAll();
  }
  if (!status) return;
  while (TakeQueued()) {
    ArmWake();
    SubmitReady();
    const int result = io_uring_submit_and_wait(&ring_->ring, finished_.empty() ? 1 : 0);
    DARTFS_CHECK(result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY);
    Reap();
    RunFinished();
  }
  ring_.reset();
}

bool UringDiskIo::TakeQueued() {
  MutexLock lock(mu_);
  woken_ = false;
  for (auto& op : rejected_) {
    finished_.push_back({std::make_unique<DiskOp>(std::move(op)), DiskQueueFull(queue_limit_)});
  }
  rejected_.clear();
  if (stopping_) {
    for (auto& op : queue_) {
      finished_.push_back({std::make_unique<DiskOp>(std::move(op)), DiskStopped()});
    }
    queue_.clear();
  }
  while (!queue_.empty() && under_way_ + ready_.size() < entries_) {
    ready_.push_back(std::make_unique<DiskOp>(std::move(queue_.front())));
    queue_.pop_front();
  }
  return !stopping_ || under_way_ + ready_.size() + finished_.size() > 0;
}

void UringDiskIo::ArmWake() {
  if (wake_armed_) return;
  io_uring_sqe* const sqe = io_uring_get_sqe(&ring_->ring);
  if (sqe == nullptr) return;  // full of others: those will wake us
  io_uring_prep_read(sqe, wake_fd_.get(), &wake_count_, sizeof wake_count_, 0);
  io_uring_sqe_set_data(sqe, nullptr);
  wake_armed_ = true;
}

void UringDiskIo::SubmitReady() {
  while (!ready_.empty()) {
    auto op = std::move(ready_.front());
    ready_.pop_front();
    Submit(std::move(op));
  }
}

void UringDiskIo::Submit(std::unique_ptr<DiskOp> op) {
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_->ring);
  if (sqe == nullptr) {
    io_uring_submit(&ring_->ring);
    sqe = io_uring_get_sqe(&ring_->ring);
  }
  DARTFS_CHECK(sqe != nullptr);
  const auto bytes = static_cast<unsigned>(op->NextBytes());
  switch (op->kind) {
    case DiskOp::Kind::kRead:
      io_uring_prep_read(sqe, op->fd, op->data, bytes, op->offset);
      break;
    case DiskOp::Kind::kWrite:
      io_uring_prep_write(sqe, op->fd, op->data, bytes, op->offset);
      break;
    case DiskOp::Kind::kSync:
      io_uring_prep_fsync(sqe, op->fd, IORING_FSYNC_DATASYNC);
      break;
  }
  const bool again = op->tries_left < DiskOp::kMaxTries;
  if (again || op->kind == DiskOp::Kind::kSync || bytes >= kAsyncBytes) {
    sqe->flags = static_cast<uint8_t>(sqe->flags | IOSQE_ASYNC);
  }
  io_uring_sqe_set_data(sqe, op.release());
  ++under_way_;
}

void UringDiskIo::Reap() {
  io_uring_cqe* cqe = nullptr;
  unsigned head = 0;
  unsigned seen = 0;
  io_uring_for_each_cqe(&ring_->ring, head, cqe) {
    ++seen;
    std::unique_ptr<DiskOp> op(static_cast<DiskOp*>(io_uring_cqe_get_data(cqe)));
    if (op == nullptr) {
      wake_armed_ = false;
      continue;
    }
    --under_way_;
    auto outcome = op->Take(cqe->res);
    if (outcome) {
      finished_.push_back({std::move(op), *std::move(outcome)});
    } else {
      ready_.push_front(std::move(op));
    }
  }
  io_uring_cq_advance(&ring_->ring, seen);
}

void UringDiskIo::RunFinished() {
  std::vector<Finished> finished;
  finished.swap(finished_);
  for (auto& each : finished) each.op->done(std::move(each.status));
}

void UringDiskIo::Stop() {
  MutexLock stop_lock(stop_mu_);
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  Wake();
  thread_.join();
}

}  // namespace dartfs::core
