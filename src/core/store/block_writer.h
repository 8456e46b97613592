// BlockWriter: the way of a block into its object's file. One thread admits writes one after
// another (bypass, room, checksums, file) and hands them to DiskIo, which has many under way.
//
// What waits and what is under way is bounded; beyond it, while room can't be made in time, and
// while the disk does not answer, a block is not kept. Life cycle: the thread runs from the
// constructor until Stop. Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "core/base/mutex.h"
#include "core/store/committer.h"
#include "core/store/store_core.h"
#include "core/store/write_watch.h"

namespace dartfs::core {

class BlockWriter {
 public:
  BlockWriter(std::shared_ptr<StoreCore> core, std::shared_ptr<Committer> committer);
  ~BlockWriter();

  // As Store::Write.
  void Write(std::shared_ptr<StoredObject> object, uint64_t block,
             std::shared_ptr<const AlignedBuffer> bytes, IoDone done, WriteOptions options)
      EXCLUDES(mu_);
  // How long the disk has not answered a write; zero where none is under way.
  Duration OldestWriteAge() { return under_way_->OldestAge(core_->clock.Now()); }
  // Ends what waits with kCancelled; what is under way goes on. Joins. Twice is fine.
  void Stop() EXCLUDES(mu_, stop_mu_);

 private:
  struct Job;
  // A write handed to DiskIo.
  class Op;

  void Run() EXCLUDES(mu_);
  std::unique_ptr<Job> NextJob() EXCLUDES(mu_);
  void Admit(std::unique_ptr<Job> job);
  // The outcome, where it is known before any I/O.
  std::optional<Status> Claim(const Job& job) EXCLUDES(mu_);
  bool MakeRoom(uint64_t bytes, Placement placement) EXCLUDES(mu_);
  // Whether a relayed block is worth what would have to go for it.
  bool IsWorthKeeping(const Job& job);
  // Whether all that may be under way is.
  bool IsFull();
  // Bypass, while the disk has not answered a write for too long.
  void CheckSlowness();
  bool stopping() EXCLUDES(mu_);

  const std::shared_ptr<StoreCore> core_;
  const std::shared_ptr<Committer> committer_;
  // Writes with DiskIo; they may outlive this.
  const std::shared_ptr<WriteWatch> under_way_ = std::make_shared<WriteWatch>();

  Mutex stop_mu_;  // held for the whole of Stop; taken before mu_
  std::thread thread_ GUARDED_BY(stop_mu_);

  Mutex mu_;  // a leaf
  CondVar wake_;
  std::deque<std::unique_ptr<Job>> queue_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
