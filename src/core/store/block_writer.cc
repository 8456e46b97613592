#include "core/store/block_writer.h"

#include <cerrno>
#include <utility>

#include "core/base/thread.h"
#include "core/store/granules.h"

namespace dartfs::core {
namespace {

constexpr size_t kMaxWaiting = 1024;
// Each has two descriptors. As many as an io_uring of the default size takes at once.
constexpr size_t kMaxUnderWay = 128;
// A slow disk must not keep flights' memory for ever: their blocks are not kept then.
constexpr auto kRoomPatience = std::chrono::seconds(5);
constexpr auto kRoomSlice = std::chrono::milliseconds(50);
constexpr auto kBusyPatience = std::chrono::milliseconds(500);
constexpr auto kBusySlice = std::chrono::milliseconds(1);

Error NotKept(const std::string& why) { return MakeError(Code::kNoSpace, "not kept: " + why); }

}  // namespace

struct BlockWriter::Job {
  Job(OpInside op_inside) : inside(std::move(op_inside)) {}  // NOLINT

  OpInside inside;
  std::shared_ptr<StoredObject> object;
  uint64_t block = 0;
  std::shared_ptr<const AlignedBuffer> bytes;
  IoDone done;
  uint64_t bypass_number = 0;
};

// Whole pages go past the page cache, the rest of an object's last page through it. Completes on a
// DiskIo thread.
class BlockWriter::Op : public std::enable_shared_from_this<BlockWriter::Op> {
 public:
  Op(std::shared_ptr<StoreCore> core, std::shared_ptr<Committer> committer,
     std::shared_ptr<std::atomic<size_t>> under_way, std::unique_ptr<Job> job,
     std::shared_ptr<ObjectFile> file)
      : core_(std::move(core)),
        committer_(std::move(committer)),
        under_way_(std::move(under_way)),
        job_(std::move(job)),
        file_(std::move(file)),
        sums_(std::make_shared<const std::vector<uint64_t>>(
            SumGranules(core_->geometry.grid(), job_->bytes->span()))) {
    under_way_->fetch_add(1, std::memory_order_relaxed);
  }

  void Start() {
    const size_t whole_pages = job_->bytes->size() / kPageSize * kPageSize;
    if (whole_pages > 0) direct_ = file_->ForDirectWrites();
    direct_bytes_ = direct_ != nullptr ? whole_pages : 0;
    if (direct_bytes_ == 0) return WriteRest();
    core_->io.Write(
        direct_->get(), job_->bytes->span().first(direct_bytes_), Offset(),
        [self = shared_from_this()](Status status) { self->OnDirect(std::move(status)); });
  }

 private:
  uint64_t Offset() const { return core_->geometry.grid().BlockOffset(job_->block); }
  uint64_t StoredBytes() const { return job_->object->StoredBytes(job_->block); }

  void OnDirect(Status status) {
    // The file system takes the flag but not our alignment.
    if (!status && status.error().sys_errno == EINVAL) {
      direct_bytes_ = 0;
    } else if (!status || direct_bytes_ == job_->bytes->size()) {
      return Finish(std::move(status));
    }
    WriteRest();
  }

  void WriteRest() {
    core_->io.Write(
        file_->fd(), job_->bytes->span().subspan(direct_bytes_), Offset() + direct_bytes_,
        [self = shared_from_this()](Status status) { self->Finish(std::move(status)); });
  }

  void Finish(Status status) {
    status = status ? Announce() : GiveUp(status.error());
    core_->space.Settle(StoredBytes());
    job_->bytes.reset();
    direct_.reset();
    file_.reset();
    under_way_->fetch_sub(1, std::memory_order_relaxed);
    IoDone done = std::move(job_->done);
    done(std::move(status));
    job_.reset();  // only now may a stop go on
  }

  Status Announce() {
    const auto generation = job_->object->FinishWrite(job_->block, sums_, core_->use_clock.NowMs());
    if (!generation) {
      core_->space.Release(StoredBytes());
      return NotKept("the object has been dropped");
    }
    core_->counters.blocks.fetch_add(1, std::memory_order_relaxed);
    if (job_->object->is_volatile()) {
      core_->bypass.NoteSuccess(job_->bypass_number);
    } else {
      committer_->NotePresent({job_->object, job_->block, *generation, job_->bypass_number});
    }
    return {};
  }

  Status GiveUp(const Error& error) {
    if (error.code == Code::kIo || error.code == Code::kNoSpace) {
      core_->counters.write_errors.fetch_add(1, std::memory_order_relaxed);
      core_->bypass.Enter(error.ToString(), core_->clock.Now());
    }
    job_->object->Unclaim(job_->block);
    committer_->NoteDeparture({job_->object, {job_->block}, false, false});
    return NotKept(error.ToString());
  }

