#include "core/store/evictor.h"

#include <utility>

namespace dartfs::core {

std::vector<Departure> Evictor::Take(uint64_t bytes) {
  std::vector<Departure> departures;
  uint64_t taken = 0;
  // A second look through all chunks, as what is queued may have been used meanwhile; not a third.
  for (int refills = 0; taken < bytes;) {
    const EvictionCandidate* const victim = policy_.Front();
    if (victim == nullptr) {
      if (refills++ == 2) break;
      Refill();
      if (policy_.Front() == nullptr) break;
      continue;
    }
    const uint64_t got = TakeFrom(*victim, bytes - taken, &departures);
    taken += got;
    // What is left of the chunk stays at the front for the next time.
    if (got == 0 || taken < bytes) policy_.Pop();
  }
  return departures;
}

uint64_t Evictor::TakeFrom(const EvictionCandidate& victim, uint64_t bytes,
                           std::vector<Departure>* departures) {
  const auto object = core_.table.Find(victim.chunk.object);
  if (object == nullptr) return 0;
  Departure departure;
  departure.blocks = object->TakeForEviction(
      {.chunk = victim.chunk.chunk, .whole = victim.whole, .used_ms = victim.used_ms}, bytes);
  if (departure.blocks.empty()) return 0;
  uint64_t taken = 0;
  for (const uint64_t block : departure.blocks) taken += object->StoredBytes(block);
  departure.object = object;
  departure.claimed = true;
  departure.recorded = !object->is_volatile();
  core_.counters.evicted_blocks += departure.blocks.size();
  core_.counters.blocks -= departure.blocks.size();
  departures->push_back(std::move(departure));
  return taken;
}

void Evictor::Refill() {
  std::vector<EvictionCandidate> all;
  core_.table.ForEach([&all](const std::shared_ptr<StoredObject>& object) {
    const StoreKey key = object->key();
    for (const auto& each : object->FindEvictable()) {
      all.push_back({{key, each.chunk}, each.used_ms, each.whole});
    }
  });
  policy_.Refill(std::move(all));
}

}  // namespace dartfs::core
