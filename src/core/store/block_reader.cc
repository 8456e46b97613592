#include "core/store/block_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/log.h"
#include "core/store/bad_block.h"
#include "core/store/granules.h"

namespace dartfs::core {
namespace {

// One read: what is asked for, and the whole granules that must be read to check it.
class ReadPlan {
 public:
  ReadPlan(const std::shared_ptr<StoredObject>& object, uint64_t block, uint64_t offset,
           std::span<std::byte> into)
      : object_(object), block_(block), offset_(offset), into_(into) {
    const Grid& grid = object->geometry().grid();
    const uint64_t length = grid.BlockLength(object->size(), block);
    DARTFS_CHECK(offset <= length && into.size() <= length - offset);
    const uint64_t end = offset + into.size();
    granules_.first = grid.GranuleOfOffset(offset);
    granules_.count = into.empty() ? 0 : grid.GranuleOfOffset(end - 1) - granules_.first + 1;
    start_ = grid.GranuleOffset(granules_.first);
    end_ = std::min(length, grid.GranuleOffset(granules_.first + granules_.count));
    view_ = object->View(block, granules_);
  }

  const std::shared_ptr<StoredObject>& object() const { return object_; }
  uint64_t block() const { return block_; }
  ReadView& view() { return view_; }
  const GranuleRange& granules() const { return granules_; }

  // Where the file's bytes go: straight to the reader, or aside first.
  std::span<std::byte> Target() {
    if (view_.verified || (start_ == offset_ && end_ - start_ == into_.size())) return into_;
    if (aside_.empty()) aside_ = AlignedBuffer::Allocate(end_ - start_);
    return aside_.span();
  }
  uint64_t FileOffset() const {
    return object_->geometry().grid().BlockOffset(block_) + (aside_.empty() ? offset_ : start_);
  }
  // How many granules of what was read into Target do not match; afterwards it is what was asked.
  uint64_t CountBad() {
    const std::span<const std::byte> read = aside_.empty() ? into_ : aside_.span();
    return CountBadGranules(object_->geometry().grid(), read, granules_.first, *view_.sums);
  }
  void Deliver() {
    if (!view_.verified) object_->MarkVerified(block_, view_.generation, granules_);
    if (aside_.empty()) return;
    std::memcpy(into_.data(), aside_.data() + (offset_ - start_), into_.size());
  }

 private:
  const std::shared_ptr<StoredObject> object_;
  const uint64_t block_;
  const uint64_t offset_;  // in the block
  const std::span<std::byte> into_;
  GranuleRange granules_;
  uint64_t start_ = 0;  // of the first granule, in the block
  uint64_t end_ = 0;    // of the last
  ReadView view_;
  AlignedBuffer aside_;
};

// False where there are none.
bool FindSums(StoreCore& core, ReadPlan& plan) {
  ReadView& view = plan.view();
  if (!view.verified) view.sums = FindBlockSums(core, plan.object(), plan.block(), view);
  return view.verified || view.sums != nullptr;
}

Error DropBlock(StoreCore& core, Committer& committer, ReadPlan& plan, Error error,
                uint64_t bad_granules = 0) {
  return DropBadBlock(core, committer,
                      {plan.object(), plan.block(), plan.view().generation, bad_granules},
                      std::move(error));
}

Error DropCorrupt(StoreCore& core, Committer& committer, ReadPlan& plan, uint64_t bad_granules,
                  const std::string& why) {
  return DropBlock(core, committer, plan, MakeError(Code::kCorrupt, why), bad_granules);
}

Error DropUnrecorded(StoreCore& core, Committer& committer, ReadPlan& plan) {
  core.counters.corrupt_records.fetch_add(1, std::memory_order_relaxed);
  return DropBlock(core, committer, plan, MakeError(Code::kCorrupt, "its checksums are lost"));
}

// All blocks of an object whose file is gone.
Error DropFile(StoreCore& core, Committer& committer, ReadPlan& plan) {
  const auto& object = plan.object();
  Departure departure;
  departure.object = object;
  for (const auto& dropped : object->DropAll()) {
    core.counters.blocks.fetch_sub(1, std::memory_order_relaxed);
    core.counters.corrupt_granules.fetch_add(1, std::memory_order_relaxed);
    departure.blocks.push_back(dropped.block);
    departure.recorded |= dropped.recorded;
  }
  committer.NoteDeparture(std::move(departure));
  LOG_WARN("cache file of {} is gone: its blocks are fetched again", object->key().ToHex());
  return MakeError(Code::kCorrupt, "the object's file is gone");
}

// Nothing is known against the block, but it can't be read at present.
Error Withhold(StoreCore& core, const ReadPlan& plan, Error error) {
  const auto withheld_ms = static_cast<uint64_t>(ToMillis(Store::kWithheld));
  plan.object()->WithholdUntil(core.use_clock.NowMs() + withheld_ms);
  return error;
}

// A read with DiskIo under way.
struct ReadOp {
  ReadOp(std::shared_ptr<StoreCore> op_core, std::shared_ptr<Committer> op_committer,
         OpInside op_inside, BlockPin op_pin, uint64_t offset, std::span<std::byte> into)
      : core(std::move(op_core)),
        committer(std::move(op_committer)),
        inside(std::move(op_inside)),
        pin(std::move(op_pin)),
        plan(pin.object(), pin.block(), offset, into) {}

  const std::shared_ptr<StoreCore> core;
  const std::shared_ptr<Committer> committer;
  OpInside inside;  // a stop waits for all that is declared below
  std::shared_ptr<ObjectFile> file;
  BlockPin pin;
  ReadPlan plan;
  IoDone done;

