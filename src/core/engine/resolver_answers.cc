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
  {
    MutexLock lock(mu);
    entry->call = nullptr;
  }
  if (!answer && answer.error().code == Code::kCancelled) {
    SendProbe(entry);  // everybody had gone; somebody may have come since
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
    if (keep) entry->expires = Now() + ttl;
  }
  if (keep) {
    std::shared_ptr<Object> object;
    {
      MutexLock lock(mu);
      object = entry->object;
    }
    Finish(entry, std::move(object));
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
  } else if (record.version.empty()) {
    OnProbeError(entry,
                 MakeError(Code::kBadResponse, "GET " + entry->identity.redacted_url +
                                                   ": 304 to a request without a condition"));
    return;
  }
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
  Finish(entry, MakeCurrent(entry, std::move(record), ttl));
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
  {
    MutexLock lock(mu);
    entry->error = error;
    entry->error_at = Now();
    entry->error_until = entry->error_at + env.options.error_ttl;
    entry->error_credential = entry->probe_credential;
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
  if (unreachable && (ServeStale(entry) || RetryProbe(entry, error))) return;
  if (error.code == Code::kUnauthorized || error.code == Code::kForbidden) {
    RefuseCredential(entry, std::move(error));
    return;
  }
  Finish(entry, std::move(error));
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

// 401 and 403 are answers to one credential; who holds another gets a probe with it.
void Resolver::State::RefuseCredential(const EntryPtr& entry, Error error) {
  std::vector<Waiter> refused;
  bool others = false;
  {
    MutexLock lock(mu);
    auto& waiters = entry->waiters;
    const auto split = std::stable_partition(waiters.begin(), waiters.end(), [&](const Waiter& w) {
      return w.credential != entry->probe_credential;
    });
    refused.assign(std::make_move_iterator(split), std::make_move_iterator(waiters.end()));
    waiters.erase(split, waiters.end());
    others = !waiters.empty();
    if (!others) entry->probing = false;
  }
  Answer(std::move(refused), std::move(error));
  if (others) SendProbe(entry);
}

void Resolver::State::Finish(const EntryPtr& entry, const Result<std::shared_ptr<Object>>& result) {
  std::vector<Waiter> waiters;
  {
    MutexLock lock(mu);
    entry->probing = false;
    entry->probes = 0;
    if (entry->slow_timer != kNoTimer) env.scheduler.Cancel(entry->slow_timer);
    entry->slow_timer = kNoTimer;
    waiters.swap(entry->waiters);
  }
  Answer(std::move(waiters), result);
}

void Resolver::State::Answer(std::vector<Waiter> waiters,
                             const Result<std::shared_ptr<Object>>& result) {
  for (Waiter& waiter : waiters) {
    if (waiter.timer != kNoTimer) env.scheduler.Cancel(waiter.timer);
    waiter.done(result);
  }
}

}  // namespace dartfs::core
