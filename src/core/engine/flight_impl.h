// The Flight class itself: for flight.cc, flight_attempt.cc, flight_table.cc and reports only.
// Readers use FlightTicket.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/engine/flight.h"
#include "core/engine/flight_env.h"

namespace dartfs::core {

class Flight final : public std::enable_shared_from_this<Flight> {
 public:
  Flight(std::shared_ptr<FlightTable> table, std::shared_ptr<Object> object, uint64_t block,
         uint64_t length);
  ~Flight();

  // Asks the first source. Once, after the first ticket, without the table's lock.
  void Start();
  // nullopt: over, look again in the store and the table.
  std::optional<uint64_t> AddTicket(TicketOptions options);
  void Leave(uint64_t ticket);
  FlightView Look(uint64_t ticket) const;
  bool Await(uint64_t ticket, uint64_t need, Waker waker);
  bool AwaitOver(uint64_t ticket, Waker waker);
  void Disarm(uint64_t ticket);
  void Raise(uint64_t ticket, Priority priority);
  void SetInterested(uint64_t ticket, bool interested);
  void MarkServed();
  // Ends it with kCancelled for everyone.
  void Abort();
  // An unstored block's memory is wanted back.
  void ReleaseUnstored();
  FlightReport Report() const;

 private:
  friend class FlightAttempt;
  struct Ticket {
    TicketOptions options;
    bool interested = true;
    uint64_t need = 0;
    bool until_over = false;  // instead of `need`
    Waker waker;
    std::optional<Error> error;  // of this ticket alone (its credential)
  };
  using Wakers = std::vector<Waker>;

  // Sources (flight_attempt.cc).
  void BeginAttempt();
  Status OnStart(const class FlightAttempt* attempt, bool trusted);
  Result<BodyVerdict> OnBytes(class FlightAttempt* attempt, std::span<const std::byte> bytes);
  void OnPiecesEnd(class FlightAttempt* attempt);
  void OnEnd(const class FlightAttempt* attempt, Status status);
  Status Prepare(class FlightAttempt* attempt, bool* paused) REQUIRES(copy_mu_) EXCLUDES(mu_);
  Status Publish(class FlightAttempt* attempt) REQUIRES(copy_mu_) EXCLUDES(mu_);
  bool AcquireBuffer() REQUIRES(mu_);
  void OnGrant(SharedBuffer buffer);
  void HandleFailure(Error error);
  void RetryOrFail(Error error);
  void RefuseRequester(Error error);
  void Backoff(Duration delay);
  // Gives the attempt up if nobody seems to wait and it gets nowhere; looks again later if it does.
  void PauseUnwanted();
  void LookAtInterest();
  // Of a content-addressed object: may the complete block be believed? Otherwise it is emptied.
  Status CheckDigest();
  void Complete();
  void OnStored(const Status& status);
  void Fail(Error error);

  FlightEnv& env() const { return table_->env(); }
  Priority BestPriority() const REQUIRES(mu_);
  bool AnyInterested() const REQUIRES(mu_);
  bool AnyHolder() const REQUIRES(mu_);
  bool AnyPatient() const REQUIRES(mu_);
  bool Ready(const Ticket& ticket) const REQUIRES(mu_);
  void CollectWakers(Wakers* out) REQUIRES(mu_);
  void CountFetch() REQUIRES(mu_);
  void CountReadAhead() REQUIRES(mu_);
  void RaiseMemoryWait() REQUIRES(mu_);
  void PostWakers(Wakers wakers);
  void LeaveTables();
  std::shared_ptr<BlockFetch> StopAttempt() REQUIRES(mu_);
  void EndAttempt() REQUIRES(mu_);
  std::string Describe() const;

  const std::shared_ptr<FlightTable> table_;
  const std::shared_ptr<Object> object_;
  const uint64_t block_;
  const uint64_t length_;
  const TimePoint started_at_;

  // Held while bytes are copied above the watermark, by the current attempt or one given up in the
  // middle of it. Before mu_; never taken by readers.
  Mutex copy_mu_;
  mutable Mutex mu_;  // after FlightTable's; before the memory budget's and the scheduler's
  FlightPhase phase_ GUARDED_BY(mu_) = FlightPhase::kWaiting;
  std::map<uint64_t, Ticket> tickets_ GUARDED_BY(mu_);
  uint64_t next_ticket_ GUARDED_BY(mu_) = 1;
  SharedBuffer buffer_ GUARDED_BY(mu_);
  uint64_t received_ GUARDED_BY(mu_) = 0;
  uint64_t trusted_ GUARDED_BY(mu_) = 0;
  std::optional<Error> error_ GUARDED_BY(mu_);
  std::shared_ptr<class FlightAttempt> attempt_ GUARDED_BY(mu_);
  std::shared_ptr<BlockFetch> fetch_ GUARDED_BY(mu_);
  std::shared_ptr<const Requester> requester_ GUARDED_BY(mu_);  // of the attempt
  const char* source_ GUARDED_BY(mu_) = "waiting";
  bool attempt_trusted_ GUARDED_BY(mu_) = false;
  bool served_ GUARDED_BY(mu_) = false;  // somebody has got bytes: worth completing
  bool read_ahead_counted_ GUARDED_BY(mu_) = false;
  uint64_t grant_wait_ GUARDED_BY(mu_) = 0;
  TimerId timer_ GUARDED_BY(mu_) = kNoTimer;
  TimePoint last_progress_ GUARDED_BY(mu_);
  uint64_t received_at_failure_ GUARDED_BY(mu_) = 0;
  int failures_ GUARDED_BY(mu_) = 0;  // in a row without progress
  uint32_t attempts_ GUARDED_BY(mu_) = 0;
  int pauses_ GUARDED_BY(mu_) = 0;        // in a row, for want of interest
  bool watched_ GUARDED_BY(mu_) = false;  // LookAtInterest will run
};

// The sink of one attempt. A flight listens to its current attempt only.
class FlightAttempt final : public BlockSink {
 public:
  explicit FlightAttempt(std::shared_ptr<Flight> flight) : flight_(std::move(flight)) {}
  Status OnStart(bool trusted) override { return flight_->OnStart(this, trusted); }
  Result<BodyVerdict> OnBytes(std::span<const std::byte> bytes) override {
    return flight_->OnBytes(this, bytes);
  }
  void OnPiecesEnd() override { flight_->OnPiecesEnd(this); }
  void OnEnd(Status status) override {
    flight_->OnPiecesEnd(this);
    flight_->OnEnd(this, std::move(status));
  }

  // Guarded by the flight's copy_mu_, but for their start.
  uint64_t position = 0;   // of the block, where the attempt's next byte belongs
  uint64_t published = 0;  // how far readers know of them
  uint64_t known = 0;      // the watermark as the attempt began to copy
  SharedBuffer buffer;     // the flight's, from then on

  // Cleared when the flight listens to it no longer.
  std::atomic<bool> current{true};

 private:
  const std::shared_ptr<Flight> flight_;
};

}  // namespace dartfs::core
