#include "p2p/peer_table.h"

#include <algorithm>

namespace dartfs::p2p {

TokenBucket& PeerTable::BucketOf(std::string_view origin, core::TimePoint now) {
  auto found = last_resort_.find(origin);
  if (found == last_resort_.end()) {
    // Which one goes makes little difference: what it would have refused, it allows once more.
    if (last_resort_.size() >= options_.max_origins) last_resort_.erase(last_resort_.begin());
    found = last_resort_.emplace(origin, TokenBucket(options_.last_resort, now)).first;
  }
  return found->second;
}

bool PeerTable::TakeLastResort(std::string_view origin, bool urgent, core::TimePoint now) {
  return BucketOf(origin, now).Take(urgent, now);
}

core::TimePoint PeerTable::LastResortAt(std::string_view origin, bool urgent, core::TimePoint now) {
  return BucketOf(origin, now).NextAt(urgent, now);
}

void PeerTable::Watch(std::string_view peer, PeerWatcher& watcher) {
  watchers_.emplace(peer, &watcher);
}

void PeerTable::Unwatch(std::string_view peer, PeerWatcher& watcher) {
  const auto [begin, end] = watchers_.equal_range(peer);
  const auto found =
      std::find_if(begin, end, [&](const auto& entry) { return entry.second == &watcher; });
  if (found != end) watchers_.erase(found);
}

void PeerTable::OnSilent(std::string_view peer, core::TimePoint now) {
  if (breaker_.IsSuspect(peer)) return;
  breaker_.OnSilent(peer, now);
  std::vector<PeerWatcher*> told;
  const auto [begin, end] = watchers_.equal_range(peer);
  for (auto it = begin; it != end; ++it) told.push_back(it->second);
  for (PeerWatcher* watcher : told) watcher->OnSuspect(peer);
}

}  // namespace dartfs::p2p
