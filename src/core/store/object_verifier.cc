#include "core/store/object_verifier.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "core/base/mutex.h"
#include "core/store/bad_block.h"
#include "core/store/granules.h"

namespace dartfs::core {
namespace {

constexpr uint64_t kStepBytes = uint64_t{1} << 20;
constexpr auto kReadPatience = std::chrono::seconds(30);
constexpr auto kTurnSlice = std::chrono::milliseconds(100);

// Where reads go that are waited for; shared with them, as one may end after the wait.
struct Landing {
  explicit Landing(size_t bytes) : buffer(AlignedBuffer::Allocate(bytes)) {}
  AlignedBuffer buffer;
  Mutex mu;
  CondVar ended;
  bool done GUARDED_BY(mu) = false;
  Status status GUARDED_BY(mu);
};

// A part of the file, to be read to `at` in the buffer.
struct Piece {
  uint64_t offset = 0;
  uint64_t at = 0;
  uint64_t bytes = 0;
};

Status ReadAndWait(DiskIo& io, const std::shared_ptr<Landing>& landing,
                   const std::shared_ptr<const void>& file_owner, int fd, const Piece& piece) {
  {
    MutexLock lock(landing->mu);
    landing->done = false;
  }
  io.Read(fd, landing->buffer.span().subspan(piece.at, piece.bytes), piece.offset,
          [landing, file_owner](Status status) {
            MutexLock lock(landing->mu);
            landing->status = std::move(status);
            landing->done = true;
            landing->ended.NotifyAll();
          });
  const auto end = std::chrono::steady_clock::now() + kReadPatience;
  MutexLock lock(landing->mu);
  while (!landing->done) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) {
      return MakeError(Code::kDeadlineExceeded, "the cache disk does not answer");
    }
    landing->ended.WaitFor(landing->mu, left);
  }
  return landing->status;
}

struct QuietPin {
  QuietPin(StoredObject& pinned, uint64_t block_index, uint64_t now_ms)
      : object(pinned), block(block_index), held(pinned.PinUnused(block_index, now_ms)) {}
  ~QuietPin() {
    if (held) object.Unpin(block);
  }
  QuietPin(const QuietPin&) = delete;
  QuietPin& operator=(const QuietPin&) = delete;
  StoredObject& object;
  const uint64_t block;
  const bool held;
};

// One object's check.
class Check {
 public:
  Check(StoreCore& core, Committer& committer, std::shared_ptr<StoredObject> object,
        const std::function<bool()>& go_on)
      : core_(core),
        committer_(committer),
        object_(std::move(object)),
        go_on_(go_on),
        granules_per_step_(std::max<uint64_t>(1, kStepBytes / grid().granule_size)) {}

  Result<VerifyReport> Run() {
    const uint64_t blocks = grid().BlockCount(object_->size());
    for (uint64_t block = 0; block < blocks && going_; ++block) TRY(CheckBlock(block));
    report_.verified = object_->IsVerified();
    return report_;
  }

 private:
  const Grid& grid() const { return core_.geometry.grid(); }

  Status CheckBlock(uint64_t block) {
    const QuietPin pin(*object_, block, core_.use_clock.NowMs());
    if (!pin.held) return {};  // absent
    const uint64_t granules = grid().GranuleCount(grid().BlockLength(object_->size(), block));
    for (uint64_t first = 0; first < granules; first += granules_per_step_) {
      const GranuleRange range = {first, std::min(granules_per_step_, granules - first)};
      TRY_ASSIGN(const bool good, CheckRange(block, range));
      if (!good) return {};
    }
    return {};
  }

  // False: the block has gone, or it is enough.
  Result<bool> CheckRange(uint64_t block, const GranuleRange& range) {
    const ReadView view = object_->View(block, range);
    if (!view.present || view.verified) return view.present;
    going_ = go_on_ == nullptr || go_on_();
    if (!going_) return false;
    const auto sums = FindBlockSums(core_, object_, block, view);
    if (sums == nullptr) {
      core_.counters.corrupt_records.fetch_add(1, std::memory_order_relaxed);
      Drop({object_, block, view.generation, 0},
           MakeError(Code::kCorrupt, "its checksums are lost"));
      return false;
    }
    const uint64_t start = grid().GranuleOffset(range.first);
    const uint64_t end = std::min(grid().BlockLength(object_->size(), block),
                                  grid().GranuleOffset(range.first + range.count));
    const Status read = Read(grid().BlockOffset(block) + start, end - start);
    if (!read) {
      if (read.error().code == Code::kStale) return false;  // dropped
      if (!IsLost(read.error())) return read.error();  // it does not answer, or can't be opened
      Drop({object_, block, view.generation, range.count}, read.error());
      return false;
    }
    report_.checked_bytes += end - start;
    const auto bytes = landing_->buffer.span().first(end - start);
    const uint64_t bad = CountBadGranules(grid(), bytes, range.first, *sums);
    if (bad > 0) {
      Drop({object_, block, view.generation, bad}, MakeError(Code::kCorrupt, "checksum mismatch"));
      return false;
    }
    object_->MarkVerified(block, view.generation, range);
    return true;
  }

