// ObjectMaker: Objects of what is known of a URL. Objects of one store key share its store object
// and its flights, however many URLs or openings lead to it. Part of the engine; thread-safe.
#pragma once

#include <memory>

#include "core/engine/flight.h"
#include "core/engine/flight_env.h"
#include "core/engine/url_record.h"

namespace dartfs::core {

class ObjectMaker {
 public:
  explicit ObjectMaker(FlightEnv& env);
  ~ObjectMaker();
  // `record.version` decides the store key. Blocking (the index). kBadResponse for a size no grid
  // holds.
  Result<std::shared_ptr<Object>> Make(const Url& url, const Identity& identity,
                                       const UrlRecord& record, bool immutable);

 private:
  struct State;
  FlightEnv& env_;
  const std::unique_ptr<State> state_;
};

}  // namespace dartfs::core
