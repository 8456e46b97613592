#include "p2p/route.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "p2p/admission.h"

namespace dartfs::p2p {
namespace {

using core::TimePoint;

// The one that is due and the one asked in its stead or beside it.
constexpr size_t kMaxContenders = 2;
constexpr core::Duration kLeastBusy = std::chrono::milliseconds(10);
// For a dead owner: it may be that who comes next is dead as well, and that takes a second each to
// find out.
constexpr uint32_t kMaxStandIns = 3;
constexpr uint32_t kMaxDead = 3;

}  // namespace

Route::Route(const RouteOptions& options, PeerTable& peers, RouteRequest request, TimePoint now)
    : options_(options),
      peers_(peers),
      request_(std::move(request)),
      begun_(now),
      hedge_delay_(peers.HedgeDelayNow()) {
  MakeCandidates(now);
  if (!candidates_.empty()) peers_.hedge_budget().OnFetch();
}

Route::~Route() {
  while (!contenders_.empty()) {
    const Contender& last = contenders_.back();
    peers_.breaker().OnCancelled(candidates_[last.candidate].peer, last.trial);
    End(contenders_.size() - 1);
  }
}

void Route::MakeCandidates(TimePoint now) {
  if (request_.trust == Trust::kOrigin) return;
  const auto position = request_.tree->PositionOf(options_.self);
  if (position == 0U) {
    origin_is_duty_ = true;
    const bool holders = options_.extensions && request_.trust == Trust::kTree;
    if (holders && request_.new_owner) AddHolders(now);
    return;
  }
  AddUpstreams(now);
  // DART's backup is the grandparent, or the root where there is none.
  if (!options_.extensions && candidates_.size() > kMaxContenders) {
    candidates_.resize(kMaxContenders);
  }
}

// A dead owner's place is taken by the first in rank that can be asked: by us, maybe. Only once all
// upstreams are found unusable, which may be long after they were chosen. One that denies its
// blocks is as good as dead.
bool Route::AddStandIn(TimePoint now) {
  if (!options_.extensions || origin_is_duty_ || stand_ins_ >= kMaxStandIns) return false;
  if (request_.trust == Trust::kOrigin) return false;
  // What one of them has failed to get, the next would.
  const bool one_missed = std::any_of(candidates_.begin(), candidates_.end(),
                                      [](const Candidate& c) { return c.missed && c.stands_in; });
  if (one_missed) return false;
  for (const uint32_t at : request_.tree->Upstreams(options_.self)) {
    if (!IsTrusted(at)) continue;
    const std::string_view id = request_.tree->IdAt(at);
    // One that the request has come through lives: it is not replaced, and the origin no duty.
    if (IsExcluded(id)) return false;
    if (IsUsable(id, now) && !HasMissed(id)) return false;
  }
  ++stand_ins_;
  for (uint32_t at = 0; at < request_.tree->size(); ++at) {
    const std::string_view id = request_.tree->IdAt(at);
    if (id == options_.self) {
      origin_is_duty_ = true;
      return false;
    }
    if (IsExcluded(id)) return false;
    if (!IsUsable(id, now) || HasMissed(id)) continue;
    return Add(at, request_.with_url);
  }
  return false;
}

// Before the origin, one whose connection broke is asked once more: it may be well, or its dying be
// known then for what it is.
bool Route::AllowSecondTry(TimePoint now) {
  if (!options_.extensions) return false;
  for (Candidate& candidate : candidates_) {
    if (!candidate.done || candidate.soft_failures != 1 || !IsUsable(candidate.peer, now)) continue;
    candidate.done = false;
    ++candidate.soft_failures;  // not a third time
    return true;
  }
  return false;
}

bool Route::IsTrusted(uint32_t position) const {
  return request_.trust == Trust::kTree || position == 0;
}

bool Route::IsProven(std::string_view id, TimePoint now) const {
  return !request_.must_be_named || !peers_.IsUnproven(id, now);
}

bool Route::IsUsable(std::string_view id, TimePoint now) const {
  return !peers_.breaker().IsSuspect(id) && peers_.breaker().Allows(id, now) && IsProven(id, now);
}

void Route::AddUpstreams(TimePoint now) {
  for (const uint32_t at : request_.tree->Upstreams(options_.self)) {
    if (!IsTrusted(at)) continue;
    const std::string_view id = request_.tree->IdAt(at);
    if (IsExcluded(id) || !IsProven(id, now)) continue;
    if (peers_.breaker().Allows(id, now)) Add(at, request_.with_url);
  }
}

// They were the owners before, or held what the owner had.
void Route::AddHolders(TimePoint now) {
  const uint32_t end = std::min(request_.tree->size(), options_.holders + 1);
  for (uint32_t at = 1; at < end; ++at) {
    const std::string_view id = request_.tree->IdAt(at);
    if (!IsExcluded(id) && IsProven(id, now)) Add(at, /*with_url=*/false);
  }
}

// False: it is one of them.
bool Route::Add(uint32_t position, bool with_url) {
  const Member& member = request_.tree->MemberAt(position);
  const bool known = std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& c) {
    return c.peer == member.id || c.addr == member.addr;
  });
  if (known) return false;
  Candidate candidate;
  candidate.peer = member.id;
  candidate.addr = member.addr;
  candidate.with_url = with_url;
  candidate.stands_in = stand_ins_ > 0;
  candidate.is_root = position == 0 || candidate.stands_in;
  candidates_.push_back(std::move(candidate));
  return true;
}

