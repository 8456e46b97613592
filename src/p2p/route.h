// Route: the decisions of one flight: whom to ask for its block, when to ask a second one, when to
// give up on whom, when to go to the origin (spec/engine.md 3.8, WIRE.md section 7). Pure: the
// owner does what Next says and tells what came of it. Not thread-safe.
//
// No cycle of flights that wait for one another can arise among nodes that know the same weights,
// whatever their views: a flight waits only for peers that stand before its own node in the chunk's
// rank; the rest may be asked for what they hold alone (see admission.h). Where a weight has just
// changed, one may: the first whose patience ends goes on elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/time.h"
#include "p2p/chunk_tree.h"
#include "p2p/peer_table.h"
#include "p2p/route_step.h"

namespace dartfs::p2p {

class Route final : public PeerWatcher {
 public:
  Route(const RouteOptions& options, PeerTable& peers, RouteRequest request, core::TimePoint now);
  ~Route() override;
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;

  // What is to be done now; again until nullopt, after each event and at wake_at.
  std::optional<RouteStep> Next(core::TimePoint now);
  // When Next has something new to say without an event; kNoDeadline: never.
  core::TimePoint wake_at(core::TimePoint now) const;

  // Events. Of an attempt that has been given up, none has an effect.
  void OnBytes(AttemptId attempt, core::TimePoint now);
  void OnFailure(AttemptId attempt, PeerFailure failure, core::TimePoint now);
  // The block is whole: `by` this attempt. The others are given up: Next says so.
  void OnServed(AttemptId by, core::TimePoint now);
  // A reader wants at once what was read ahead.
  void MakeUrgent() { request_.urgent = true; }
  void OnSuspect(std::string_view peer) override;

  bool at_origin() const { return origin_attempt_.has_value(); }
  // Served, or the origin has failed and no peer is sending: whether to begin anew is the owner's
  // affair. To be looked at after each event and each Next.
  bool over() const { return over_; }
  // The peers that are being asked.
  std::vector<std::string> sources() const;

  struct Counts {
    uint32_t hedges = 0, failovers = 0, backup_won = 0, primary_won = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Candidate {
    std::string peer;
    std::string addr;
    bool with_url = true;
    bool is_root = false;  // or stands in for it
    bool stands_in = false;
    core::TimePoint busy_until{};
    bool done = false;  // has answered or failed
    uint32_t soft_failures = 0;
    bool ran_late = false;  // was busy until our patience was over, and is asked again
    bool missed = false;    // has not got the block and will not get it
  };
  struct Contender {
    AttemptId attempt = 0;
    size_t candidate = 0;
    core::TimePoint begun{};
    core::TimePoint heard{};    // of its last byte
    core::Duration patience{};  // for the first
    bool bytes = false;
    bool was_suspect = false;  // already when it was asked
    bool trial = false;        // of a half-open circuit
    bool hedge = false;        // asked beside one that was merely slow
    bool silent = false;       // owes bytes; another has been asked in its stead
  };

  void MakeCandidates(core::TimePoint now);
  void AddUpstreams(core::TimePoint now);
  void AddHolders(core::TimePoint now);
  bool AddStandIn(core::TimePoint now);
  bool AllowSecondTry(core::TimePoint now);
  bool IsTrusted(uint32_t position) const;
  bool IsProven(std::string_view id, core::TimePoint now) const;
  bool IsUsable(std::string_view id, core::TimePoint now) const;
  bool Add(uint32_t position, bool with_url);
  void OnBusy(Candidate& candidate, const Contender& was, core::Duration after,
              core::TimePoint now);
  void OnMiss(Candidate& candidate);
  void OnDead();
  void LeaveTheRoot();
  void OnOriginFailure();
  bool HasMissed(std::string_view id) const;
  bool IsExcluded(std::string_view id) const;
  bool IsAsked(size_t candidate) const;
  bool MayAsk(const Candidate& candidate, core::TimePoint now) const;
  std::optional<size_t> Best(bool first, core::TimePoint now) const;
  std::optional<size_t> BestNext(core::TimePoint now) const;
  core::Duration PatienceFrom(core::TimePoint now) const;
  bool IsBeyondLimit(const Contender& contender, core::TimePoint now) const;
  core::TimePoint SilentAt(const Contender& contender) const;
  void NoteSilence(core::TimePoint now);
  size_t Speaking() const;
  std::optional<core::TimePoint> HedgeAt() const;
  std::optional<core::TimePoint> BusyUntil(core::TimePoint now) const;
  RouteStep Ask(size_t candidate, bool hedge, core::TimePoint now);
  std::optional<RouteStep> Hedge(core::TimePoint now);
  std::optional<RouteStep> AskOrigin(core::TimePoint now);
  void End(size_t contender);
  void GiveUp(size_t contender);
  std::optional<size_t> Find(AttemptId attempt) const;

  const RouteOptions& options_;
  PeerTable& peers_;
  RouteRequest request_;
  const core::TimePoint begun_;
  std::vector<Candidate> candidates_;
  std::vector<Contender> contenders_;
  std::vector<AttemptId> cancelled_;  // not told yet
  std::optional<AttemptId> origin_attempt_;
  bool origin_is_duty_ = false;  // else the last resort
  bool origin_next_ = false;     // peers can do nothing more
  bool origin_failed_ = false;
  bool heard_ = false;  // a byte of a peer
  uint32_t dead_ = 0;   // that were tried
  uint32_t stand_ins_ = 0;
  bool over_ = false;
  std::optional<core::Duration> hedge_delay_;
  bool hedge_denied_ = false;
  AttemptId next_attempt_ = 1;
  Counts counts_;
};

}  // namespace dartfs::p2p
