#include "core/store/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dartfs::core {
namespace {

// Rekey moves the file while it is being opened by its old name, or it is replaced: then again.
constexpr int kTries = 3;

// Whether what was opened under `key` is the object's file for certain. A change of the key and
// the retirement come before the name is unlinked, and no write between that and another number.
enum class Standing { kSame, kMoved, kRetired };
Standing StandingOf(StoredObject& object, const StoreKey& key, uint64_t file_number) {
  if (object.retired()) return Standing::kRetired;
  const bool same = object.key() == key && object.file_number() == file_number;
  return same ? Standing::kSame : Standing::kMoved;
}

size_t ShareOfDescriptors() {
  constexpr rlim_t kShare = 3;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return static_cast<size_t>(limit.rlim_cur / kShare);
}

Error Dropped(const StoreKey& key) {
  return MakeError(Code::kStale, "object " + key.ToHex() + " has been dropped");
}

}  // namespace

OpenFiles::OpenFiles(const Layout& layout, size_t limit)
    : layout_(layout), limit_(std::min(limit, ShareOfDescriptors())) {}

Result<std::shared_ptr<ObjectFile>> OpenFiles::ForRead(
    const std::shared_ptr<StoredObject>& object) {
  return Current(object, /*for_write=*/false);
}

Result<std::shared_ptr<ObjectFile>> OpenFiles::ForWrite(
    const std::shared_ptr<StoredObject>& object) {
  return Current(object, /*for_write=*/true);
}

Result<std::shared_ptr<ObjectFile>> OpenFiles::Current(const std::shared_ptr<StoredObject>& object,
                                                       bool for_write) {
  for (int i = 0; i < kTries; ++i) {
    auto held = object->file();
    if (held != nullptr && (held->for_write() || !for_write)) return held;
    const StoreKey key = object->key();
    const uint64_t number = object->file_number();
    const auto path = layout_.ObjectPath(key);
    if (for_write && !object->owns_file()) TRY(RemoveFile(path));
    auto file = for_write ? ObjectFile::Create(path, object->size()) : ObjectFile::Open(path);
    switch (StandingOf(*object, key, number)) {
      case Standing::kRetired:
        return Dropped(key);
      case Standing::kMoved:
        continue;
      case Standing::kSame:
        break;
    }
    if (!file) return file;
    if (for_write) object->set_owns_file();
    if (Keep(object, *file, number)) return file;
  }
  return MakeError(Code::kBusy, "object " + object->key().ToHex() + " keeps moving");
}

bool OpenFiles::Keep(const std::shared_ptr<StoredObject>& object, std::shared_ptr<ObjectFile> file,
                     uint64_t number) {
  if (!object->SetFile(std::move(file), number)) return false;
  std::vector<std::shared_ptr<StoredObject>> to_close;
  std::vector<std::shared_ptr<StoredObject>> looked_at;  // released after the lock
  {
    MutexLock lock(mu_);
    clock_.push_back(object);
    // A file in use since it was last looked at is spared in the first round only.
    const size_t once = clock_.size();
    for (size_t seen = 0; seen < 2 * once && clock_.size() > limit_; ++seen) {
      auto oldest = clock_.front().lock();
      clock_.pop_front();
      if (oldest == nullptr) continue;
      if (oldest != object && (!oldest->TestAndClearFileUsed() || seen >= once)) {
        to_close.push_back(std::move(oldest));
        continue;
      }
      clock_.push_back(oldest);
      looked_at.push_back(std::move(oldest));
    }
  }
  for (const auto& each : to_close) each->CloseFile();
  return true;
}

}  // namespace dartfs::core