// Whether the root has, while the tree is believed.
bool Route::HasMissed(std::string_view id) const {
  if (request_.trust != Trust::kTree) return false;
  return std::any_of(candidates_.begin(), candidates_.end(), [id](const Candidate& c) {
    return c.missed && c.is_root && !c.stands_in && c.peer == id;
  });
}

bool Route::IsExcluded(std::string_view id) const {
  return id == options_.self ||
         std::find(request_.path.begin(), request_.path.end(), id) != request_.path.end();
}

std::optional<RouteStep> Route::Next(TimePoint now) {
  if (!cancelled_.empty()) {
    RouteStep step;
    step.kind = RouteStep::Kind::kCancel;
    step.attempt = cancelled_.back();
    cancelled_.pop_back();
    return step;
  }
  if (over_) return std::nullopt;
  NoteSilence(now);
  if (origin_failed_) {
    OnOriginFailure();
    if (over_) return Next(now);
  }
  if (origin_attempt_) return std::nullopt;
  if (Speaking() > 0) return Hedge(now);
  if (options_.extensions && !heard_ && now - begun_ >= options_.peers_limit) origin_next_ = true;
  if (!origin_next_) {
    auto best = BestNext(now);
    if (!best && (AddStandIn(now) || AllowSecondTry(now))) best = BestNext(now);
    if (best) return Ask(*best, /*hedge=*/false, now);
    if (BusyUntil(now)) return std::nullopt;
  }
  return AskOrigin(now);
}

// For the first byte: less than ours gives us, so that of a chain the one below a stalled node is
// the first to learn of it, and nobody further down charges a node that is well.
core::Duration Route::PatienceFrom(TimePoint now) const {
  if (request_.deadline == core::kNoDeadline) return options_.silence;
  const core::Duration left = request_.deadline - kHopAllowance - now;
  return left < kHopAllowance ? options_.silence : std::min(left, options_.silence);
}

// When it owes bytes if none comes until then. Of one that has become suspect meanwhile it does at
// once where it has sent nothing at all.
TimePoint Route::SilentAt(const Contender& contender) const {
  const TimePoint limit = contender.begun + options_.block_limit;
  if (!peers_.breaker().IsSuspect(candidates_[contender.candidate].peer)) {
    const auto silence = contender.bytes ? options_.silence : contender.patience;
    return std::min(limit, contender.heard + silence);
  }
  const bool some_time = contender.bytes || contender.was_suspect;
  return std::min(limit,
                  contender.heard + (some_time ? options_.suspects_silence : core::Duration{}));
}

