#include "httpd/object_body.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/buffer.h"
#include "core/base/mutex.h"

namespace dartfs::httpd {
namespace {

using core::FileSlice;

// Up to this a copy costs less than a sendfile of its own.
constexpr uint64_t kCopyBytes = 2 * 1024;
// Of one read of the disk.
constexpr uint64_t kDiskBytes = 256 * 1024;

// Without a byte between: a token that had run out, and its renewal.
constexpr int kMostRefusals = 2;

// Uninitialised memory.
struct Bytes {
  explicit Bytes(uint64_t count)
      : keep(std::make_shared_for_overwrite<std::byte[]>(count)), span(keep.get(), count) {}
  std::shared_ptr<std::byte[]> keep;  // NOLINT(modernize-avoid-c-arrays)
  std::span<std::byte> span;
};

struct SentFile {
  core::BlockPin pin;
  std::shared_ptr<const void> file;
};

}  // namespace

struct ObjectBody::DiskRead {
  explicit DiskRead(Bytes into) : bytes(std::move(into)) {}

  uint64_t at = 0;  // in the object
  Bytes bytes;
  core::Mutex mu;  // leaf
  std::optional<core::Status> result GUARDED_BY(mu);
  BodyWaker wake GUARDED_BY(mu);

  void Done(core::Status status) {
    BodyWaker waiting;
    {
      core::MutexLock lock(mu);
      result = std::move(status);
      waiting = std::move(wake);
    }
    if (waiting) waiting();
  }
};

struct ObjectBody::Renewal {
  uint64_t at = 0;  // in the object
  core::Mutex mu;   // leaf
  std::optional<core::Result<std::string>> result GUARDED_BY(mu);
  BodyWaker wake GUARDED_BY(mu);

