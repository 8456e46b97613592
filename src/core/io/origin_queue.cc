#include "core/io/origin_queue.h"

#include <algorithm>

#include "core/base/check.h"

namespace dartfs::core {
namespace {

constexpr Duration kFirstHold = std::chrono::milliseconds(500);
// Without a Retry-After: an origin that has recovered is found out soon.
constexpr Duration kMaxOwnHold = std::chrono::seconds(5);
constexpr size_t kKeptForDemand = 2;

bool IsDemand(Priority priority) { return priority == Priority::kDemand; }

}  // namespace

OriginQueue::Admission OriginQueue::Push(uint64_t id, Priority priority, TimePoint now) {
  if (!IsDemand(priority) && Throttled(now)) return Admission::kThrottled;
  if (where_.size() >= limits_.queue) return Admission::kFull;
  const uint64_t sequence = next_sequence_++;
  const bool fresh = where_.emplace(id, Place{priority, sequence}).second;
  DARTFS_CHECK(fresh);
  Line(priority).emplace(sequence, id);
  return Admission::kQueued;
}

std::optional<OriginQueue::Slot> OriginQueue::Pop(TimePoint now) {
  if (Throttled(now) || active_ >= limits_.connections) return std::nullopt;
  const auto priority = NextPriority();
  if (!priority) return std::nullopt;
  Slot slot = TakeFrom(*priority);
  slot.epoch = epoch_;
  slot.probe = held_;
  if (held_) probing_ = true;
  ++active_;
  if (!IsDemand(slot.priority)) ++active_ahead_;
  return slot;
}

std::optional<Priority> OriginQueue::NextPriority() const {
  const size_t for_ahead =
      limits_.connections > kKeptForDemand ? limits_.connections - kKeptForDemand : 1;
  for (const Priority p : {Priority::kDemand, Priority::kReadAhead, Priority::kBackground}) {
    if (lines_[static_cast<size_t>(p)].empty()) continue;
    if (IsDemand(p) || active_ahead_ < for_ahead) return p;
  }
  return std::nullopt;
}

OriginQueue::Slot OriginQueue::TakeFrom(Priority priority) {
  auto& line = Line(priority);
  const auto first = line.begin();
  Slot slot;
  slot.id = first->second;
  slot.priority = priority;
  line.erase(first);
  where_.erase(slot.id);
  return slot;
}

bool OriginQueue::Remove(uint64_t id) {
  const auto found = where_.find(id);
  if (found == where_.end()) return false;
  Line(found->second.priority).erase(found->second.sequence);
  where_.erase(found);
  return true;
}

bool OriginQueue::Raise(uint64_t id, Priority priority) {
  const auto found = where_.find(id);
  if (found == where_.end() || priority >= found->second.priority) return false;
  Line(found->second.priority).erase(found->second.sequence);
  found->second.priority = priority;
  // It keeps its age: it goes before demands that came later.
  Line(priority).emplace(found->second.sequence, id);
  return true;
}

void OriginQueue::OnAnswer(const Slot& slot, int status, std::optional<Duration> retry_after,
                           TimePoint now, Random& random) {
  const bool too_many = status == 429 || (status == 503 && retry_after.has_value());
  const bool current = slot.epoch == epoch_;
  if (too_many && current) {
    Hold(retry_after, now, random);
  } else if (too_many) {
    // Asked before the hold began: the burst's other answers are no new step, but a longer wish is
    // heard.
    if (held_ && retry_after) {
      held_until_ = std::max(held_until_, now + std::min(*retry_after, limits_.max_throttle));
    }
  } else if (current) {
    held_ = false;
    probing_ = false;
    steps_ = 0;
  }
}

void OriginQueue::Hold(std::optional<Duration> retry_after, TimePoint now, Random& random) {
  held_until_ = now + HoldTime(retry_after, random);
  held_ = true;
  probing_ = false;
  ++epoch_;
  ++steps_;
}

Duration OriginQueue::HoldTime(std::optional<Duration> retry_after, Random& random) const {
  if (retry_after && *retry_after > Duration::zero()) {
    return std::min(*retry_after, limits_.max_throttle);
  }
  Duration hold = kFirstHold;
  for (int i = 0; i < steps_ && hold < kMaxOwnHold; ++i) hold *= 2;
  hold = std::min({hold, kMaxOwnHold, limits_.max_throttle});
  // Half of it by chance, so that many nodes do not come back at one moment.
  const double share = 0.5 + 0.5 * random.NextDouble();
  return Duration(static_cast<Duration::rep>(static_cast<double>(hold.count()) * share));
}

void OriginQueue::Release(const Slot& slot) {
  DARTFS_CHECK(active_ > 0);
  --active_;
  if (!IsDemand(slot.priority)) --active_ahead_;
  if (slot.probe && slot.epoch == epoch_) probing_ = false;
}

std::vector<uint64_t> OriginQueue::TakeRefused(TimePoint now) {
  std::vector<uint64_t> refused;
  if (!held_ || now >= held_until_) return refused;
  for (const Priority p : {Priority::kReadAhead, Priority::kBackground}) {
    for (const auto& [sequence, id] : Line(p)) {
      refused.push_back(id);
      where_.erase(id);
    }
    Line(p).clear();
  }
  return refused;
}

bool OriginQueue::Throttled(TimePoint now) const {
  return held_ && (probing_ || now < held_until_);
}

Duration OriginQueue::ThrottleLeft(TimePoint now) const {
  return held_ && now < held_until_ ? held_until_ - now : Duration::zero();
}

std::optional<TimePoint> OriginQueue::WakeAt(TimePoint now) const {
  if (!held_ || probing_ || now >= held_until_ || where_.empty()) return std::nullopt;
  return held_until_;
}

}  // namespace dartfs::core