bool Route::IsBeyondLimit(const Contender& contender, TimePoint now) const {
  return now - contender.begun >= options_.block_limit;
}

void Route::NoteSilence(TimePoint now) {
  for (Contender& contender : contenders_) {
    if (contender.silent || now < SilentAt(contender)) continue;
    contender.silent = true;
    const std::string& peer = candidates_[contender.candidate].peer;
    // Progress is never charged, however slow.
    if (!options_.extensions || IsBeyondLimit(contender, now)) continue;
    const bool all_its_time = !contender.bytes && now - contender.begun >= options_.silence;
    if (all_its_time) peers_.breaker().OnSoftFailure(peer, now);
    peers_.OnSilent(peer, now);
  }
}

size_t Route::Speaking() const {
  return static_cast<size_t>(std::count_if(contenders_.begin(), contenders_.end(),
                                           [](const Contender& c) { return !c.silent; }));
}

bool Route::IsAsked(size_t candidate) const {
  return std::any_of(contenders_.begin(), contenders_.end(),
                     [candidate](const Contender& c) { return c.candidate == candidate; });
}

bool Route::MayAsk(const Candidate& candidate, TimePoint now) const {
  return !candidate.done && candidate.busy_until <= now &&
         peers_.breaker().Allows(candidate.peer, now);
}

// The nearest that may be asked. One that is suspect is never the first to be asked, and not before
// any other.
std::optional<size_t> Route::Best(bool first, TimePoint now) const {
  std::optional<size_t> suspect;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (IsAsked(i) || !MayAsk(candidates_[i], now)) continue;
    if (!peers_.breaker().IsSuspect(candidates_[i].peer)) return i;
    if (!suspect) suspect = i;
  }
  return first ? std::nullopt : suspect;
}

std::optional<size_t> Route::BestNext(TimePoint now) const {
  return Best(contenders_.empty() && counts_.failovers == 0, now);
}

std::optional<TimePoint> Route::HedgeAt() const {
  if (!hedge_delay_ || hedge_denied_ || contenders_.size() != 1 || contenders_[0].silent) {
    return std::nullopt;
  }
  return contenders_[0].begun + *hedge_delay_;
}

std::optional<RouteStep> Route::Hedge(TimePoint now) {
  const auto at = HedgeAt();
  if (!at || now < *at) return std::nullopt;
  const auto backup = Best(/*first=*/false, now);
  const std::string& slow = candidates_[contenders_[0].candidate].peer;
  const bool may = backup && (peers_.hedge_budget().Take() ||
                              (options_.extensions && peers_.TakeTrial(slow, *hedge_delay_, now)));
  // One chance a block: what is denied now would only be late afterwards.
  if (!may) {
    hedge_denied_ = true;
    return std::nullopt;
  }
  ++counts_.hedges;
  return Ask(*backup, /*hedge=*/true, now);
}

RouteStep Route::Ask(size_t candidate, bool hedge, TimePoint now) {
  const Candidate& chosen = candidates_[candidate];
  if (contenders_.size() >= kMaxContenders) {
    // It was silent for its time, and is not asked again: of three such there would be no end.
    candidates_[contenders_.front().candidate].done = true;
    GiveUp(0);
  }
  Contender contender;
  contender.attempt = next_attempt_++;
  contender.candidate = candidate;
  contender.begun = now;
  contender.heard = now;
  contender.patience = PatienceFrom(now);
  contender.hedge = hedge;
  contender.was_suspect = peers_.breaker().IsSuspect(chosen.peer);
  contender.trial = peers_.breaker().OnSent(chosen.peer, now);
  contenders_.push_back(contender);
  peers_.Watch(chosen.peer, *this, now);
  RouteStep step;
  step.attempt = contender.attempt;
  step.peer = chosen.peer;
  step.addr = chosen.addr;
  step.with_url = chosen.with_url;
  step.patience = contender.patience;
  return step;
}

