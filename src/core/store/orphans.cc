#include "core/store/orphans.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <vector>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/thread.h"
#include "core/base/unique_fd.h"

namespace dartfs::core {
namespace {

std::vector<std::string> ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return names;
  DIR* const dir = ::fdopendir(fd.get());
  if (dir == nullptr) return names;
  (void)fd.Release();  // `dir` has it
  while (const dirent* const entry = ::readdir(dir)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(dir);
  return names;
}

}  // namespace

Orphans::Orphans(std::shared_ptr<StoreCore> core, bool check_places)
    : core_(std::move(core)), check_places_(check_places) {
  MutexLock lock(stop_mu_);
  thread_ = StartThread("store-orphans", [this] { Run(); });
}

void Orphans::Stop() {
  stopping_ = true;
  MutexLock lock(stop_mu_);
  if (thread_.joinable()) thread_.join();
}

void Orphans::Run() {
  for (const auto& name : ListDirectory(core_->layout->objects_dir())) {
    if (stopping_) return;
    if (name.size() == 2 && IsHex(name)) VisitDirectory(name);
  }
}

void Orphans::VisitDirectory(const std::string& name) {
  const std::string dir = core_->layout->objects_dir() + "/" + name;
  for (const auto& file : ListDirectory(dir)) {
    if (stopping_) return;
    VisitFile(dir + "/" + file, name + file);
  }
}

void Orphans::VisitFile(const std::string& path, const std::string& hex) {
  const auto key = StoreKey::Parse(hex);
  if (!key) return;  // not ours
  if (core_->table.ClaimName(*key)) {
    const Status removed = RemoveFile(path);
    if (!removed) LOG_WARN("{}", removed.error().ToString());
    core_->table.EndLeaving(*key);
    return;
  }
  if (!check_places_) return;
  if (const auto object = core_->table.Find(*key)) FreePlaces(path, *key, object);
}

void Orphans::FreePlaces(const std::string& path, const StoreKey& key,
                         const std::shared_ptr<StoredObject>& object) {
  constexpr uint64_t kSectorBytes = 512;
  // Another file of that name: it goes as a whole, with the object's first write or with the
  // object.
  if (!object->owns_file()) return;
  struct stat st = {};
  if (::stat(path.c_str(), &st) != 0) return;
  const auto on_disk = static_cast<uint64_t>(st.st_blocks) * kSectorBytes;
  // A file that may be larger is looked at; one block more is found, less is not worth it.
  if (on_disk < object->PresentBytes() + core_->geometry.grid().block_size) return;
  const uint64_t number = object->file_number();
  const auto file = ObjectFile::Open(path);
  // Neither retired nor moved by now: so it is this object's file that was opened, and as long as
  // its number stands, that is the one.
  if (!file || object->retired() || object->key() != key) return;
  const Geometry& geometry = core_->geometry;
  const uint64_t chunks = geometry.ChunkCount(object->size());
  for (uint64_t chunk = 0; chunk < chunks && !stopping_; ++chunk) {
    const uint64_t absent = object->ClaimAbsent(chunk, number);
    for (unsigned bit = 0; bit < geometry.blocks_per_chunk(); ++bit) {
      if ((absent >> bit & 1) == 0) continue;
      const uint64_t block = geometry.BlockOf(chunk, bit);
      const Status punched =
          PunchHole((*file)->fd(), geometry.grid().BlockOffset(block), object->StoredBytes(block));
      if (!punched) LOG_DEBUG("{}", punched.error().ToString());
      object->Unclaim(block);
    }
  }
}

}  // namespace dartfs::core
