#include "core/store/place_freer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/log.h"

namespace dartfs::core {
namespace {

// An object with one reference, that of the one departure, can be removed whole.
std::vector<Departure> MergeByObject(std::vector<Departure> departures) {
  std::stable_sort(departures.begin(), departures.end(),
                   [](const Departure& a, const Departure& b) {
                     return a.object != b.object ? a.object < b.object : a.claimed < b.claimed;
                   });
  std::vector<Departure> merged;
  for (auto& each : departures) {
    if (!merged.empty() && merged.back().object == each.object &&
        merged.back().claimed == each.claimed) {
      auto& blocks = merged.back().blocks;
      blocks.insert(blocks.end(), each.blocks.begin(), each.blocks.end());
    } else {
      merged.push_back(std::move(each));
    }
  }
  return merged;
}

}  // namespace

void PlaceFreer::Free(std::vector<Departure> departures) {
  for (auto& each : MergeByObject(std::move(departures))) FreeOne(std::move(each));
}

void PlaceFreer::FreeWaiting() {
  starved_ = false;
  Free(std::exchange(waiting_, {}));
  RemoveEmpties();
}

void PlaceFreer::FreeOne(Departure departure) {
  if (departure.claimed && RemoveWhole(departure)) return;
  if (departure.object->lent_file() != nullptr && !departure.object->retired()) {
    return UnlinkLent(std::move(departure));
  }
  std::erase_if(departure.blocks, [&](uint64_t block) { return PunchBlock(departure, block); });
  if (!departure.blocks.empty()) {
    waiting_.push_back(std::move(departure));
  } else if (departure.object->HoldsOnly({})) {
    empties_.push_back(departure.object->key());
  }
}

bool PlaceFreer::RemoveWhole(const Departure& departure) {
  const auto& object = departure.object;
  if (object->object_recorded() || !core_.table.RemoveIfIdle(object, departure.blocks))
    return false;
  UnlinkAndLeave(object->key());
  uint64_t bytes = 0;
  for (const uint64_t block : departure.blocks) bytes += object->StoredBytes(block);
  core_.space.Release(bytes);
  return true;
}

void PlaceFreer::UnlinkLent(Departure departure) {
  const auto& object = departure.object;
  auto& blocks = departure.blocks;
  if (!departure.claimed && !blocks.empty()) {
    // Left before the file was lent, and came back.
    std::erase_if(blocks, [&](uint64_t block) {
      if (object->ClaimForPunch(block) != StoredObject::Claim::kPresent) return false;
      core_.space.Release(object->StoredBytes(block));
      return true;
    });
    if (blocks.empty()) return;
  }
  // Whoever still reads the old file must not find another in its place.
  if (!object->MayUnlinkLent(departure.claimed ? blocks.size() : 0)) {
    return waiting_.push_back(std::move(departure));
  }
  const Status removed = RemoveFile(core_.layout->ObjectPath(object->key()));
  if (!removed) {
    NoteRefusal(removed.error(), &departure);
    return waiting_.push_back(std::move(departure));
  }
  uint64_t bytes = 0;
  for (const uint64_t block : blocks) bytes += object->StoredBytes(block);
  core_.ReleaseUnlinked(object->ReplaceFile(), bytes);
  replaced_.push_back(object);
  empties_.push_back(object->key());
}

bool PlaceFreer::PunchBlock(Departure& departure, uint64_t block) {
  using Claim = StoredObject::Claim;
  const auto& object = departure.object;
  Claim claim = Claim::kClaimed;
  if (object->retired()) {
    claim = Claim::kDropped;  // by now the file of that name may be another object's
  } else if (!departure.claimed) {
    claim = object->ClaimForPunch(block);
  }
  if (claim == Claim::kBusy) return false;
  if (claim == Claim::kClaimed) {
    const Status punched = PunchFile(object, block);
    if (punched || !departure.claimed) object->Unclaim(block);
    if (!punched) {
      NoteRefusal(punched.error(), &departure);
      return false;
    }
  }
  core_.space.Release(object->StoredBytes(block));
  return true;
}

Status PlaceFreer::PunchFile(const std::shared_ptr<StoredObject>& object, uint64_t block) {
  const auto file = core_.files.ForRead(object);
  if (file) {
    return PunchHole((*file)->fd(), core_.geometry.grid().BlockOffset(block),
                     object->StoredBytes(block));
  }
  const Code code = file.error().code;
  if (code == Code::kNotFound || code == Code::kStale) return {};
  return file.error();
}

void PlaceFreer::NoteRefusal(const Error& error, Departure* departure) {
  const int sys_errno = error.sys_errno;
  starved_ |= sys_errno == EMFILE || sys_errno == ENFILE || sys_errno == ENOMEM;
  if (std::exchange(departure->refused, true)) return;
  core_.counters.write_errors.fetch_add(1, std::memory_order_relaxed);
  LOG_DEBUG("place in {}: {}", departure->object->key().ToHex(), error.ToString());
}

void PlaceFreer::RemoveEmpties() {
  constexpr size_t kAtOnce = 1024;
  std::vector<StoreKey> looked_at;
  while (!empties_.empty() && looked_at.size() < kAtOnce) {
    looked_at.push_back(empties_.back());
    empties_.pop_back();
  }
  std::sort(looked_at.begin(), looked_at.end());
  looked_at.erase(std::unique(looked_at.begin(), looked_at.end()), looked_at.end());
  std::vector<StoreKey> still;
  for (const StoreKey& key : looked_at) {
    const auto object = core_.table.Find(key);
    if (object == nullptr) continue;
    if (!object->object_recorded() && core_.table.RemoveIfIdle(object, {})) {
      UnlinkAndLeave(key);
    } else if (object->HoldsOnly({})) {
      still.push_back(key);
    }
  }
  empties_.insert(empties_.begin(), still.begin(), still.end());
}

void PlaceFreer::UnlinkAndLeave(const StoreKey& key) {
  const Status removed = RemoveFile(core_.layout->ObjectPath(key));
  if (!removed) LOG_WARN("{}", removed.error().ToString());
  core_.table.EndLeaving(key);
}

void PlaceFreer::Purge(const StoredObject* object) {
  std::erase_if(waiting_, [&](const Departure& departure) {
    if (departure.object.get() != object) return false;
    for (const uint64_t block : departure.blocks) {
      core_.space.Release(departure.object->StoredBytes(block));
    }
    return true;
  });
}

}  // namespace dartfs::core
