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
// A disk that hangs keeps so much of the flights' memory. Enough for it to be busy.
constexpr uint64_t kMaxBytesUnderWay = uint64_t{64} << 20;
constexpr auto kSlownessSlice = std::chrono::milliseconds(100);
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
  WriteOptions options;
  uint64_t bypass_number = 0;
};

// Whole pages go past the page cache, the rest of an object's last page through it. Completes on a
// DiskIo thread.
class BlockWriter::Op : public std::enable_shared_from_this<BlockWriter::Op> {
 public:
  Op(std::shared_ptr<StoreCore> core, std::shared_ptr<Committer> committer,
     std::shared_ptr<WriteWatch> under_way, std::unique_ptr<Job> job,
     std::shared_ptr<ObjectFile> file)
      : core_(std::move(core)),
        committer_(std::move(committer)),
        under_way_(std::move(under_way)),
        job_(std::move(job)),
        file_(std::move(file)),
        sums_(std::make_shared<const std::vector<uint64_t>>(
            SumGranules(core_->geometry.grid(), job_->bytes->span()))) {
    number_ = under_way_->Begin(job_->bytes->size(), core_->clock.Now());
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
    under_way_->End(number_);
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
  const std::shared_ptr<WriteWatch> under_way_;
  uint64_t number_ = 0;  // in it
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
                        std::shared_ptr<const AlignedBuffer> bytes, IoDone done,
                        WriteOptions options) {
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
  job->options = options;
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
  for (;;) {
    CheckSlowness();
    const bool any_under_way = under_way_->count() > 0;
    // In bypass nothing is written, so that nothing need wait.
    const bool may_take = !IsFull() || core_->bypass.active();
    MutexLock lock(mu_);
    if (!queue_.empty() && (may_take || stopping_)) {
      auto job = std::move(queue_.front());
      queue_.pop_front();
      return job;
    }
    if (stopping_) return nullptr;
    if (any_under_way) {
      wake_.WaitFor(mu_, queue_.empty() ? kSlownessSlice : kBusySlice);
    } else if (queue_.empty()) {
      wake_.Wait(mu_);
    }
  }
}

void BlockWriter::Admit(std::unique_ptr<Job> job) {
  auto& object = *job->object;
  if (auto outcome = Claim(*job)) {
    return core_->Answer(std::move(job->done), *std::move(outcome));
  }
  job->bypass_number = core_->bypass.number();
  const uint64_t bytes = object.StoredBytes(job->block);
  if (job->options.relayed && !IsWorthKeeping(*job)) {
    object.Unclaim(job->block);
    core_->counters.not_admitted_blocks.fetch_add(1, std::memory_order_relaxed);
    return core_->Answer(std::move(job->done), NotKept("asked for too rarely"));
  }
  if (!MakeRoom(bytes, object.PlacementOf(job->block))) {
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

bool BlockWriter::IsWorthKeeping(const Job& job) {
  const uint64_t hash = FrequencyHash(job.object->key(), core_->geometry.ChunkOf(job.block));
  if (job.object->CountUse(job.block, core_->use_clock.NowMs())) core_->frequencies.Add(hash);
  if (!core_->space.IsShort(job.object->StoredBytes(job.block))) return true;
  const uint64_t victim = core_->next_victim.load(std::memory_order_relaxed);
  if (victim == 0 || victim == hash) return true;
  return core_->frequencies.Estimate(hash) > core_->frequencies.Estimate(victim);
}

bool BlockWriter::IsFull() {
  return under_way_->count() >= kMaxUnderWay || under_way_->bytes() >= kMaxBytesUnderWay;
}

void BlockWriter::CheckSlowness() {
  const TimePoint now = core_->clock.Now();
  if (under_way_->OldestAge(now) < core_->options.slow_write) return;
  // Again and again, so that nothing is tried before all of those have ended.
  core_->bypass.Enter("the cache disk does not answer a write", now);
}

bool BlockWriter::MakeRoom(uint64_t bytes, Placement placement) {
  core_->MeasureDisk();
  if (core_->space.Reserve(bytes)) return true;
  if (bytes > core_->space.limit()) return false;
  const auto end = std::chrono::steady_clock::now() + kRoomPatience;
  bool made = false;
  core_->space.Want(bytes, placement);
  bool in_time = true;
  while (!made && !stopping() && in_time) {
    committer_->WantRoom();
    made = core_->space.WaitForRoom(kRoomSlice);
    if (!made && core_->space.gave_up()) break;
    in_time = std::chrono::steady_clock::now() < end;
  }
  if (!made) core_->space.Want(0);
  if (!made && !in_time) {
    // Those behind it would wait as long, each.
    core_->bypass.Enter("no room could be made in time", core_->clock.Now());
  }
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
