#include "core/store/evictor.h"

#include <utility>

namespace dartfs::core {

std::vector<Departure> Evictor::Take(uint64_t bytes, const Pressure& pressure) {
  using Turn = PlacementShares::Turn;
  std::vector<Departure> departures;
  uint64_t taken = 0;
  // A second look through all chunks, as what is queued may have been used meanwhile; not a third.
  int refills = 0;
  while (taken < bytes) {
    Pressure left = pressure;
    left.to_free = bytes - taken;
    EvictionPolicy* queue = NextQueue(left, Turn::kFirst);
    if (queue == nullptr && refills < 2 && core_.clock.Now() >= next_look_) {
      ++refills;
      Refill();
      continue;
    }
    if (queue == nullptr) queue = NextQueue(left, Turn::kAfter);
    if (queue == nullptr) break;
    const uint64_t got = TakeFrom(*queue->Front(), bytes - taken, &departures);
    taken += got;
    // What is left of the chunk stays at the front for the next time.
    if (got == 0 || taken < bytes) queue->Pop();
  }
  if (taken < bytes && refills > 0) next_look_ = core_.clock.Now() + kRest * look_took_;
  TellNextVictim();
  return departures;
}

EvictionPolicy* Evictor::NextQueue(const Pressure& pressure, PlacementShares::Turn turn) {
  const PlacementUsage& usage = core_.table.usage();
  const std::array<uint64_t, kPlacements> used = {usage.of(Placement::kOwned),
                                                  usage.of(Placement::kBorrowed)};
  EvictionPolicy* next = nullptr;
  for (const Placement placement : {Placement::kOwned, Placement::kBorrowed}) {
    EvictionPolicy& queue = queues_[IndexOf(placement)];
    if (queue.Front() == nullptr) continue;
    if (shares_.TurnOf(placement, used, pressure) != turn) continue;
    const bool older = next == nullptr || queue.Front()->used_ms < next->Front()->used_ms;
    if (older) next = &queue;
  }
  return next;
}

// What would go for a relayed block, which is borrowed as a rule.
void Evictor::TellNextVictim() {
  const EvictionCandidate* victim = queues_[IndexOf(Placement::kBorrowed)].Front();
  if (victim == nullptr) victim = queues_[IndexOf(Placement::kOwned)].Front();
  core_.next_victim.store(
      victim == nullptr ? 0 : FrequencyHash(victim->chunk.object, victim->chunk.chunk),
      std::memory_order_relaxed);
}

uint64_t Evictor::TakeFrom(const EvictionCandidate& victim, uint64_t bytes,
                           std::vector<Departure>* departures) {
  const auto object = core_.table.Find(victim.chunk.object);
  if (object == nullptr) return 0;
  Evictable from;
  from.chunk = victim.chunk.chunk;
  from.whole = victim.whole;
  from.used_ms = victim.used_ms;
  Departure departure = core_.MakeDeparture(object, object->TakeForEviction(from, bytes));
  if (departure.blocks.empty()) return 0;
  uint64_t taken = 0;
  for (const uint64_t block : departure.blocks) taken += object->StoredBytes(block);
  departures->push_back(std::move(departure));
  return taken;
}

void Evictor::Refill() {
  const TimePoint began = core_.clock.Now();
  std::array<std::vector<EvictionCandidate>, kPlacements> all;
  core_.table.ForEach([&all](const std::shared_ptr<StoredObject>& object) {
    const StoreKey key = object->key();
    for (const auto& each : object->FindEvictable()) {
      all[IndexOf(each.placement)].push_back({{key, each.chunk}, each.used_ms, each.whole});
    }
  });
  for (size_t i = 0; i < kPlacements; ++i) queues_[i].Refill(std::move(all[i]));
  look_took_ = core_.clock.Now() - began;
}

}  // namespace dartfs::core
