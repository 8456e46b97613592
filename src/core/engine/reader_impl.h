// The ObjectReader of the engine: reads in flight (ReadOp), read-ahead tickets.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "core/base/mutex.h"
#include "core/engine/flight_env.h"
#include "core/engine/object_reader.h"
#include "core/engine/range_reader.h"
#include "core/engine/read_ahead.h"

namespace dartfs::core {

class ReadOp;

// What a reader and its operations share; outlives the reader while an operation is under way.
class ReaderState : public std::enable_shared_from_this<ReaderState> {
 public:
  ReaderState(FlightEnv& env, HttpClient& http, std::shared_ptr<Object> object,
              Requester requester);

  std::optional<ReadBytes> TryRead(uint64_t offset, std::span<std::byte> into);
  ReadId Read(uint64_t offset, size_t size, TimePoint deadline, ReadDone done);
  void Cancel(ReadId id);
  void LowerInterest();
  void Close();

  FlightEnv& env() const { return env_; }
  const std::shared_ptr<Object>& object() const { return object_; }
  const std::shared_ptr<const Requester>& requester() const { return requester_; }

 private:
  friend class ReadOp;
  // A block fetched ahead: on its way, or whole and held in memory until it has been read.
  struct AheadBlock {
    FlightTicket ticket;
    bool done = false;  // complete or failed, and noted
    HeldBlocks::Id held = HeldBlocks::kNone;
    uint64_t served = 0;  // bytes given to readers
  };
  using AheadMap = std::unordered_map<uint64_t, AheadBlock>;

  bool CopyBlocks(uint64_t offset, std::span<std::byte> into);
  bool CopyBlock(uint64_t block, uint64_t in_block, std::span<std::byte> into);
  // Of a block fetched ahead, if its bytes are in memory.
  std::optional<ReadBytes> FindAhead(uint64_t block, uint64_t in_block, size_t length);
  bool CopyAhead(uint64_t block, uint64_t in_block, std::span<std::byte> into);
  // So many bytes of the block have been read: once all have, it is not held any more.
  void NoteServed(uint64_t block, uint64_t bytes);
  void Ahead(uint64_t offset, uint64_t length);
  bool MayFetchAhead(uint64_t bytes) const;
  void FetchAhead(uint64_t block);
  void AheadDone(uint64_t block);
  void DropAhead(uint64_t block);
  void DropPassed(uint64_t position);
  void Drop(AheadMap&& blocks);
  void Forget(ReadId id);
  void RestoreInterest();

  FlightEnv& env_;
  HttpClient& http_;
  const std::shared_ptr<Object> object_;
  const std::shared_ptr<const Requester> requester_;

  Mutex mu_;  // before the flights' and the held blocks'
  ReadAhead read_ahead_ GUARDED_BY(mu_);
  AheadMap ahead_ GUARDED_BY(mu_);  // by block
  std::unordered_map<ReadId, std::shared_ptr<ReadOp>> ops_ GUARDED_BY(mu_);
  ReadId next_id_ GUARDED_BY(mu_) = 1;
  bool lowered_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;
};

class ReaderImpl final : public ObjectReader {
 public:
  explicit ReaderImpl(std::shared_ptr<ReaderState> state) : state_(std::move(state)) {}
  ~ReaderImpl() override { state_->Close(); }
  const std::shared_ptr<Object>& object() const override { return state_->object(); }
  std::optional<ReadBytes> TryRead(uint64_t offset, std::span<std::byte> into) override {
    return state_->TryRead(offset, into);
  }
  ReadId Read(uint64_t offset, size_t size, TimePoint deadline, ReadDone done) override {
    return state_->Read(offset, size, deadline, std::move(done));
  }
  void Cancel(ReadId id) override { state_->Cancel(id); }
  void LowerInterest() override { state_->LowerInterest(); }

 private:
  const std::shared_ptr<ReaderState> state_;
};

// One read that could not be answered on the spot. It pulls a RangeReader until its buffer is full.
// One event is outstanding at a time (a wake-up or a disk read); deadline and cancel may come at
// any moment.
class ReadOp final : public std::enable_shared_from_this<ReadOp> {
 public:
  ReadOp(std::shared_ptr<ReaderState> reader, ReadId id, uint64_t offset, size_t size,
         TimePoint deadline, ReadDone done);
  ~ReadOp();

  void Start();
  void Finish(Status status);  // the first call answers
  void SetInterested(bool interested);

 private:
  void Drive();
  bool Step(bool* again);  // false: finished, or an event will call Drive
  bool ReadFile(FileSlice slice);
  bool TakeBuffer(FileSlice* slice);
  void OnFileRead(uint64_t at, const Status& status);
  std::span<std::byte> Target(uint64_t at, size_t length);

  const std::shared_ptr<ReaderState> reader_;
  const ReadId id_;
  const uint64_t offset_;
  const size_t size_;
  const TimePoint deadline_;
  // Of the driver: touched only by whoever runs Drive.
  AlignedBuffer buffer_;
  std::optional<ReadBytes> direct_;  // one piece of memory was all

  Mutex mu_;  // before the flights'
  RangeReader range_ GUARDED_BY(mu_);
  ReadDone done_ GUARDED_BY(mu_);
  TimerId timer_ GUARDED_BY(mu_) = kNoTimer;
  bool finished_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
