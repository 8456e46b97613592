#include "p2p/breaker.h"

#include <algorithm>
#include <tuple>

namespace dartfs::p2p {

const Breaker::Peer* Breaker::Find(std::string_view peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? nullptr : &found->second;
}

Circuit Breaker::Of(std::string_view peer, core::TimePoint now) const {
  const Peer* known = Find(peer);
  if (known == nullptr || !known->open) return Circuit::kClosed;
  return known->trying || now >= known->until ? Circuit::kHalfOpen : Circuit::kOpen;
}

bool Breaker::Allows(std::string_view peer, core::TimePoint now) const {
  const Peer* known = Find(peer);
  return known == nullptr || !known->open || now >= known->until;
}

bool Breaker::IsSuspect(std::string_view peer) const {
  const Peer* known = Find(peer);
  return known != nullptr && known->suspect;
}

bool Breaker::OnSent(std::string_view peer, core::TimePoint now) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.open || now < found->second.until) return false;
  found->second.trying = true;
  found->second.until = now + options_.cooldown;
  return true;
}

void Breaker::OnAnswered(std::string_view peer, core::TimePoint sent) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  found->second.suspect = false;
  if (!found->second.open || sent >= found->second.opened) peers_.erase(found);
}

void Breaker::Forget(std::string_view peer) {
  if (const auto found = peers_.find(peer); found != peers_.end()) peers_.erase(found);
}

void Breaker::OnSoftFailure(std::string_view peer, core::TimePoint now) {
  Peer& known = Get(peer, now);
  ++known.soft_failures;
  if (known.open) known.unreachable = false;
  if (known.trying || known.soft_failures >= std::max(options_.soft_failures, 1U)) {
    Open(known, now);
  }
}

void Breaker::OnHardFailure(std::string_view peer, core::TimePoint now) {
  Peer& known = Get(peer, now);
  if (!known.open) known.unreachable = true;
  Open(known, now);
}

void Breaker::OnWrongBytes(std::string_view peer, core::TimePoint now) {
  Peer& known = Get(peer, now);
  known.unreachable = false;
  known.wrong_bytes = true;
  Open(known, now);
}

void Breaker::OnSilent(std::string_view peer, core::TimePoint now) {
  Get(peer, now).suspect = true;
}

void Breaker::OnCalledBy(std::string_view peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) return;
  found->second.suspect = false;
  if (!found->second.open && found->second.soft_failures == 0) peers_.erase(found);
}

void Breaker::OnReachable(std::string_view peer, core::TimePoint now) {
  OnCalledBy(peer);
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.open) return;
  Peer& known = found->second;
  if (known.unreachable) {
    peers_.erase(found);
  } else if (!known.wrong_bytes && now >= known.until) {
    known.open = known.trying = false;
    known.soft_failures = std::max(options_.soft_failures, 1U) - 1;
  }
}

void Breaker::OnCancelled(std::string_view peer, bool was_trial) {
  const auto found = peers_.find(peer);
  if (!was_trial || found == peers_.end() || !found->second.trying) return;
  found->second.trying = false;
  found->second.until = core::TimePoint::min();  // somebody else may try at once
}

// What was sent before the circuit opened may fail until long after: that does not lengthen it.
void Breaker::Open(Peer& peer, core::TimePoint now) {
  if (peer.open && !peer.trying && now < peer.until) return;
  peer.open = true;
  peer.opened = now;
  peer.trying = false;
  peer.until = now + options_.cooldown;
}

Breaker::Peer& Breaker::Get(std::string_view peer, core::TimePoint now) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() && peers_.size() >= options_.max_peers) MakeRoom();
  Peer& known = found == peers_.end() ? peers_[std::string(peer)] : found->second;
  known.touched = now;
  return known;
}

void Breaker::MakeRoom() {
  const auto least = [](const auto& a, const auto& b) {
    return std::tie(a.second.open, a.second.until, a.second.touched) <
           std::tie(b.second.open, b.second.until, b.second.touched);
  };
  const auto found = std::min_element(peers_.begin(), peers_.end(), least);
  if (found != peers_.end()) peers_.erase(found);
}

size_t Breaker::CountOpen(core::TimePoint now) const {
  return static_cast<size_t>(std::count_if(peers_.begin(), peers_.end(), [&](const auto& entry) {
    return Of(entry.first, now) != Circuit::kClosed;
  }));
}

}  // namespace dartfs::p2p