  void Drop(const BadBlock& bad, Error error) {
    report_.bad_granules += bad.bad_granules;
    (void)DropBadBlock(core_, committer_, bad, std::move(error));
  }

  // The file is gone or too short, or the disk can't read it.
  static bool IsLost(const Error& error) {
    return error.code == Code::kIo || error.code == Code::kNotFound || error.sys_errno != 0;
  }

  // Into the landing's buffer.
  Status Read(uint64_t offset, uint64_t bytes) {
    auto file = core_.files.ForRead(object_);
    if (!file) {
      const Code code = file.error().code;
      if (code == Code::kNotFound || code == Code::kStale) return std::move(file).error();
      // No descriptor, no permission: nothing is known against the block.
      return MakeError(Code::kUnavailable, std::move(file).error().ToString());
    }
    if (landing_ == nullptr) {
      landing_ = std::make_shared<Landing>(granules_per_step_ * grid().granule_size);
    }
    const uint64_t whole_pages = bytes / kPageSize * kPageSize;
    uint64_t done = 0;
    const auto direct = whole_pages > 0 ? DirectOf(*file) : nullptr;
    if (direct != nullptr) {
      const Status read = ReadAndWait(core_.io, landing_, direct, direct->get(),
                                      {.offset = offset, .at = 0, .bytes = whole_pages});
      if (!read && read.error().sys_errno != EINVAL) return read;
      done = read ? whole_pages : 0;  // or the file system does not take our alignment
    }
    if (done == bytes) return {};
    const Piece rest = {.offset = offset + done, .at = done, .bytes = bytes - done};
    TRY(ReadAndWait(core_.io, landing_, *file, (*file)->fd(), rest));
    (void)::posix_fadvise((*file)->fd(), static_cast<off_t>(rest.offset),
                          static_cast<off_t>(rest.bytes), POSIX_FADV_DONTNEED);
    return {};
  }

  // Null where there is none to be had.
  std::shared_ptr<const UniqueFd> DirectOf(const std::shared_ptr<ObjectFile>& file) {
    if (file == direct_of_) return direct_;
    direct_of_ = file;
    UniqueFd fd = file->Reopen(O_RDONLY | O_DIRECT);
    direct_ = fd.valid() ? std::make_shared<const UniqueFd>(std::move(fd)) : nullptr;
    return direct_;
  }

  StoreCore& core_;
  Committer& committer_;
  const std::shared_ptr<StoredObject> object_;
  const std::function<bool()>& go_on_;
  const uint64_t granules_per_step_;
  std::shared_ptr<Landing> landing_;
  std::shared_ptr<ObjectFile> direct_of_;
  std::shared_ptr<const UniqueFd> direct_;
  VerifyReport report_;
  bool going_ = true;
};

}  // namespace

// From the asking to the end of the check, or of the wait for it.
class ObjectVerifier::Turn {
 public:
  explicit Turn(ObjectVerifier& verifier) : verifier_(verifier) {
    MutexLock lock(verifier_.mu_);
    number_ = ++verifier_.last_number_;
    verifier_.turns_.push_back(number_);
  }
  ~Turn() { verifier_.Leave(number_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool Await(const std::function<bool()>& go_on) { return verifier_.AwaitTurn(number_, go_on); }

 private:
  ObjectVerifier& verifier_;
  uint64_t number_ = 0;
};

bool ObjectVerifier::AwaitTurn(uint64_t number, const std::function<bool()>& go_on) {
  for (;;) {
    {
      MutexLock lock(mu_);
      if (turns_.front() == number) return true;
    }
    if (go_on != nullptr && !go_on()) return false;
    MutexLock lock(mu_);
    if (turns_.front() != number) left_.WaitFor(mu_, kTurnSlice);
  }
}

void ObjectVerifier::Leave(uint64_t number) {
  MutexLock lock(mu_);
  std::erase(turns_, number);
  left_.NotifyAll();
}

Result<VerifyReport> ObjectVerifier::Verify(const std::shared_ptr<StoredObject>& object,
                                            const std::function<bool()>& go_on) {
  Turn turn(*this);
  if (!turn.Await(go_on)) return VerifyReport{.verified = object->IsVerified()};
  const OpInside inside(core_->gate);
  if (!inside) return MakeError(Code::kCancelled, "the store has stopped");
  return Check(*core_, *committer_, object, go_on).Run();
}

}  // namespace dartfs::core