// When the first of those that are busy may be asked again; nullopt where none is, or where they
// have been waited for long enough.
std::optional<TimePoint> Route::BusyUntil(TimePoint now) const {
  const TimePoint limit = begun_ + options_.peers_limit;
  if (now >= limit) return std::nullopt;
  std::optional<TimePoint> earliest;
  for (const Candidate& candidate : candidates_) {
    if (candidate.done || candidate.busy_until <= now) continue;
    earliest = std::min(earliest.value_or(limit), candidate.busy_until);
  }
  return earliest;
}

std::optional<RouteStep> Route::AskOrigin(TimePoint now) {
  const bool last_resort = options_.extensions && !origin_is_duty_;
  if (last_resort && !peers_.TakeLastResort(request_.origin, request_.urgent, now)) {
    return std::nullopt;
  }
  origin_attempt_ = next_attempt_++;
  RouteStep step;
  step.kind = RouteStep::Kind::kAskOrigin;
  step.attempt = *origin_attempt_;
  return step;
}

TimePoint Route::wake_at(TimePoint now) const {
  if (over_) return core::kNoDeadline;
  if (!cancelled_.empty()) return now;
  TimePoint at = core::kNoDeadline;
  for (const Contender& contender : contenders_) {
    if (!contender.silent) at = std::min(at, SilentAt(contender));
  }
  if (origin_attempt_) return at;
  if (const auto hedge = HedgeAt()) at = std::min(at, *hedge);
  if (Speaking() > 0) return at;
  if (!origin_next_) {
    if (BestNext(now)) return now;
    if (const auto busy = BusyUntil(now)) return std::min(at, *busy);
  }
  if (!options_.extensions || origin_is_duty_) return now;
  return std::min(at, peers_.LastResortAt(request_.origin, request_.urgent, now));
}

std::optional<size_t> Route::Find(AttemptId attempt) const {
  const auto found = std::find_if(contenders_.begin(), contenders_.end(),
                                  [attempt](const Contender& c) { return c.attempt == attempt; });
  if (found == contenders_.end()) return std::nullopt;
  return static_cast<size_t>(found - contenders_.begin());
}

void Route::End(size_t contender) {
  const Contender& ended = contenders_[contender];
  peers_.Unwatch(candidates_[ended.candidate].peer, *this);
  contenders_.erase(contenders_.begin() + static_cast<ptrdiff_t>(contender));
}

void Route::GiveUp(size_t contender) {
  const Contender& given_up = contenders_[contender];
  cancelled_.push_back(given_up.attempt);
  peers_.breaker().OnCancelled(candidates_[given_up.candidate].peer, given_up.trial);
  End(contender);
}

void Route::OnBytes(AttemptId attempt, TimePoint now) {
  const auto found = Find(attempt);
  if (!found) return;
  Contender& contender = contenders_[*found];
  const std::string& peer = candidates_[contender.candidate].peer;
  contender.heard = now;
  peers_.OnHeard(peer, now);
  contender.bytes = true;
  heard_ = true;
  contender.silent = IsBeyondLimit(contender, now);
}

// One that answers so just before our patience ends is at work on it, and will know sooner than
// those above it what is wrong with them: it is asked once more at once.
void Route::OnBusy(Candidate& candidate, const Contender& was, core::Duration after,
                   TimePoint now) {
  candidate.done = !options_.extensions;
  candidate.busy_until = now + std::clamp(after, kLeastBusy, options_.peers_limit);
  const bool late = now - was.begun >= was.patience - kHopAllowance;
  if (late && !std::exchange(candidate.ran_late, true)) candidate.busy_until = now;
}

// A peer that is sending meanwhile may be done with it yet.
void Route::OnOriginFailure() {
  origin_attempt_.reset();
  if (Speaking() > 0) return;
  over_ = true;
  while (!contenders_.empty()) GiveUp(contenders_.size() - 1);
}

// Who could have fetched it on our behalf has failed to, and all above it may have by now. Were
// they asked one after another, each of them would ask all above itself once more: twice as often
// with each level. So the root alone is left.
void Route::OnMiss(Candidate& candidate) {
  candidate.missed = candidate.with_url;
  if (options_.extensions && candidate.with_url) LeaveTheRoot();
}

