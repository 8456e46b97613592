#include "core/engine/object.h"

#include <utility>

#include "core/engine/digest_check.h"
#include "core/engine/flight.h"
#include "core/engine/flight_env.h"

namespace dartfs::core {

Object::Object(Facts facts, std::shared_ptr<StoredObject> stored,
               std::shared_ptr<FlightTable> flights, AnswerFields answer)
    : facts_(std::move(facts)),
      stored_(std::move(stored)),
      flights_(std::move(flights)),
      answer_(std::make_shared<const AnswerFields>(std::move(answer))),
      range_blind_(facts_.range_blind),
      one_pass_(facts_.one_pass) {}

StoreKey Object::key() const { return stored_ == nullptr ? facts_.key : KeyOf(*stored_); }

bool Object::verified() const {
  return flights_ != nullptr && flights_->digest() != nullptr && flights_->digest()->verified();
}

bool Object::refused() const {
  return flights_ != nullptr && flights_->digest() != nullptr && flights_->digest()->refused();
}

const Grid& GridOf(const Object& object) { return object.flights().env().options.grid; }

std::shared_ptr<const AnswerFields> Object::answer() const {
  MutexLock lock(answer_mu_);
  return answer_;
}

void Object::SetAnswer(AnswerFields answer) {
  auto fresh = std::make_shared<const AnswerFields>(std::move(answer));
  MutexLock lock(answer_mu_);
  answer_.swap(fresh);
}

}  // namespace dartfs::core
