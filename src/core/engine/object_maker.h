// ObjectMaker: Objects of what is known of a URL. Objects of one store key share its store object
// and its flights, however many URLs or openings lead to it. Part of the engine; thread-safe.
#pragma once

#include <memory>
#include <optional>

#include "core/engine/digest_record.h"
#include "core/engine/flight.h"
#include "core/engine/flight_env.h"
#include "core/engine/url_record.h"

namespace dartfs::core {

class ObjectMaker {
 public:
  explicit ObjectMaker(FlightEnv& env);
  ~ObjectMaker();
  // `record.version` decides the store key, and whether the digest of a content-addressed one has
  // been verified: then its objects are shared by all URLs. Blocking (the index). kBadResponse for
  // a size no grid holds, or that is not the verified object's.
  Result<std::shared_ptr<Object>> Make(const Url& url, const Identity& identity,
                                       const UrlRecord& record, bool immutable);

  // What is known of the digest's object without asking anybody: nullopt unless it was verified.
  std::optional<UrlRecord> Verified(const Identity& identity) const;

 private:
  std::optional<DigestRecord> FindDigest(const Identity& identity) const;
  // Then an object was looked for under a key that it has no longer.
  bool WasFiledMeanwhile(const Identity& identity);
  std::shared_ptr<FlightTable> TableOf(const std::shared_ptr<StoredObject>& stored,
                                       const Identity& identity,
                                       std::optional<DigestRecord> digest);
  struct State;
  FlightEnv& env_;
  const std::unique_ptr<State> state_;
};

}  // namespace dartfs::core