// Each takes a second to find out, maybe, and a peer may have invented them: there is an end to it.
void Route::OnDead() {
  if (++dead_ >= kMaxDead && options_.extensions) LeaveTheRoot();
}

// And those that were busy.
void Route::LeaveTheRoot() {
  for (Candidate& other : candidates_) {
    const bool was_busy = other.busy_until != TimePoint{};
    if (other.with_url && !other.is_root && !was_busy) other.done = true;
  }
}

void Route::OnFailure(AttemptId attempt, PeerFailure failure, TimePoint now) {
  if (attempt == origin_attempt_) {
    origin_failed_ = true;
    return OnOriginFailure();
  }
  const auto found = Find(attempt);
  if (!found) return;
  const Contender contender = contenders_[*found];
  Candidate& candidate = candidates_[contender.candidate];
  End(*found);
  ++counts_.failovers;
  candidate.done = true;
  Breaker& breaker = peers_.breaker();
  switch (failure.kind) {
    case PeerFailure::Kind::kMiss:
      breaker.OnAnswered(candidate.peer, contender.begun);
      OnMiss(candidate);
      return;
    case PeerFailure::Kind::kBusy:
      breaker.OnAnswered(candidate.peer, contender.begun);
      OnBusy(candidate, contender, failure.retry_after, now);
      return;
    case PeerFailure::Kind::kRefused:
      breaker.OnAnswered(candidate.peer, contender.begun);
      origin_next_ = true;  // any other would ask with the same credential
      return;
    case PeerFailure::Kind::kSoft:
      ++candidate.soft_failures;
      breaker.OnSoftFailure(candidate.peer, now);
      return;
    case PeerFailure::Kind::kUnproven:
      breaker.OnAnswered(candidate.peer, contender.begun);
      peers_.OnUnproven(candidate.peer, now);
      return;
    case PeerFailure::Kind::kWrong:
      breaker.OnWrongBytes(candidate.peer, now);
      return;
    case PeerFailure::Kind::kHard:
      breaker.OnHardFailure(candidate.peer, now);
      OnDead();
      return;
  }
}

void Route::OnServed(AttemptId by, TimePoint now) {
  if (over_) return;
  over_ = true;
  const auto found = Find(by);
  if (found) {
    const Contender winner = contenders_[*found];
    peers_.latencies().Add(now - winner.begun);
    peers_.breaker().OnAnswered(candidates_[winner.candidate].peer, winner.begun);
    if (counts_.hedges > 0) ++(winner.hedge ? counts_.backup_won : counts_.primary_won);
    End(*found);
    for (const Contender& loser : contenders_) {
      const bool mute = !loser.bytes || (hedge_delay_ && now - loser.heard >= *hedge_delay_);
      const std::string& peer = candidates_[loser.candidate].peer;
      const bool lost_mute = winner.hedge && mute && !loser.silent;
      // One that is sending others their blocks is just slow with this.
      const bool quiet = hedge_delay_ && peers_.IsQuiet(peer, *hedge_delay_, now);
      if (lost_mute && quiet && options_.extensions) peers_.OnSilent(peer, now);
    }
  }
  while (!contenders_.empty()) GiveUp(contenders_.size() - 1);
  if (origin_attempt_ && by != *origin_attempt_) cancelled_.push_back(*origin_attempt_);
}

// Whether another is to be asked, and when, has changed: outside the hedges' budget.
void Route::OnSuspect(std::string_view peer) {
  const bool waits = std::any_of(contenders_.begin(), contenders_.end(), [&](const Contender& c) {
    return !c.silent && candidates_[c.candidate].peer == peer;
  });
  if (waits && !over_ && request_.changed) request_.changed();
}

std::vector<std::string> Route::sources() const {
  std::vector<std::string> peers;
  for (const Contender& contender : contenders_)
    peers.push_back(candidates_[contender.candidate].peer);
  return peers;
}

}  // namespace dartfs::p2p
