// Committer: the one thread that writes the index and frees places in files, in the order that
// makes a crash harmless (FORMAT.md, "Order"). In rounds:
//
//   1. fdatasync of the files of blocks written since the last time; a failed one drops its blocks
//   2. eviction, where space is short
//   3. one index transaction: new blocks in, leaving blocks out, names
//   4. holes punched, files unlinked, their bytes given back
//
// Blocks become durable `commit_interval` after they were written, or once `commit_bytes` wait;
// room and Flush are attended to at once.
//
// Life cycle: the thread runs from the constructor until Stop, which does a last round.
// Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "core/store/commit_round.h"
#include "core/store/departure.h"
#include "core/store/evictor.h"
#include "core/store/store_core.h"

namespace dartfs::core {

class Committer {
 public:
  explicit Committer(std::shared_ptr<StoreCore> core);
  ~Committer() { (void)Stop(); }

  // A block has been written under this generation; it is to be made durable.
  void NotePresent(PresentBlock block) EXCLUDES(mu_);
  // Blocks have left memory; their records, if any, and their places are to go.
  void NoteDeparture(Departure departure) EXCLUDES(mu_);
  // The chunk's time of use, or the object's meta, have changed; no hurry.
  void NoteUse(const std::shared_ptr<StoredObject>& object, uint64_t chunk) EXCLUDES(mu_);
  void NoteMeta(const std::shared_ptr<StoredObject>& object) EXCLUDES(mu_);
  // Names wait in the NameCache.
  void NoteNames() EXCLUDES(mu_);
  // An object that has no blocks so far: it leaves memory when nobody has it open any more.
  void NoteEmpty(const StoreKey& key) EXCLUDES(mu_);
  // Space is short.
  void WantRoom() EXCLUDES(mu_);

  // Blocking, with a deadline: the outcome of the round that did it.
  Status Flush();
  Status Drop(const std::shared_ptr<StoredObject>& object);
  Status Rekey(const std::shared_ptr<StoredObject>& object, const StoreKey& key,
               const ObjectMeta& meta);
  // kBusy: not within `lend_patience`; it may still come.
  Status MarkLent(const std::shared_ptr<StoredObject>& object);
  Status SetPinned(const std::shared_ptr<StoredObject>& object, bool pinned);
  Result<uint64_t> Evict(const std::shared_ptr<StoredObject>& object);

  // A last round, then joins. Twice is fine.
  Status Stop() EXCLUDES(mu_, stop_mu_);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Order {
    enum class Kind { kFlush, kDrop, kRekey, kMarkLent, kPin, kUnpin, kEvict };
    Kind kind = Kind::kFlush;
    std::shared_ptr<StoredObject> object;
    ObjectFacts facts;
    uint64_t evicted_bytes = 0;  // read once it is done
    bool done = false;           // these two: under mu_ of the committer
    Status status;
  };
  struct Round {
    RoundWork work;
    std::vector<std::shared_ptr<Order>> orders;
    bool last = false;
  };

  void Run() EXCLUDES(mu_);
  Round WaitForRound() EXCLUDES(mu_);
  // How long until a round is due for what waits; zero: now.
  std::chrono::nanoseconds UntilDue(SteadyTime now) REQUIRES(mu_);
  Status Do(Round round) EXCLUDES(mu_);
  // What is ordered, after a round that ended so.
  Status Carry(Order& order, const Status& round_status);
  // All of these at once.
  void CarryMarks(const std::vector<std::shared_ptr<Order>>& marks) EXCLUDES(mu_);
  void End(Order& order, Status outcome) EXCLUDES(mu_);
  void NoteWork() REQUIRES(mu_);
  Status AwaitFor(Order::Kind kind, const std::shared_ptr<StoredObject>& object) EXCLUDES(mu_);
  static constexpr auto kOrderDeadline = std::chrono::seconds(120);
  Status Await(const std::shared_ptr<Order>& order,
               std::chrono::nanoseconds patience = kOrderDeadline) EXCLUDES(mu_);

  const std::shared_ptr<StoreCore> core_;

  // The thread's own.
  CommitRound round_;

  Mutex stop_mu_;  // held for the whole of Stop; taken before mu_
  std::thread thread_ GUARDED_BY(stop_mu_);

  Mutex mu_;  // a leaf
  CondVar wake_;
  CondVar order_done_;
  RoundWork work_ GUARDED_BY(mu_);
  uint64_t work_bytes_ GUARDED_BY(mu_) = 0;
  SteadyTime oldest_work_ GUARDED_BY(mu_) = SteadyTime::max();  // what is to become durable
  SteadyTime last_round_ GUARDED_BY(mu_);
  std::vector<std::shared_ptr<Order>> orders_ GUARDED_BY(mu_);
  bool want_room_ GUARDED_BY(mu_) = false;
  bool has_leftovers_ GUARDED_BY(mu_) = false;
  bool stopping_ GUARDED_BY(mu_) = false;
  bool stopped_ GUARDED_BY(mu_) = false;
  Status last_status_ GUARDED_BY(mu_);
};

}  // namespace dartfs::core
