// Breaker: which peers are not to be asked now, by what they did last. Not thread-safe; time is an
// argument.
//
// A peer's circuit is closed, open (nothing goes to it) or, once the cool-down is over, half-open:
// a single request is let through and decides. A peer whose circuit is closed may be suspect
// beside: nothing new goes to it first, until it answers something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/time.h"
#include "p2p/string_hash.h"

namespace dartfs::p2p {

struct BreakerOptions {
  uint32_t soft_failures = 5;  // so many in a row open the circuit; at least 1
  core::Duration cooldown = std::chrono::seconds(5);
  size_t max_peers = 16384;  // remembered; beyond it the circuit that opens again first goes
};

enum class Circuit : uint8_t { kClosed, kOpen, kHalfOpen };

class Breaker {
 public:
  explicit Breaker(BreakerOptions options) : options_(options) {}

  Circuit Of(std::string_view peer, core::TimePoint now) const;
  // Whether a request may be sent: closed, or half-open and nobody else tries. Takes nothing.
  bool Allows(std::string_view peer, core::TimePoint now) const;
  bool IsSuspect(std::string_view peer) const;

  // A request goes out. True: of a half-open circuit it is the trial; one that never tells its
  // outcome makes room for another after a cool-down.
  bool OnSent(std::string_view peer, core::TimePoint now);
  // A block, or that it has none: closed, and no suspect. The answer to a request that was `sent`
  // before the circuit opened leaves it as it is.
  void OnAnswered(std::string_view peer, core::TimePoint sent);
  // A byte of a block, which may be cut short still or be wrong: no suspect, no more.
  void OnBytes(std::string_view peer) { OnCalledBy(peer); }
  // A time-out, a 5xx of its own, a body cut short.
  void OnSoftFailure(std::string_view peer, core::TimePoint now);
  // No connection: opens at once.
  void OnHardFailure(std::string_view peer, core::TimePoint now);
  // Bytes that do not match their checksums: opens at once.
  void OnWrongBytes(std::string_view peer, core::TimePoint now);
  // It has answered what was no request for a block: no suspect, and closed if all that was wrong
  // was that there was no connection. Where it had failed otherwise it is closed after the
  // cool-down, on probation: the next failure opens it. What it sent wrong bytes for stays.
  void OnReachable(std::string_view peer, core::TimePoint now);
  // It has called us: no suspect. Whether we can connect to it is another matter.
  void OnCalledBy(std::string_view peer);
  // It owed bytes and sent none, or lost a race without one. Charges nothing.
  void OnSilent(std::string_view peer, core::TimePoint now);
  // The request was given up for reasons of our own: as if it had not been sent. Of the trial only:
  // somebody else may try at once.
  void OnCancelled(std::string_view peer, bool was_trial);
  // The peer is a member no more.
  void Forget(std::string_view peer);

  size_t remembered() const { return peers_.size(); }
  size_t CountOpen(core::TimePoint now) const;

 private:
  struct Peer {
    uint32_t soft_failures = 0;
    bool open = false;
    bool trying = false;
    bool suspect = false;
    bool unreachable = false;  // why it is open
    bool wrong_bytes = false;  // or this
    core::TimePoint opened{};
    core::TimePoint until{};  // of the cool-down, or of the trial
    core::TimePoint touched{};
  };

  const Peer* Find(std::string_view peer) const;
  Peer& Get(std::string_view peer, core::TimePoint now);
  void Open(Peer& peer, core::TimePoint now);
  void MakeRoom();

  const BreakerOptions options_;
  StringMap<Peer> peers_;
};

}  // namespace dartfs::p2p