  const std::shared_ptr<StoreCore> core_;
  const std::shared_ptr<Committer> committer_;
  const std::shared_ptr<std::atomic<size_t>> under_way_;
  std::unique_ptr<Job> job_;
  std::shared_ptr<ObjectFile> file_;
  std::shared_ptr<const UniqueFd> direct_;
  const GranuleSums sums_;
  size_t direct_bytes_ = 0;
};

BlockWriter::BlockWriter(std::shared_ptr<StoreCore> core, std::shared_ptr<Committer> committer)
    : core_(std::move(core)), committer_(std::move(committer)) {
  MutexLock lock(stop_mu_);
  thread_ = StartThread("store-write", [this] { Run(); });
}

BlockWriter::~BlockWriter() { Stop(); }

void BlockWriter::Write(std::shared_ptr<StoredObject> object, uint64_t block,
                        std::shared_ptr<const AlignedBuffer> bytes, IoDone done) {
  OpInside inside(core_->gate);
  if (!inside) return core_->Answer(std::move(done), NotKept("the store has stopped"));
  const uint64_t length = core_->geometry.grid().BlockLength(object->size(), block);
  if (length == 0 || bytes == nullptr || bytes->size() != length) {
    return core_->Answer(std::move(done),
                         MakeError(Code::kInvalidArgument, "a block of the wrong length"));
  }
  auto job = std::make_unique<Job>(std::move(inside));
  job->object = std::move(object);
  job->block = block;
  job->bytes = std::move(bytes);
  job->done = std::move(done);
  {
    MutexLock lock(mu_);
    if (!stopping_ && queue_.size() < kMaxWaiting) {
      queue_.push_back(std::move(job));
      wake_.NotifyOne();
      return;
    }
  }
  core_->Answer(std::move(job->done), NotKept("too many writes are waiting"));
}

void BlockWriter::Run() {
  while (auto job = NextJob()) Admit(std::move(job));
}

std::unique_ptr<BlockWriter::Job> BlockWriter::NextJob() {
  MutexLock lock(mu_);
  while (queue_.empty() && !stopping_) wake_.Wait(mu_);
  while (under_way_->load(std::memory_order_relaxed) >= kMaxUnderWay && !stopping_) {
    wake_.WaitFor(mu_, kBusySlice);
  }
  if (queue_.empty()) return nullptr;
  auto job = std::move(queue_.front());
  queue_.pop_front();
  return job;
}

void BlockWriter::Admit(std::unique_ptr<Job> job) {
  auto& object = *job->object;
  if (auto outcome = Claim(*job)) {
    return core_->Answer(std::move(job->done), *std::move(outcome));
  }
  job->bypass_number = core_->bypass.number();
  const uint64_t bytes = object.StoredBytes(job->block);
  if (!MakeRoom(bytes)) {
    object.Unclaim(job->block);
    return core_->Answer(std::move(job->done), NotKept("no room can be made"));
  }
  auto file = core_->files.ForWrite(job->object);
  if (file) {
    std::make_shared<Op>(core_, committer_, under_way_, std::move(job), *std::move(file))->Start();
    return;
  }
  object.Unclaim(job->block);
  core_->space.Settle(bytes);
  core_->space.Release(bytes);
  const Error& error = file.error();
  if (error.code == Code::kIo || error.code == Code::kNoSpace) {
    core_->counters.write_errors.fetch_add(1, std::memory_order_relaxed);
    core_->bypass.Enter(error.ToString(), core_->clock.Now());
  }
  core_->Answer(std::move(job->done), NotKept(error.ToString()));
}

std::optional<Status> BlockWriter::Claim(const Job& job) {
  using Claim = StoredObject::Claim;
  if (stopping()) return MakeError(Code::kCancelled, "the store is stopping");
  const auto end = std::chrono::steady_clock::now() + kBusyPatience;
  for (;;) {
    switch (job.object->ClaimForWrite(job.block, core_->use_clock.NowMs())) {
      case Claim::kPresent:
        return Status();
      case Claim::kDropped:
        return NotKept("the object has been dropped");
      case Claim::kWithheld:
        return NotKept("the object's file can't be used at present");
      case Claim::kClaimed:
        if (core_->bypass.MayWrite(core_->clock.Now())) return std::nullopt;
        job.object->Unclaim(job.block);
        return NotKept("bypass: " + core_->bypass.reason());
      case Claim::kBusy:
        break;  // about to be present, or about to be gone
    }
    if (std::chrono::steady_clock::now() >= end) return NotKept("the block is busy");
    MutexLock lock(mu_);
    if (!stopping_) wake_.WaitFor(mu_, kBusySlice);
  }
}

bool BlockWriter::MakeRoom(uint64_t bytes) {
  core_->MeasureDisk();
  if (core_->space.Reserve(bytes)) return true;
  if (bytes > core_->space.limit()) return false;
  const auto end = std::chrono::steady_clock::now() + kRoomPatience;
  bool made = false;
  core_->space.Want(bytes);
  while (!made && !stopping() && std::chrono::steady_clock::now() < end) {
    committer_->WantRoom();
    made = core_->space.WaitForRoom(kRoomSlice);
    if (!made && core_->space.gave_up()) break;
  }
  if (!made) core_->space.Want(0);
  if (!made && core_->space.DiskIsFull()) {
    core_->bypass.Enter("the disk has less free than the reserve", core_->clock.Now());
  }
  return made;
}

bool BlockWriter::stopping() {
  MutexLock lock(mu_);
  return stopping_;
}

void BlockWriter::Stop() {
  MutexLock stop_lock(stop_mu_);
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace dartfs::core
