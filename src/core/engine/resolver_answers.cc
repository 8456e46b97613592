// What the resolver makes of a probe's answer, or of none.
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/engine/resolver_impl.h"

namespace dartfs::core {

namespace {

constexpr int kMaxProbes = 3;
constexpr Duration kProbeBackoff = std::chrono::milliseconds(150);

Error TooLargeToSpool(const Identity& identity, bool range_blind) {
  return MakeError(Code::kTooLarge,
                   identity.redacted_url +
                       (range_blind ? ": the origin ignores ranges" : ": it has no version") +
                       ", so it would have to be taken whole, and it is larger than --spool-limit");
}

bool Unreachable(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded ||
         error.code == Code::kTooManyRequests || error.code == Code::kBusy;
}

}  // namespace

void Resolver::State::OnProbe(const EntryPtr& entry, Result<ProbeFacts> answer) {
  const Code code = answer ? Code::kInternal : answer.error().code;
  // Everybody had gone; somebody may have come since.
  bool again = code == Code::kCancelled || code == Code::kRangeBlind;
  {
    MutexLock lock(mu);
    entry->call = nullptr;
    if (code == Code::kStale) again = !std::exchange(entry->unconditional, true);
  }
  if (again) {
    SendProbe(entry);
    return;
  }
  if (code == Code::kRedirected) {
    OnRedirected(entry, std::move(answer).error());
    return;
  }
  if (!answer) {
    OnProbeError(entry, std::move(answer).error());
    return;
  }
  {
    MutexLock lock(mu);
    outages.Clear(entry->identity.authority);
  }
  OnFacts(entry, *answer);
}

void Resolver::State::OnFacts(const EntryPtr& entry, const ProbeFacts& facts) {
  UrlRecord record;
  std::shared_ptr<Object> object;
  bool keep = false;
  Duration ttl{};
  {
    MutexLock lock(mu);
    ttl = Jittered(entry->ttl);
    const bool fixed = entry->immutable || entry->identity.content_addressed();
    if (fixed) ttl = kForEver;
    if (entry->object == nullptr && entry->record) record = *entry->record;
    if (entry->object != nullptr && !entry->object->superseded()) {
      const ObjectMeta& meta = entry->object->facts().meta;
      keep = facts.not_modified || (facts.version.kind != Version::Kind::kUnversioned &&
                                    facts.version.text == meta.version && facts.size == meta.size);
    }
    if (keep) {
      object = entry->object;
      entry->expires = Now() + ttl;
    }
    if (!facts.not_modified) entry->range_blind = facts.range_blind;
  }
  const ForWhom whom = facts.via_redirect ? ForWhom::kFollowers : ForWhom::kAll;
  if (keep) {
    RefreshFields(entry, *object, facts);
    Finish(entry, std::move(object), whom);
    return;
  }
  if (!facts.not_modified) {
    record = UrlRecord();
    record.version = facts.version.kind == Version::Kind::kUnversioned
                         ? UnversionedGeneration(env.random.Next()).text
                         : facts.version.text;
    record.size = facts.size.value_or(0);
    record.etag = facts.etag;
    record.last_modified = facts.last_modified;
    record.content_type = facts.content_type;
    record.range_blind = facts.range_blind;
    record.fields = facts.fields;
  } else if (record.version.empty()) {
    SendProbe(entry);  // what it was asked about has been forgotten meanwhile
    return;
  }
  record.via_redirect = facts.via_redirect;
  if (record.range_blind) OnRangeBlind(entry);
  if (facts.not_modified) record.fields = Refreshed(std::move(record.fields), facts.fields);
  const bool unversioned = facts.version.kind == Version::Kind::kUnversioned &&
                           record.size > env.options.grid.block_size;
  if ((record.range_blind || unversioned) && record.size > env.options.spool_limit_bytes) {
    OnProbeError(entry, TooLargeToSpool(entry->identity, record.range_blind));
    return;
  }
  record.seen_unix = std::chrono::duration_cast<std::chrono::seconds>(
                         env.scheduler.clock().WallNow().time_since_epoch())
                         .count();
  env.store.PutName(NameTable::kUrls, EntryName(entry->identity), EncodeUrlRecord(record));
  Finish(entry, MakeCurrent(entry, std::move(record), ttl), whom);
}

// What a revalidation says to clients, of a version that stays.
void Resolver::State::RefreshFields(const EntryPtr& entry, Object& object,
                                    const ProbeFacts& facts) {
  AnswerFields fresh =
      facts.not_modified ? Refreshed(*object.answer(), facts.fields) : facts.fields;
  std::string bytes;
  {
    MutexLock lock(mu);
    if (!entry->record) return;
    if (entry->record->fields == fresh && entry->record->via_redirect == facts.via_redirect) return;
    entry->record->fields = fresh;
    entry->record->via_redirect = facts.via_redirect;
    bytes = EncodeUrlRecord(*entry->record);
  }
  object.SetAnswer(std::move(fresh));
  env.store.PutName(NameTable::kUrls, EntryName(entry->identity), bytes);
}

// Makes the record's object the entry's current one.
Result<std::shared_ptr<Object>> Resolver::State::MakeCurrent(const EntryPtr& entry,
                                                             UrlRecord record, Duration ttl,
                                                             bool stale) {
  Url url;
  bool immutable = false;
  {
    MutexLock lock(mu);
    url = entry->url;
    immutable = entry->immutable;
  }
  auto made = maker.Make(url, entry->identity, record, immutable);
  std::shared_ptr<Object> old;
  if (made) {
    MutexLock lock(mu);
    if (stale && entry->object != nullptr) return entry->object;  // a probe has said more meanwhile
    old = std::exchange(entry->object, *made);
    entry->record = std::move(record);
    entry->expires = Now() + ttl;
    entry->error.reset();
  }
  // Another size under the same validator is another object too, whatever the origin says.
  if (old != nullptr && made && (old->key() != (*made)->key() || old->size() != (*made)->size())) {
    old->MarkSuperseded();
  }
  return made;
}

void Resolver::State::OnProbeError(const EntryPtr& entry, Error error) {
  const bool unreachable = Unreachable(error);
  bool forget = false;
  ForWhom whom = ForWhom::kAll;
  {
    MutexLock lock(mu);
    entry->error = error;
    entry->error_at = Now();
    entry->error_until = entry->error_at + env.options.error_ttl;
    entry->error_credential = entry->probe_credential;
    entry->error_followed = !entry->probe_passes;
    if (entry->error_followed) whom = ForWhom::kFollowers;
    if (unreachable) {
      const bool no_connection = error.code == Code::kUnavailable && error.http_status == 0;
      // One probe of several that fail is no outage.
      const bool given_up = entry->probes >= kMaxProbes;
      outages.Note(entry->identity.authority, no_connection && given_up, Now());
    } else if (error.code == Code::kNotFound || error.code == Code::kGone) {
      forget = entry->record.has_value();
      entry->object = nullptr;  // new opens fail; open readers and the blocks stay
      entry->record.reset();
    }
  }
  if (forget) {
    env.store.DeleteName(NameTable::kUrls, EntryName(entry->identity));
  }
  if (unreachable && ServeStale(entry)) return;
  if (error.code == Code::kTooManyRequests && !TellThrottled(entry, error)) return;
  if (unreachable && RetryProbe(entry, error)) return;
  if (IsOfCredential(error.code)) {
    RefuseCredential(entry, std::move(error));
    return;
  }
  Finish(entry, std::move(error), whom);
}

// The version the cache knows, which holds for a while without the origin; nullopt where there is
// none.
std::optional<Result<std::shared_ptr<Object>>> Resolver::State::Stale(const EntryPtr& entry) {
  std::optional<UrlRecord> record;
  {
    MutexLock lock(mu);
    if (entry->object != nullptr) {
      if (entry->object->superseded()) return std::nullopt;
      entry->expires = Now() + env.options.unreachable_ttl;
      return Result<std::shared_ptr<Object>>(entry->object);
    }
    record = entry->record;
  }
  if (!record) record = maker.Verified(entry->identity);
  if (!record) return std::nullopt;
  return MakeCurrent(entry, std::move(*record), env.options.unreachable_ttl, /*stale=*/true);
}

bool Resolver::State::ServeStale(const EntryPtr& entry) {
  const auto stale = Stale(entry);
  if (stale) Finish(entry, *stale);
  return stale.has_value();
}

// The origin takes its time, or its connections hang: who asks for what is cached does not wait.
// The probe goes on.
void Resolver::State::OnSlow(const EntryPtr& entry) {
  {
    MutexLock lock(mu);
    entry->slow_timer = kNoTimer;
    if (!entry->probing) return;
  }
  const auto stale = Stale(entry);
  if (!stale) return;
  std::vector<Waiter> waiters;
  {
    MutexLock lock(mu);
    outages.Note(entry->identity.authority, false, Now());
    waiters.swap(entry->waiters);
    if (entry->probing) AwaitSlow(entry);
  }
  Answer(std::move(waiters), *stale);
}

void Resolver::State::AwaitSlow(const EntryPtr& entry) {
  if (entry->slow_timer != kNoTimer) return;
  entry->slow_timer =
      env.scheduler.After(env.options.slow_revalidation, [self = shared_from_this(), entry] {
        self->env.blocking.Post([self, entry] { self->OnSlow(entry); });
      });
}

bool Resolver::State::RetryProbe(const EntryPtr& entry, const Error& error) {
  MutexLock lock(mu);
  const bool throttled = error.code == Code::kTooManyRequests;
  if (stopped || entry->waiters.empty() || (!throttled && entry->probes >= kMaxProbes))
    return false;
  const int doublings = std::min(entry->probes - 1, 4);
  const Duration full = kProbeBackoff * (int64_t{1} << doublings);
  env.scheduler.After(
      std::chrono::duration_cast<Duration>(full * (0.5 + env.random.NextDouble() / 2)),
      [self = shared_from_this(), entry] { self->SendProbe(entry); });
  return true;
}

// Who passes the origin's answers on passes this one on too, and does not wait until the origin may
// be asked again. Whether others do.
bool Resolver::State::TellThrottled(const EntryPtr& entry, const Error& error) {
  std::vector<Waiter> told;
  bool others = false;
  {
    MutexLock lock(mu);
    told = TakeWaiters(*entry, [](const Waiter& waiter) { return waiter.verbatim; });
    others = !entry->waiters.empty();
    if (!others) entry->probing = false;
  }
  Answer(std::move(told), error);
  return others;
}

// 401, 403 and what the policy refuses are answers to one credential; who holds another gets a
// probe with it.
void Resolver::State::RefuseCredential(const EntryPtr& entry, Error error) {
  std::vector<Waiter> refused;
  bool others = false;
  {
    MutexLock lock(mu);
    refused = TakeWaiters(*entry, [&](const Waiter& waiter) {
      return waiter.credential == entry->probe_credential &&
             (entry->probe_passes || !waiter.pass_redirects);
    });
    others = !entry->waiters.empty();
    if (!others) entry->probing = false;
  }
  Answer(std::move(refused), std::move(error));
  if (others) SendProbe(entry);
}

// A Location may be signed for who asked: nobody else is shown it.
void Resolver::State::OnRedirected(const EntryPtr& entry, Error error) {
  std::vector<Waiter> told;
  bool others = false;
  {
    MutexLock lock(mu);
    outages.Clear(entry->identity.authority);
    entry->redirect = error;
    entry->redirect_until = Now() + env.options.error_ttl;
    entry->redirect_credential = entry->probe_credential;
    env.scheduler.At(entry->redirect_until,
                     [self = shared_from_this(), entry] { self->ForgetRedirect(entry); });
    told = TakeWaiters(*entry, [&](const Waiter& waiter) {
      return waiter.pass_redirects && waiter.credential == entry->probe_credential;
    });
    others = !entry->waiters.empty();
    if (!others) entry->probing = false;
  }
  Answer(std::move(told), std::move(error));
  if (others) SendProbe(entry);
}

// A redirect's head may be large, and entries are many.
void Resolver::State::ForgetRedirect(const EntryPtr& entry) {
  MutexLock lock(mu);
  if (stopped || Now() < entry->redirect_until) return;
  entry->redirect.reset();
}

// Tells who would pass the answers on. True: others wait on.
bool Resolver::State::OnRangeBlind(const EntryPtr& entry) {
  auto told = std::make_shared<std::vector<Waiter>>();
  bool others = false;
  {
    MutexLock lock(mu);
    entry->range_blind = true;
    *told = TakeWaiters(*entry, [&](const Waiter& waiter) {
      return waiter.verbatim && (entry->probe_passes || !waiter.pass_redirects);
    });
    others = !entry->waiters.empty();
  }
  if (told->empty()) return others;
  env.blocking.Post([self = shared_from_this(), entry, told] {
    self->Answer(std::move(*told), RangeBlindError(entry->identity));
  });
  return others;
}

void Resolver::State::Finish(const EntryPtr& entry, const Result<std::shared_ptr<Object>>& result,
                             ForWhom whom) {
  std::vector<Waiter> waiters;
  bool others = false;
  {
    MutexLock lock(mu);
    waiters = TakeWaiters(*entry, [whom](const Waiter& waiter) {
      return whom == ForWhom::kAll || !waiter.pass_redirects;
    });
    others = !entry->waiters.empty();
    entry->probing = others;
    entry->BeginRound();
    if (entry->slow_timer != kNoTimer) env.scheduler.Cancel(entry->slow_timer);
    entry->slow_timer = kNoTimer;
  }
  Answer(std::move(waiters), result);
  if (others) SendProbe(entry);
}

void Resolver::State::Answer(std::vector<Waiter> waiters,
                             const Result<std::shared_ptr<Object>>& result) {
  for (Waiter& waiter : waiters) {
    if (waiter.timer != kNoTimer) env.scheduler.Cancel(waiter.timer);
    if (waiter.verbatim && result && (*result)->range_blind()) {
      waiter.done(RangeBlindError((*result)->facts().identity));
    } else {
      waiter.done(result);
    }
  }
}

}  // namespace dartfs::core