  uint64_t CountBad() { return plan.view().verified ? 0 : plan.CountBad(); }

  Error Failed(const Error& error) {
    if (error.sys_errno != 0) return DropBlock(*core, *committer, plan, error);
    if (error.code == Code::kCancelled) return error;
    if (error.code != Code::kIo) return Withhold(*core, plan, error);  // a full queue
    // The file is shorter than it was.
    return DropCorrupt(*core, *committer, plan, plan.granules().count, error.context);
  }
};

// What can be found out without the file's bytes.
Status Prepare(ReadOp& op) {
  if (!op.plan.view().present) return MakeError(Code::kCorrupt, "the block has been dropped");
  auto file = op.core->files.ForRead(op.pin.object());
  if (!file) {
    if (file.error().code == Code::kNotFound) return DropFile(*op.core, *op.committer, op.plan);
    if (file.error().code == Code::kStale) return MakeError(Code::kCorrupt, "the object is gone");
    return Withhold(*op.core, op.plan, std::move(file).error());
  }
  op.file = *std::move(file);
  if (!FindSums(*op.core, op.plan)) return DropUnrecorded(*op.core, *op.committer, op.plan);
  return {};
}

void Answer(std::unique_ptr<ReadOp> op, Status outcome) {
  IoDone done = std::move(op->done);
  op->pin = BlockPin();
  done(std::move(outcome));
}

// The read asked for a part of the block; what else of it is damaged is counted before it goes.
void CountAndDrop(std::unique_ptr<ReadOp> op, uint64_t bad_granules) {
  const Grid& grid = op->plan.object()->geometry().grid();
  const uint64_t block = op->plan.block();
  auto whole = AlignedBuffer::Allocate(grid.BlockLength(op->plan.object()->size(), block));
  const std::span<std::byte> target = whole.span();
  const int fd = op->file->fd();
  DiskIo& io = op->core->io;
  io.Read(fd, target, grid.BlockOffset(block),
          [op = std::move(op), whole = std::move(whole), bad_granules](Status read) mutable {
            ReadPlan& plan = op->plan;
            const Grid& op_grid = plan.object()->geometry().grid();
            const uint64_t all =
                read ? CountBadGranules(op_grid, whole.span(), 0, *plan.view().sums) : 0;
            Error error = DropCorrupt(*op->core, *op->committer, plan, std::max(all, bad_granules),
                                      "checksum mismatch");
            Answer(std::move(op), std::move(error));
          });
}

void OnRead(std::unique_ptr<ReadOp> op, const Status& status) {
  if (!status) {
    Error error = op->Failed(status.error());
    return Answer(std::move(op), std::move(error));
  }
  if (const uint64_t bad = op->CountBad(); bad > 0) return CountAndDrop(std::move(op), bad);
  op->plan.Deliver();
  Answer(std::move(op), {});
}

}  // namespace

bool BlockReader::TryRead(const BlockPin& pin, uint64_t offset, std::span<std::byte> into) {
  const OpInside inside(core_->gate);
  if (!inside) return false;
  ReadPlan plan(pin.object(), pin.block(), offset, into);
  const ReadView& view = plan.view();
  if (!view.present || view.file == nullptr || !FindSums(*core_, plan)) return false;
  const auto target = plan.Target();
  if (!ReadIfCached(view.file->fd(), target, plan.FileOffset())) return false;
  // Read will find the same, and drop the block.
  if (!view.verified && plan.CountBad() > 0) return false;
  plan.Deliver();
  return true;
}

std::optional<FileBytes> BlockReader::FindCached(const BlockPin& pin, uint64_t offset,
                                                 uint64_t length) {
  const OpInside inside(core_->gate);
  if (!inside || length == 0) return std::nullopt;
  const Grid& grid = pin.object()->geometry().grid();
  DARTFS_CHECK(offset + length <= grid.BlockLength(pin.object()->size(), pin.block()));
  const uint64_t first = grid.GranuleOfOffset(offset);
  const GranuleRange granules{first, grid.GranuleOfOffset(offset + length - 1) - first + 1};
  ReadView view = pin.object()->View(pin.block(), granules);
  if (!view.present || !view.verified || view.file == nullptr) return std::nullopt;
  const uint64_t in_file = grid.BlockOffset(pin.block()) + offset;
  const int fd = view.file->fd();
  if (!IsCached(fd, in_file, length)) return std::nullopt;
  return FileBytes{fd, in_file, std::move(view.file)};
}

void BlockReader::Read(BlockPin pin, uint64_t offset, std::span<std::byte> into, IoDone done) {
  OpInside inside(core_->gate);
  if (!inside) {
    return core_->Answer(std::move(done), MakeError(Code::kCancelled, "the store has stopped"));
  }
  if (!pin) {
    return core_->Answer(std::move(done), MakeError(Code::kCorrupt, "the block has been dropped"));
  }
  auto op =
      std::make_unique<ReadOp>(core_, committer_, std::move(inside), std::move(pin), offset, into);
  Status status = Prepare(*op);
  if (!status) return core_->Answer(std::move(done), std::move(status));
  op->done = std::move(done);
  const int fd = op->file->fd();
  const auto target = op->plan.Target();
  const uint64_t file_offset = op->plan.FileOffset();
  core_->io.Read(fd, target, file_offset,
                 [op = std::move(op)](const Status& read) mutable { OnRead(std::move(op), read); });
}

}  // namespace dartfs::core
