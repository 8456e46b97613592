// Object: one version of one URL's bytes, as the engine has opened it. Facts are constant; the rest
// is the engine's (store object, flights). Shared by every reader of that version; a new version of
// the URL is another Object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/identity.h"
#include "core/base/mutex.h"
#include "core/base/url.h"
#include "core/engine/answer_fields.h"
#include "core/store/store.h"

namespace dartfs::core {

class FlightTable;

class Object {
 public:
  struct Facts {
    Url url;  // as first asked; other requesters may hold another signature for it
    Identity identity;
    StoreKey key;
    ObjectMeta meta;           // version, size, validators, content type
    bool range_blind = false;  // as probed: see range_blind() for now
    bool one_pass = false;     // see spooled()
    bool immutable = false;    // declared so, or content-addressed: never revalidated
  };
  Object(Facts facts, std::shared_ptr<StoredObject> stored, std::shared_ptr<FlightTable> flights,
         AnswerFields answer = {});

  const Facts& facts() const { return facts_; }
  uint64_t size() const { return facts_.meta.size; }
  const std::string& version() const { return facts_.meta.version; }
  // Of its record now: a digest gets another when it is verified.
  StoreKey key() const;
  // Content-addressed, and all its bytes have been hashed and match.
  bool verified() const;
  // Content-addressed, and its bytes have turned out to be others: nothing that was read of it may
  // be shown any more.
  bool refused() const;
  const std::shared_ptr<StoredObject>& stored() const { return stored_; }
  FlightTable& flights() const { return *flights_; }

  // Set once the origin is known to have another version: what is cached stays readable, anything
  // else fails with kStale.
  bool superseded() const { return superseded_.load(std::memory_order_acquire); }
  void MarkSuperseded() { superseded_.store(true, std::memory_order_release); }
  // The origin answers 200 to ranged requests: the object is spooled whole into the cache. Never
  // unset.
  bool range_blind() const { return range_blind_.load(std::memory_order_acquire); }
  // Its bytes are taken in one pass over the whole: the origin serves no ranges of it, or nothing
  // tells that two ranges are of one generation (no version, more than one block).
  bool spooled() const { return range_blind() || one_pass_; }
  void MarkRangeBlind() { range_blind_.store(true, std::memory_order_release); }

  // What the origin's last answer of this version said to clients. Never null; another one once a
  // revalidation has said otherwise.
  std::shared_ptr<const AnswerFields> answer() const;
  void SetAnswer(AnswerFields answer);

 private:
  const Facts facts_;
  const std::shared_ptr<StoredObject> stored_;
  const std::shared_ptr<FlightTable> flights_;
  mutable Mutex answer_mu_;  // last
  std::shared_ptr<const AnswerFields> answer_ GUARDED_BY(answer_mu_);
  std::atomic<bool> superseded_{false};
  std::atomic<bool> range_blind_;
  const bool one_pass_;
};

// The grid its blocks are of.
const Grid& GridOf(const Object& object);

}  // namespace dartfs::core
