#include "core/engine/object.h"

#include <utility>

#include "core/engine/flight.h"

namespace dartfs::core {

Object::Object(Facts facts, std::shared_ptr<StoredObject> stored,
               std::shared_ptr<FlightTable> flights)
    : facts_(std::move(facts)),
      stored_(std::move(stored)),
      flights_(std::move(flights)),
      range_blind_(facts_.range_blind) {}

}  // namespace dartfs::core
