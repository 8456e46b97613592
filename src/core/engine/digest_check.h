// DigestCheck: whether the bytes of one content-addressed stored object are those its digest names
// (IDENTITY.md, "Content-addressed"; DESIGN.md section 7).
//
//   hashing -> verified: the object gets the key that all URLs with the digest share
//          \-> refused: its blocks are dropped, reads fail, its sources are named in the log
//
// Blocks are hashed in the object's order by the DigestWorker: those just fetched from memory as
// far as the worker keeps up, the others out of the store. Each hashed block's own digest is kept:
// bytes that come for it again (it was evicted) must be the same, also before the whole is known.
// So a verified object is never mixed with what some URL merely claims to be it.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/base/hash.h"
#include "core/base/identity.h"
#include "core/base/mutex.h"
#include "core/engine/digest_record.h"
#include "core/engine/flight_env.h"

namespace dartfs::core {

class DigestCheck final : public std::enable_shared_from_this<DigestCheck> {
 public:
  // `known`: the digest's record, if it has been verified before. `identity` is content-addressed.
  DigestCheck(FlightEnv& env, std::shared_ptr<StoredObject> stored, Identity identity,
              std::optional<DigestRecord> known);
  ~DigestCheck();

  // Bytes of a flight are shown to readers only after Admit.
  bool verified() const { return state_.load(std::memory_order_acquire) == State::kVerified; }
  // The bytes did not match: nothing of the object may be read any more.
  bool refused() const { return state_.load(std::memory_order_acquire) == State::kRefused; }
  std::optional<Error> Refusal() const;

  // A complete block, before it is stored. kBadResponse: not the verified bytes, ask again.
  // kCorrupt: Refusal's. Hashes on the caller's thread where the block's digest is known.
  Status Admit(uint64_t block, const std::shared_ptr<const AlignedBuffer>& bytes,
               const Identity& source);
  // Looks whether there is something to hash. Does not block.
  void Wake();

  // The worker's thread: hashes a few blocks, or ends what has been decided. True: there is more.
  bool Run();

 private:
  enum class State : uint8_t { kHashing, kVerified, kRefused };
  using Bytes = std::shared_ptr<const AlignedBuffer>;

  Bytes TakeOffered(uint64_t block);
  // From the store; null where the block is absent or can't be read.
  Bytes ReadStored(uint64_t block, BlockPin* pin);
  void HashNext(const Bytes& bytes);
  void Conclude();
  // Under the digest's key.
  void File(const std::string& name, const std::string& record);
  void Refuse(const std::string& why) REQUIRES(mu_);
  void DropRefused();
  void ForgetOffered() REQUIRES(mu_);
  bool HasNext();

  FlightEnv& env_;  // not in the destructor: objects outlive the engine
  const std::shared_ptr<HeldBytes> held_;
  const std::shared_ptr<StoredObject> stored_;
  const Identity identity_;
  const uint64_t size_;         // bytes
  const uint64_t block_count_;  // of the object

  std::atomic<State> state_;
  std::unique_ptr<Digester> whole_;  // the worker's

  mutable Mutex mu_;  // a leaf but for the worker's
  DigestRecord record_ GUARDED_BY(mu_);
  uint64_t next_ GUARDED_BY(mu_) = 0;          // block to be hashed; below it `record_` is known
  bool hashing_next_ GUARDED_BY(mu_) = false;  // its bytes have been taken
  std::map<uint64_t, Bytes> offered_ GUARDED_BY(mu_);
  Bytes again_ GUARDED_BY(mu_);  // came for next_ while another fetch's bytes were being hashed
  std::set<std::string> sources_ GUARDED_BY(mu_);  // redacted URLs
  std::optional<Error> refusal_ GUARDED_BY(mu_);
  bool dropped_ GUARDED_BY(mu_) = false;
};

}  // namespace dartfs::core
