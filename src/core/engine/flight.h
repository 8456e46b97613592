// Flight: one block being fetched, shared by all who want it (single-flight). It owns the block's
// buffer and its watermarks, asks sources one after another, resumes at the watermark after a
// failure, hands the complete block to the store, and ends.
//
//   waiting -> fetching <-> backoff -> storing -> stored
//                  \-> failed            \-> unstored (bypass: the buffer stays a while)
//
// Bytes below `trusted` never change: readers copy them without a lock. A ticket is the interest of
// one reader; when the last goes without having got anything, the fetch is cancelled.
//
// Thread-safe. Wakers run on a scheduler thread, without locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"
#include "core/engine/engine.h"
#include "core/engine/memory_budget.h"
#include "core/engine/object.h"
#include "core/engine/object_reader.h"

namespace dartfs::core {

struct FlightEnv;  // flight_env.h: what all flights of an engine share
class DigestCheck;
class Flight;
class FlightTable;

using Waker = UniqueFunction<void()>;

enum class FlightPhase : uint8_t {
  kWaiting,
  kFetching,
  kBackoff,
  kStoring,   // complete in memory
  kStored,    // read it from the store
  kUnstored,  // complete in memory, and the store would not have it
  kFailed,
};

// A consistent look at a flight.
struct FlightView {
  FlightPhase phase = FlightPhase::kWaiting;
  std::shared_ptr<const AlignedBuffer> buffer;  // null before the first byte and once stored
  uint64_t trusted = 0;                         // bytes of `buffer` that may be read
  std::optional<Error> error;                   // kFailed
};

// Interest in a flight: move-only; dropping it leaves.
class FlightTicket {
 public:
  FlightTicket() = default;
  FlightTicket(FlightTicket&& other) noexcept;
  FlightTicket& operator=(FlightTicket&& other) noexcept;
  ~FlightTicket();

  explicit operator bool() const { return flight_ != nullptr; }
  FlightView Look() const;
  // Calls `waker` once as soon as `need` bytes of the block can be read, or the flight is complete
  // or over. False: that is so already and `waker` is dropped. One wait at a time.
  bool Await(uint64_t need, Waker waker);
  // The same, once the flight is over: stored, refused by the store, or failed.
  bool AwaitOver(Waker waker);
  // Drops the waker of Await without leaving.
  void Disarm();
  // From what somebody may want to what somebody waits for.
  void Raise(Priority priority);
  // The reader has got bytes of the block: when all tickets go now, the fetch under way goes on to
  // the block's end (in the background), so that it is kept.
  void MarkServed();
  // Whether this ticket counts as interest (KERNEL.md, FLUSH); it does from the start.
  void SetInterested(bool interested);

 private:
  friend class FlightTable;
  friend class Flight;
  FlightTicket(std::shared_ptr<Flight> flight, uint64_t id) : flight_(std::move(flight)), id_(id) {}
  void Leave();
  std::shared_ptr<Flight> flight_;
  uint64_t id_ = 0;
};

struct TicketOptions {
  std::shared_ptr<const Requester> requester;
  Priority priority = Priority::kDemand;
  // Waits without a deadline: an origin that is out of reach is asked again for as long as that.
  bool patient = false;
  // Keep the complete block in memory until this ticket goes, also once it is stored: for readers
  // that take it within moments.
  bool hold_buffer = false;
};

// The flights of one stored object. Outlived by its flights' callbacks, never by its store object.
class FlightTable : public std::enable_shared_from_this<FlightTable> {
 public:
  // `digest` is null unless the object is content-addressed.
  FlightTable(FlightEnv& env, std::shared_ptr<StoredObject> stored, std::string group,
              std::shared_ptr<DigestCheck> digest);
  ~FlightTable();

  struct Joined {
    BlockPin pin;         // the block is present
    FlightTicket ticket;  // or it is in flight
    bool started = false;
  };
  // The block as it is now: pinned, joined, or a new flight. `object` is the requester's view of
  // it.
  Joined Join(const std::shared_ptr<Object>& object, uint64_t block, TicketOptions options);
  // A flight that is there already, else an empty ticket; starts none.
  FlightTicket JoinExisting(uint64_t block, TicketOptions options);
  bool InFlight(uint64_t block) const;
  // Whether a pass over the whole object has begun (spool.h) before this call.
  bool TestAndSetPassed() { return passed_.exchange(true); }
  void ForgetPass() { passed_.store(false); }  // it gave nothing

  const std::shared_ptr<StoredObject>& stored() const { return stored_; }
  const std::string& group() const { return group_; }
  const std::shared_ptr<DigestCheck>& digest() const { return digest_; }
  FlightEnv& env() const { return env_; }

 private:
  friend class Flight;
  void Remove(uint64_t block, const Flight* flight);

  struct State;
  FlightEnv& env_;
  std::atomic<bool> passed_{false};
  const std::shared_ptr<StoredObject> stored_;
  const std::string group_;
  const std::shared_ptr<DigestCheck> digest_;
  const std::unique_ptr<State> state_;
};

}  // namespace dartfs::core
