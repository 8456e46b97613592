#include "p2p/peer_table.h"

#include <algorithm>
#include <chrono>

namespace dartfs::p2p {
namespace {

constexpr core::Duration kBetweenTrials = std::chrono::seconds(1);
constexpr core::Duration kUnproven = std::chrono::minutes(5);

}  // namespace

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

void PeerTable::Watch(std::string_view peer, PeerWatcher& watcher, core::TimePoint now) {
  auto found = asked_.find(peer);
  if (found == asked_.end()) {
    found = asked_.emplace(peer, Asked{}).first;
    found->second.heard = now;
  }
  found->second.watchers.push_back(&watcher);
}

void PeerTable::Unwatch(std::string_view peer, PeerWatcher& watcher) {
  const auto found = asked_.find(peer);
  if (found == asked_.end()) return;
  auto& watchers = found->second.watchers;
  const auto mine = std::find(watchers.begin(), watchers.end(), &watcher);
  if (mine != watchers.end()) watchers.erase(mine);
  if (watchers.empty()) asked_.erase(found);
}

void PeerTable::OnHeard(std::string_view peer, core::TimePoint now) {
  const auto found = asked_.find(peer);
  if (found != asked_.end()) found->second.heard = now;
  breaker_.OnBytes(peer);
}

bool PeerTable::IsQuiet(std::string_view peer, core::Duration quiet, core::TimePoint now) const {
  const auto found = asked_.find(peer);
  return found == asked_.end() || now - found->second.heard >= quiet;
}

bool PeerTable::TakeTrial(std::string_view peer, core::Duration quiet, core::TimePoint now) {
  const auto found = asked_.find(peer);
  if (found == asked_.end()) return false;
  Asked& asked = found->second;
  if (now - asked.heard < quiet || now < asked.trial_until) return false;
  asked.trial_until = now + kBetweenTrials;
  return true;
}

void PeerTable::OnUnproven(std::string_view peer, core::TimePoint now) {
  if (unproven_.size() >= options_.breaker.max_peers) unproven_.erase(unproven_.begin());
  unproven_.insert_or_assign(std::string(peer), now + kUnproven);
}

bool PeerTable::IsUnproven(std::string_view peer, core::TimePoint now) const {
  const auto found = unproven_.find(peer);
  return found != unproven_.end() && now < found->second;
}

void PeerTable::OnSilent(std::string_view peer, core::TimePoint now) {
  if (breaker_.IsSuspect(peer)) return;
  breaker_.OnSilent(peer, now);
  const auto found = asked_.find(peer);
  if (found == asked_.end()) return;
  const std::vector<PeerWatcher*> told = found->second.watchers;
  for (PeerWatcher* watcher : told) watcher->OnSuspect(peer);
}

}  // namespace dartfs::p2p
