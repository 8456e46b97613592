// PeerTable: what one node knows of its peers' conduct, shared by all its routes: circuits, who is
// suspect and who waits for whom, latencies, the hedges' budget, the last resort's. Not
// thread-safe; time is an argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "p2p/breaker.h"
#include "p2p/hedge.h"
#include "p2p/token_bucket.h"

namespace dartfs::p2p {

struct PeerTableOptions {
  BreakerOptions breaker;
  HedgeOptions hedge;
  double hedge_ratio = HedgeBudget::kDefaultRatio;
  TokenBucketOptions last_resort;  // of each origin
  size_t max_origins = 1024;
};

// Told when a peer that it has asked becomes suspect.
class PeerWatcher {
 public:
  virtual ~PeerWatcher() = default;
  virtual void OnSuspect(std::string_view peer) = 0;
};

class PeerTable {
 public:
  explicit PeerTable(const PeerTableOptions& options)
      : options_(options), breaker_(options.breaker), budget_(options.hedge_ratio) {}

  Breaker& breaker() { return breaker_; }
  const Breaker& breaker() const { return breaker_; }
  LatencyEstimator& latencies() { return latencies_; }
  HedgeBudget& hedge_budget() { return budget_; }
  std::optional<core::Duration> HedgeDelayNow() const {
    return HedgeDelay(options_.hedge, latencies_);
  }

  // Whether `origin` (its authority) may be asked as the last resort, and if not, when.
  bool TakeLastResort(std::string_view origin, bool urgent, core::TimePoint now);
  core::TimePoint LastResortAt(std::string_view origin, bool urgent, core::TimePoint now);

  // `watcher` has asked `peer` and waits for what is left. Each Watch is undone by one Unwatch.
  void Watch(std::string_view peer, PeerWatcher& watcher, core::TimePoint now);
  void Unwatch(std::string_view peer, PeerWatcher& watcher);
  // A byte of a block has come from it.
  void OnHeard(std::string_view peer, core::TimePoint now);
  // Whether nobody of those who ask it has heard of it for so long.
  bool IsQuiet(std::string_view peer, core::Duration quiet, core::TimePoint now) const;
  size_t asked() const { return asked_.size(); }  // peers that are being asked
  // Whether one hedge against it is allowed beyond the budget: whoever asked it has heard nothing
  // for `quiet`, so it is hardly just slow. One a second and peer, so that a cluster that is slow
  // everywhere is not asked twice for everything.
  bool TakeTrial(std::string_view peer, core::Duration quiet, core::TimePoint now);
  // Peers that do not name the object that they answer with, as DART's: for objects that must be
  // named (IDENTITY.md, Peers) they need not be asked for some minutes.
  void OnUnproven(std::string_view peer, core::TimePoint now);
  bool IsUnproven(std::string_view peer, core::TimePoint now) const;
  // The peer owes bytes: it becomes suspect, and whoever else waits for it is told.
  void OnSilent(std::string_view peer, core::TimePoint now);

 private:
  // Of a peer that is being asked.
  struct Asked {
    std::vector<PeerWatcher*> watchers;
    core::TimePoint heard{};  // or first asked
    core::TimePoint trial_until{};
  };

  TokenBucket& BucketOf(std::string_view origin, core::TimePoint now);

  const PeerTableOptions options_;
  Breaker breaker_;
  LatencyEstimator latencies_;
  HedgeBudget budget_;
  std::map<std::string, TokenBucket, std::less<>> last_resort_;
  std::map<std::string, Asked, std::less<>> asked_;
  StringMap<core::TimePoint> unproven_;  // until
};

}  // namespace dartfs::p2p
