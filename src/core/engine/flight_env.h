// FlightEnv: what the flights of one engine share. Owned by the engine, outlives every flight.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/latency_histogram.h"
#include "core/base/random.h"
#include "core/base/scheduler.h"
#include "core/engine/digest_worker.h"
#include "core/engine/engine.h"
#include "core/engine/held_blocks.h"
#include "core/engine/memory_budget.h"
#include "core/engine/read_buffers.h"
#include "core/engine/source.h"
#include "core/store/store.h"

namespace dartfs::core {

class Flight;

// Relaxed counters.
struct EngineCounters {
  std::atomic<uint64_t> origin_bytes{0}, peer_bytes{0};
  std::atomic<uint64_t> cache_reads{0}, peer_reads{0}, origin_reads{0};
  std::atomic<uint64_t> cache_bytes{0}, memory_bytes{0};
  std::atomic<uint64_t> flights_started{0}, flights_failed{0}, retries{0};
  std::atomic<uint64_t> refetched_corrupt{0}, wrong_digests{0};
  LatencyHistogram origin_fetches, peer_fetches;  // from a flight's start to its last byte
};

// What flights tell the rest of the engine. Called without locks, on any engine thread.
class FlightEvents {
 public:
  virtual ~FlightEvents() = default;
  // The origin has another version of the object's URL.
  virtual void OnStale(const std::shared_ptr<Object>& object) = 0;
  // The origin answered 200 to a ranged request.
  virtual void OnRangeBlind(const std::shared_ptr<Object>& object) = 0;
  // The bytes of its objects are not what their digest names; they have been dropped.
  virtual void OnWrongDigest(const DigestCheck& check, const Error& error) = 0;
  virtual void OnFetchError(const std::shared_ptr<Object>& object, const Error& error) = 0;
  // The source to ask for this object now.
  virtual BlockSource& SourceFor(const Object& object) = 0;
};

// Blocks that are complete but not stored stay while the store is in bypass, so that small reads of
// a block do not fetch it again and again. At most `limit_bytes`; the oldest goes first. Soon after
// the store keeps blocks again they go, so that the next read has them stored. Thread-safe.
class UnstoredBlocks {
 public:
  static constexpr Duration kLook = std::chrono::seconds(1);

  UnstoredBlocks(uint64_t limit_bytes, Store& store, Scheduler& scheduler);
  ~UnstoredBlocks();
  void Add(std::shared_ptr<Flight> flight, uint64_t bytes);
  void Clear();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

// All flights that have started and not ended, for reports and for stopping. Thread-safe.
class FlightRegistry {
 public:
  FlightRegistry();
  ~FlightRegistry();
  void Add(const std::shared_ptr<Flight>& flight);
  void Remove(const Flight* flight);
  std::vector<std::shared_ptr<Flight>> All() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct FlightEnv {
  const EngineOptions& options;
  Store& store;
  Scheduler& scheduler;
  Scheduler& blocking;  // for tasks that wait for the store
  Random& random;
  MemoryBudget& memory;
  FlightEvents& events;
  EngineCounters& counters;
  UnstoredBlocks& unstored;
  FlightRegistry& registry;
  DigestWorker& digests;
  HeldBlocks& held;
  ReadBuffers& read_buffers;
  std::atomic<uint64_t> read_ahead_bytes{0};  // of blocks that only read-ahead wants, in flight
  std::atomic<bool> stopped{false};
};

}  // namespace dartfs::core
