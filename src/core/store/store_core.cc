#include "core/store/store_core.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dartfs::core {

void StoreCore::Answer(IoDone done, Status status) {
  // A read of nothing: the way onto a DiskIo thread.
  io.Read(layout->lock_fd(), {}, 0,
          [done = std::move(done), status = std::move(status)](Status) mutable {
            done(std::move(status));
          });
}

void StoreCore::MeasureDisk() {
  if (options.reserve_fraction <= 0) return;
  const auto free = layout->Free();
  if (!free || free->total_bytes == 0) return;
  const auto reserve =
      static_cast<uint64_t>(static_cast<double>(free->total_bytes) * options.reserve_fraction);
  const uint64_t spare = free->free_bytes > reserve ? free->free_bytes - reserve : 0;
  const uint64_t missing = free->free_bytes < reserve ? reserve - free->free_bytes : 0;
  const auto inode_reserve =
      static_cast<uint64_t>(static_cast<double>(free->total_inodes) * options.reserve_fraction);
  // Where the file system does not say how many there are, there is nothing to be kept.
  const bool few_inodes = free->total_inodes != 0 && free->free_inodes < inode_reserve;
  if (!few_inodes) return space.SetSpare(spare, missing);
  // An inode comes free with a file: so many bytes of average files have to go.
  const uint64_t inodes = inode_reserve - free->free_inodes;
  const uint64_t used = space.used();
  const uint64_t objects = std::max<uint64_t>(table.size(), 1);
  space.SetSpare(0, std::max(missing, inodes < objects ? used / objects * inodes : used));
}

uint64_t FrequencyHash(const StoreKey& key, uint64_t chunk) {
  uint64_t hash = 0;
  std::memcpy(&hash, key.bytes().data(), sizeof hash);  // a key is a hash already
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15U;
  hash ^= (chunk + 1) * kOdd;
  return hash != 0 ? hash : 1;
}

std::shared_ptr<LentFile> StoreCore::MakeLentFile(const StoredObject& object) {
  return std::make_shared<LentFile>(geometry.StoredBytesOfAll(object.size()), lent, space);
}

Departure StoreCore::MakeDeparture(const std::shared_ptr<StoredObject>& object,
                                   std::vector<uint64_t> blocks) {
  counters.evicted_blocks += blocks.size();
  counters.blocks -= blocks.size();
  Departure departure;
  departure.object = object;
  departure.blocks = std::move(blocks);
  departure.claimed = true;
  departure.recorded = !object->is_volatile();
  return departure;
}

void StoreCore::ReleaseUnlinked(const std::shared_ptr<LentFile>& lent_file, uint64_t bytes) {
  if (lent_file != nullptr) return lent_file->NoteUnlinked(bytes);
  space.Release(bytes);
}

}  // namespace dartfs::core