  void Done(core::Result<std::string> authorization) {
    BodyWaker waiting;
    {
      core::MutexLock lock(mu);
      result = std::move(authorization);
      waiting = std::move(wake);
    }
    if (waiting) waiting();
  }
};

ObjectBody::ObjectBody(core::Store& store, ObjectParts parts)
    : store_(store), what_(std::move(parts)), requester_(what_.requester) {}
ObjectBody::~ObjectBody() = default;

BodyStep ObjectBody::Next(uint64_t max, BodyWaker wake) {
  while (true) {
    // Its bytes are not shown any more, wherever they lie.
    if (what_.object->refused()) {
      return core::MakeError(core::Code::kCorrupt, what_.object->facts().identity.redacted_url +
                                                       ": the bytes are not those of the digest");
    }
    if (disk_ != nullptr) {
      if (auto step = TakeDiskRead(wake)) return std::move(*step);
      continue;
    }
    if (renewal_ != nullptr) {
      if (auto step = TakeRenewal(wake)) return std::move(*step);
      continue;
    }
    if (stream_ == nullptr) {
      if (auto step = NextPart()) return std::move(*step);
      continue;
    }
    text_was_last_ = false;
    core::RangeStep step = stream_->Next(max, std::move(wake));  // takes it only with NotYet
    if (auto* memory = std::get_if<core::MemorySlice>(&step)) {
      refusals_ = 0;
      return MemoryPiece{memory->bytes, std::move(memory->keep), BytesFrom::kMiss};
    }
    if (std::holds_alternative<core::NotYet>(step)) return NotYet{};
    if (auto* error = std::get_if<core::Error>(&step)) {
      if (AskAgain(*error, wake)) return NotYet{};
      return std::move(*error);
    }
    if (std::holds_alternative<core::EndOfRange>(step)) {
      stream_.reset();
      ++part_;
      framed_ = false;
      continue;
    }
    if (auto taken = TakeFile(std::move(std::get<FileSlice>(step)), wake)) return std::move(*taken);
  }
}

BodyStep ObjectBody::Text(size_t index) {
  framed_ = true;
  text_was_last_ = true;
  auto text = std::make_shared<const std::string>(what_.framing->Before(index));
  return MemoryPiece{std::as_bytes(std::span(*text)), text};
}

std::optional<BodyStep> ObjectBody::NextPart() {
  const bool over = part_ == what_.parts.size();
  if (what_.framing != nullptr && !framed_) return Text(part_);
  if (over) return BodyEnd{};
  OpenStream(what_.parts[part_].first);
  return std::nullopt;
}

// From `offset` to the part's end.
void ObjectBody::OpenStream(uint64_t offset) {
  core::StreamOptions options;
  options.offset = offset;
  options.length = what_.parts[part_].last + 1 - offset;
  options.requester = requester_;
  options.first_blocks = what_.first_blocks;
  stream_ = std::make_unique<core::ObjectStream>(what_.object, options);
}

// A token may have run out since the object was opened, or none been needed for that. True: another
// is on its way.
bool ObjectBody::AskAgain(const core::Error& refusal, BodyWaker& wake) {
  if (refusal.code != core::Code::kUnauthorized || !what_.reauthorize) return false;
  if (refusals_ == kMostRefusals) return false;
  ++refusals_;
  renewal_ = std::make_shared<Renewal>();
  renewal_->at = stream_->position();
  {
    core::MutexLock lock(renewal_->mu);
    renewal_->wake = std::move(wake);
  }
  stream_.reset();
  what_.reauthorize(
      refusal, requester_->authorization,
      [renewal = renewal_](core::Result<std::string> value) { renewal->Done(std::move(value)); });
  return true;
}

// nullopt: the stream goes on where it was.
std::optional<BodyStep> ObjectBody::TakeRenewal(BodyWaker& wake) {
  std::optional<core::Result<std::string>> result;
  {
    core::MutexLock lock(renewal_->mu);
    result = renewal_->result;
    if (!result) renewal_->wake = std::move(wake);
  }
  if (!result) return NotYet{};
  const uint64_t at = renewal_->at;
  renewal_.reset();
  if (!*result) return std::move(*result).error();
  core::Requester requester = *requester_;
  requester.authorization = std::move(*result).value();
  requester_ = std::make_shared<const core::Requester>(std::move(requester));
  OpenStream(at);
  return std::nullopt;
}

std::optional<BodyStep> ObjectBody::TakeFile(FileSlice slice, BodyWaker& wake) {
  const bool small = slice.length <= kCopyBytes;
  if (!small) {
    if (auto found = store_.FindCached(slice.pin, slice.offset, slice.length)) {
      auto keep =
          std::make_shared<SentFile>(SentFile{std::move(slice.pin), std::move(found->keep)});
      return FilePiece{found->fd, found->offset, slice.length, std::move(keep), BytesFrom::kHit};
    }
  }
  if (slice.length > kDiskBytes) {
    stream_->GiveBack(slice.length - kDiskBytes);
    slice.length = kDiskBytes;
  }
  Bytes bytes(slice.length);
  if (store_.TryRead(slice.pin, slice.offset, bytes.span)) {
    return MemoryPiece{bytes.span, std::move(bytes.keep), BytesFrom::kHit};
  }
  auto read = std::make_shared<DiskRead>(std::move(bytes));
  read->at = stream_->position() - slice.length;
  disk_ = read;
  {
    core::MutexLock lock(read->mu);
    read->wake = std::move(wake);
  }
  store_.Read(std::move(slice.pin), slice.offset, read->bytes.span,
              [read](core::Status status) { read->Done(std::move(status)); });
  return NotYet{};
}

// nullopt: the block could not be read and is fetched again.
std::optional<BodyStep> ObjectBody::TakeDiskRead(BodyWaker& wake) {
  std::optional<core::Status> result;
  {
    core::MutexLock lock(disk_->mu);
    result = disk_->result;
    if (!result) disk_->wake = std::move(wake);
  }
  if (!result) return NotYet{};
  const std::shared_ptr<DiskRead> read = std::move(disk_);
  disk_.reset();
  if (*result) return MemoryPiece{read->bytes.span, read->bytes.keep, BytesFrom::kHit};
  if (result->error().code == core::Code::kCancelled) return result->error();
  stream_->Rewind(read->at);
  return std::nullopt;
}

bool ObjectBody::Rest(uint64_t unsent) {
  if (stream_ == nullptr || disk_ != nullptr || (text_was_last_ && unsent > 0)) return false;
  stream_->Rest(stream_->position() - unsent);
  return true;
}

}  // namespace dartfs::httpd
