#include "core/io/origin_table.h"

#include <algorithm>
#include <utility>

namespace dartfs::core {

namespace {
constexpr Duration kBetweenLines = std::chrono::seconds(30);
}  // namespace

OriginTable::OriginTable(const OriginQueue::Limits& limits, size_t max_origins)
    : limits_(limits), max_origins_(std::max<size_t>(max_origins, 1)) {}

OriginTable::Origin* OriginTable::Find(const std::string& authority) {
  const auto found = origins_.find(authority);
  return found == origins_.end() ? nullptr : found->second.get();
}

OriginTable::Origin* OriginTable::FindOrAdd(const std::string& authority, TimePoint now) {
  if (Origin* known = Find(authority)) return known;
  if (origins_.size() >= max_origins_ && !MakeRoom(now)) return nullptr;
  auto origin = std::make_unique<Origin>(limits_);
  origin->status.authority = authority;
  origin->last_used = now;
  Origin* added = origin.get();
  origins_.emplace(authority, std::move(origin));
  return added;
}

// Walks the whole table, but only when an origin comes that is not in it while it is full.
bool OriginTable::MakeRoom(TimePoint now) {
  Origin* oldest = nullptr;
  const auto rank = [now](const Origin& o) {
    return std::pair(o.queue.ThrottleLeft(now) > Duration::zero(), o.last_used);
  };
  for (const auto& [authority, origin] : origins_) {
    if (!origin->queue.idle()) continue;
    if (oldest == nullptr || rank(*origin) < rank(*oldest)) oldest = origin.get();
  }
  if (oldest == nullptr) return false;
  Forget(*oldest);
  return true;
}

void OriginTable::Forget(Origin& origin) {
  SetWake(origin, std::nullopt);
  if (origin.touched) std::erase(touched_, &origin);
  origins_.erase(std::string(origin.status.authority));
}

void OriginTable::Touch(Origin& origin, TimePoint now) {
  origin.last_used = now;
  if (origin.touched) return;
  origin.touched = true;
  touched_.push_back(&origin);
}

void OriginTable::TakeReady(TimePoint now, std::vector<Ready>* ready,
                            std::vector<uint64_t>* refused) {
  while (!sleepers_.empty() && sleepers_.begin()->first <= now) {
    Origin& origin = *sleepers_.begin()->second;
    SetWake(origin, std::nullopt);
    Touch(origin, now);
  }
  for (Origin* origin : touched_) {
    origin->touched = false;
    for (const uint64_t id : origin->queue.TakeRefused(now)) {
      ++origin->status.refused;
      refused->push_back(id);
    }
    while (const auto slot = origin->queue.Pop(now)) ready->push_back({origin, *slot});
    SetWake(*origin, origin->queue.WakeAt(now));
  }
  touched_.clear();
}

std::optional<TimePoint> OriginTable::WakeAt() const {
  if (sleepers_.empty()) return std::nullopt;
  return sleepers_.begin()->first;
}

void OriginTable::SetWake(Origin& origin, std::optional<TimePoint> when) {
  if (origin.wake_at) sleepers_.erase({*origin.wake_at, &origin});
  origin.wake_at = when;
  if (when) sleepers_.insert({*when, &origin});
}

bool OriginTable::RecordError(Origin& origin, std::string text, TimePoint now) {
  ++origin.status.failures;
  origin.status.last_error = std::move(text);
  origin.last_error_at = now;
  if (origin.in_trouble || (origin.told_at && now - *origin.told_at < kBetweenLines)) return false;
  origin.in_trouble = true;
  origin.told_at = now;
  return true;
}

bool OriginTable::RecordRecovery(Origin& origin) { return std::exchange(origin.in_trouble, false); }

std::vector<OriginStatus> OriginTable::Snapshot(TimePoint now) const {
  std::vector<OriginStatus> all;
  all.reserve(origins_.size());
  for (const auto& [authority, origin] : origins_) {
    OriginStatus status = origin->status;
    status.active = static_cast<uint32_t>(origin->queue.active());
    status.queued = static_cast<uint32_t>(origin->queue.queued());
    status.throttled_ms = ToMillis(origin->queue.ThrottleLeft(now));
    if (!status.last_error.empty())
      status.last_error_age_ms = ToMillis(now - origin->last_error_at);
    all.push_back(std::move(status));
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.authority < b.authority; });
  return all;
}

}  // namespace dartfs::core
