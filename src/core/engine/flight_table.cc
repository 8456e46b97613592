#include <deque>
#include <unordered_map>

#include "core/engine/flight_impl.h"

namespace dartfs::core {

struct FlightTable::State {
  mutable Mutex mu;  // before Flight's and the store's
  std::unordered_map<uint64_t, std::shared_ptr<Flight>> flights GUARDED_BY(mu);
};

FlightTable::FlightTable(FlightEnv& env, std::shared_ptr<StoredObject> stored, std::string group,
                         std::shared_ptr<DigestCheck> digest)
    : env_(env),
      stored_(std::move(stored)),
      group_(std::move(group)),
      digest_(std::move(digest)),
      state_(std::make_unique<State>()) {}

FlightTable::~FlightTable() = default;

FlightTable::Joined FlightTable::Join(const std::shared_ptr<Object>& object, uint64_t block,
                                      TicketOptions options) {
  Joined joined;
  std::shared_ptr<Flight> fresh;
  {
    MutexLock lock(state_->mu);
    const auto it = state_->flights.find(block);
    if (it != state_->flights.end()) {
      if (const auto id = it->second->AddTicket(options)) {
        joined.ticket = FlightTicket(it->second, *id);
        return joined;
      }
    }
    // Under the lock: a flight leaves the table only after its block can be found in the store.
    joined.pin = env_.store.Pin(stored_, block);
    if (joined.pin) return joined;
    const uint64_t length = env_.options.grid.BlockLength(object->size(), block);
    fresh = std::make_shared<Flight>(shared_from_this(), object, block, length);
    const auto id = fresh->AddTicket(std::move(options));
    joined.ticket = FlightTicket(fresh, *id);
    state_->flights[block] = fresh;
  }
  joined.started = true;
  env_.registry.Add(fresh);
  fresh->Start();
  return joined;
}

FlightTicket FlightTable::JoinExisting(uint64_t block, TicketOptions options) {
  MutexLock lock(state_->mu);
  const auto it = state_->flights.find(block);
  if (it == state_->flights.end()) return {};
  const auto id = it->second->AddTicket(std::move(options));
  return id ? FlightTicket(it->second, *id) : FlightTicket();
}

bool FlightTable::InFlight(uint64_t block) const {
  MutexLock lock(state_->mu);
  return state_->flights.count(block) > 0;
}

void FlightTable::Remove(uint64_t block, const Flight* flight) {
  std::shared_ptr<Flight> dropped;  // destroyed without the lock
  MutexLock lock(state_->mu);
  const auto it = state_->flights.find(block);
  if (it == state_->flights.end() || it->second.get() != flight) return;
  dropped = std::move(it->second);
  state_->flights.erase(it);
}

struct UnstoredBlocks::State : std::enable_shared_from_this<UnstoredBlocks::State> {
  using Blocks = std::deque<std::pair<std::shared_ptr<Flight>, uint64_t>>;

  State(uint64_t limit_bytes, Store& s, Scheduler& sch)
      : limit(limit_bytes), store(s), scheduler(sch) {}

  void LookLater() REQUIRES(mu) {
    if (std::exchange(look_posted, true)) return;
    scheduler.After(kLook, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Look();
    });
  }

  void Look() {
    const bool bypass = store.Stats().bypass;
    Blocks released;
    {
      MutexLock lock(mu);
      look_posted = false;
      if (!bypass) released = TakeAll();
      if (!blocks.empty()) LookLater();
    }
    for (const auto& entry : released) entry.first->ReleaseUnstored();
  }

  Blocks TakeAll() REQUIRES(mu) {
    used = 0;
    return std::exchange(blocks, {});
  }

  const uint64_t limit;
  Store& store;
  Scheduler& scheduler;
  Mutex mu;  // before the scheduler's
  uint64_t used GUARDED_BY(mu) = 0;
  Blocks blocks GUARDED_BY(mu);
  bool look_posted GUARDED_BY(mu) = false;
};

UnstoredBlocks::UnstoredBlocks(uint64_t limit_bytes, Store& store, Scheduler& scheduler)
    : state_(std::make_shared<State>(limit_bytes, store, scheduler)) {}
UnstoredBlocks::~UnstoredBlocks() = default;

void UnstoredBlocks::Add(std::shared_ptr<Flight> flight, uint64_t bytes) {
  std::vector<std::shared_ptr<Flight>> released;
  {
    MutexLock lock(state_->mu);
    state_->blocks.emplace_back(std::move(flight), bytes);
    state_->used += bytes;
    while (state_->used > state_->limit && !state_->blocks.empty()) {
      released.push_back(std::move(state_->blocks.front().first));
      state_->used -= state_->blocks.front().second;
      state_->blocks.pop_front();
    }
    state_->LookLater();
  }
  for (const auto& gone : released) gone->ReleaseUnstored();
}

void UnstoredBlocks::Clear() {
  State::Blocks blocks;
  {
    MutexLock lock(state_->mu);
    blocks = state_->TakeAll();
  }
  for (const auto& entry : blocks) entry.first->ReleaseUnstored();
}

struct FlightRegistry::State {
  mutable Mutex mu;
  std::unordered_map<const Flight*, std::shared_ptr<Flight>> flights GUARDED_BY(mu);
};

FlightRegistry::FlightRegistry() : state_(std::make_unique<State>()) {}
FlightRegistry::~FlightRegistry() = default;

void FlightRegistry::Add(const std::shared_ptr<Flight>& flight) {
  MutexLock lock(state_->mu);
  state_->flights.emplace(flight.get(), flight);
}

void FlightRegistry::Remove(const Flight* flight) {
  std::shared_ptr<Flight> dropped;
  MutexLock lock(state_->mu);
  const auto it = state_->flights.find(flight);
  if (it == state_->flights.end()) return;
  dropped = std::move(it->second);
  state_->flights.erase(it);
}

std::vector<std::shared_ptr<Flight>> FlightRegistry::All() const {
  std::vector<std::shared_ptr<Flight>> all;
  MutexLock lock(state_->mu);
  all.reserve(state_->flights.size());
  for (const auto& entry : state_->flights) all.push_back(entry.second);
  return all;
}

}  // namespace dartfs::core
