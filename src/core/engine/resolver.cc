#include "core/engine/resolver.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/engine/object_maker.h"
#include "core/engine/outages.h"
#include "core/engine/probe.h"
#include "core/engine/resolver_entry.h"

namespace dartfs::core {

namespace {

constexpr size_t kMaxEntries = 50'000;  // with their objects a few KB each
constexpr int kMaxProbes = 3;
constexpr Duration kForEver(kNoDeadline.time_since_epoch() / 4);
// A URL whose bytes were not those of its digest is not asked again for so long.
constexpr Duration kWrongDigestPause = std::chrono::seconds(30);
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

struct Resolver::State : std::enable_shared_from_this<Resolver::State> {
  State(FlightEnv& e, HttpClient& h)
      : env(e), http(h), maker(e), outages({e.options.unreachable_ttl, e.options.error_ttl}) {}

  FlightEnv& env;
  HttpClient& http;
  ObjectMaker maker;

  Mutex mu;  // before the scheduler's; never held over a call to store, client or waiter
  std::unordered_map<std::string, EntryPtr> entries GUARDED_BY(mu);
  Outages outages GUARDED_BY(mu);
  uint64_t next_waiter GUARDED_BY(mu) = 1;
  bool stopped GUARDED_BY(mu) = false;

  TimePoint Now() { return env.scheduler.clock().Now(); }
  Duration Jittered(Duration ttl) {
    return std::chrono::duration_cast<Duration>(ttl * (0.8 + 0.4 * env.random.NextDouble()));
  }

  EntryPtr FindOrMake(const Url& url) REQUIRES(mu);
  void Sweep() REQUIRES(mu);
  std::optional<Result<std::shared_ptr<Object>>> Known(Entry& entry, const Credential& credential)
      REQUIRES(mu);
  void ExpireWaiter(const EntryPtr& entry, uint64_t id);

  void Begin(const EntryPtr& entry);
  void SendProbe(const EntryPtr& entry);
  void OnProbe(const EntryPtr& entry, Result<ProbeFacts> answer);
  void OnFacts(const EntryPtr& entry, const ProbeFacts& facts);
  void OnProbeError(const EntryPtr& entry, Error error);
  std::optional<Result<std::shared_ptr<Object>>> Stale(const EntryPtr& entry);
  bool ServeStale(const EntryPtr& entry);
  void OnSlow(const EntryPtr& entry);
  void AwaitSlow(const EntryPtr& entry) REQUIRES(mu);
  bool RetryProbe(const EntryPtr& entry, const Error& error);
  void RefuseCredential(const EntryPtr& entry, Error error);
  Result<std::shared_ptr<Object>> MakeCurrent(const EntryPtr& entry, UrlRecord record, Duration ttl,
                                              bool stale = false);
  void Finish(const EntryPtr& entry, const Result<std::shared_ptr<Object>>& result);
  void Answer(std::vector<Waiter> waiters, const Result<std::shared_ptr<Object>>& result);
};

EntryPtr Resolver::State::FindOrMake(const Url& url) {
  Identity identity = MakeIdentity(url, env.options.identity);
  EntryPtr& slot = entries[identity.local_id];
  if (slot == nullptr) {
    slot = std::make_shared<Entry>();
    slot->identity = std::move(identity);
  }
  slot->url = url;  // the newest signature
  slot->used = Now();
  EntryPtr entry = slot;
  if (entries.size() > kMaxEntries) Sweep();
  return entry;
}

// Forgets the longest unused eighth of what nobody waits for.
void Resolver::State::Sweep() {
  std::vector<TimePoint> used;
  used.reserve(entries.size());
  for (const auto& [id, entry] : entries) used.push_back(entry->used);
  const auto cut = used.begin() + static_cast<std::ptrdiff_t>(used.size() / 8);
  std::nth_element(used.begin(), cut, used.end());
  const TimePoint before = *cut;
  std::erase_if(entries, [before](const auto& item) {
    return !item.second->probing && item.second->used <= before;
  });
}

std::optional<Result<std::shared_ptr<Object>>> Resolver::State::Known(
    Entry& entry, const Credential& credential) {
  const TimePoint now = Now();
  if (entry.object != nullptr && !entry.object->superseded() && now < entry.expires) {
    return Result<std::shared_ptr<Object>>(entry.object);
  }
  const bool refused = entry.error && (entry.error->code == Code::kUnauthorized ||
                                       entry.error->code == Code::kForbidden);
  if (entry.error && now < entry.error_until &&
      (!refused || entry.error_credential == credential)) {
    return Result<std::shared_ptr<Object>>(*entry.error);
  }
  return std::nullopt;
}

void Resolver::State::ExpireWaiter(const EntryPtr& entry, uint64_t id) {
  const Error late = MakeError(Code::kDeadlineExceeded, "opening " + entry->identity.redacted_url +
                                                            ": the origin did not answer in time");
  OpenDone done;
  std::shared_ptr<HttpCall> cancel;
  {
    MutexLock lock(mu);
    const auto it = std::find_if(entry->waiters.begin(), entry->waiters.end(),
                                 [id](const Waiter& waiter) { return waiter.id == id; });
    if (it == entry->waiters.end()) return;
    done = std::move(it->done);
    entry->waiters.erase(it);
    if (entry->waiters.empty()) cancel = entry->call;
    entry->error = late;  // for `explain`
    entry->error_at = Now();
  }
  if (cancel != nullptr) cancel->Cancel();
  done(late);
}

void Resolver::State::Begin(const EntryPtr& entry) {
  bool load = false;
  bool alone = false;
  bool hopeless = false;
  std::string local_id;
  {
    MutexLock lock(mu);
    load = !entry->loaded;
    local_id = entry->identity.local_id;
    alone = outages.ServedOn(entry->identity.authority, Now());
    hopeless = outages.Hopeless(entry->identity.authority, Now());
  }
  if (load) {
    const auto bytes = env.store.GetName(NameTable::kUrls, local_id);
    auto record = bytes ? DecodeUrlRecord(*bytes) : std::nullopt;
    // An unversioned generation is not kept over a restart.
    const auto version = record ? ParseVersion(record->version) : std::nullopt;
    if (!version || version->kind == Version::Kind::kUnversioned) record.reset();
    MutexLock lock(mu);
    entry->loaded = true;
    entry->record = std::move(record);
  }
  std::optional<UrlRecord> fixed;
  {
    MutexLock lock(mu);
    const bool never_changes = entry->immutable || entry->identity.content_addressed();
    const bool known = entry->record && entry->record->version.empty();
    if (never_changes && known && entry->object == nullptr) fixed = entry->record;
  }
  if (fixed) {
    Finish(entry, MakeCurrent(entry, std::move(*fixed), kForEver));
    return;
  }
  if (alone && ServeStale(entry)) return;
  if (hopeless) {
    Finish(entry, MakeError(Code::kUnavailable, "GET " + entry->identity.redacted_url +
                                                    ": the origin could not be reached just now"));
    return;
  }
  SendProbe(entry);
}

void Resolver::State::SendProbe(const EntryPtr& entry) {
  ProbeRequest request;
  {
    MutexLock lock(mu);
    if (stopped || entry->waiters.empty()) {
      entry->probing = false;
      return;
    }
    ++entry->probes;
    request.what = "GET " + entry->identity.redacted_url;
    entry->probe_credential = entry->waiters.front().credential;
    request.url = entry->probe_credential.url;
    request.authorization = entry->probe_credential.authorization;
    request.fixed = entry->immutable || entry->identity.content_addressed();
    if (entry->object != nullptr && !entry->object->superseded()) {
      request.known_version = entry->object->version();
    } else if (entry->object == nullptr && entry->record) {
      request.known_version = entry->record->version;
    }
  }
  auto call = StartProbe(env, http, std::move(request),
                         [self = shared_from_this(), entry](Result<ProbeFacts> answer) mutable {
                           auto shared = std::make_shared<Result<ProbeFacts>>(std::move(answer));
                           // Off the transfer thread: opening the store's object reads the index,
                           // and may wait.
                           self->env.blocking.Post(
                               [self, entry, shared] { self->OnProbe(entry, std::move(*shared)); });
                         });
  MutexLock lock(mu);
  if (!entry->probing) return;
  entry->call = std::move(call);
  if (entry->object != nullptr || entry->record) AwaitSlow(entry);
}

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
  env.store.PutName(NameTable::kUrls, entry->identity.local_id, EncodeUrlRecord(record));
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
    env.store.DeleteName(NameTable::kUrls, entry->identity.local_id);
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

Resolver::Resolver(FlightEnv& env, HttpClient& http) : state_(std::make_shared<State>(env, http)) {}
Resolver::~Resolver() { Stop(); }

void Resolver::Open(const Url& url, const OpenOptions& options, OpenDone done) {
  State& state = *state_;
  std::optional<Result<std::shared_ptr<Object>>> known;
  EntryPtr entry;
  bool begin = false;
  const Credential credential{url, options.authorization};
  {
    MutexLock lock(state.mu);
    if (state.stopped) {
      known = Result<std::shared_ptr<Object>>(MakeError(Code::kCancelled, "stopping"));
    } else {
      entry = state.FindOrMake(url);
      entry->immutable = entry->immutable || options.immutable;
      entry->ttl = options.ttl;
      if (!options.revalidate) known = state.Known(*entry, credential);
    }
    if (!known) {
      Waiter waiter;
      waiter.id = state.next_waiter++;
      waiter.done = std::move(done);
      waiter.credential = credential;
      if (options.deadline != kNoDeadline) {
        waiter.timer = state.env.scheduler.At(
            options.deadline,
            [self = state_, entry, id = waiter.id] { self->ExpireWaiter(entry, id); });
      }
      entry->waiters.push_back(std::move(waiter));
      begin = !std::exchange(entry->probing, true);
      if (begin) entry->probes = 0;
    }
  }
  if (known) {
    done(std::move(*known));  // NOLINT(bugprone-use-after-move): moved only if unknown
  } else if (begin) {
    state.Begin(entry);
  }
}

std::optional<Result<std::shared_ptr<Object>>> Resolver::OpenCached(const Url& url) {
  MutexLock lock(state_->mu);
  const auto it = state_->entries.find(LocalId(url, state_->env.options.identity));
  if (it == state_->entries.end()) return std::nullopt;
  return state_->Known(*it->second, Credential{url, ""});
}

Duration Resolver::TtlLeft(const Url& url) {
  MutexLock lock(state_->mu);
  const auto it = state_->entries.find(LocalId(url, state_->env.options.identity));
  if (it == state_->entries.end()) return Duration::zero();
  return std::max(Duration::zero(), it->second->expires - state_->Now());
}

UrlReport Resolver::Explain(const Url& url) {
  UrlReport report;
  report.identity = MakeIdentity(url, state_->env.options.identity);
  {
    MutexLock lock(state_->mu);
    const auto it = state_->entries.find(report.identity.local_id);
    if (it != state_->entries.end()) {
      const Entry& entry = *it->second;
      report.object = entry.object;
      report.ttl_left_ms = std::max<int64_t>(0, ToMillis(entry.expires - state_->Now()));
      report.last_error = entry.error;
      if (entry.error) report.last_error_age_ms = ToMillis(state_->Now() - entry.error_at);
    }
  }
  if (report.object != nullptr) return report;
  const auto bytes = state_->env.store.GetName(NameTable::kUrls, report.identity.local_id);
  const auto record = bytes ? DecodeUrlRecord(*bytes) : std::nullopt;
  if (!record) return report;
  auto made = state_->maker.Make(url, report.identity, *record, false);
  if (made) report.object = std::move(*made);
  return report;
}

void Resolver::Expire(const Object& object) {
  MutexLock lock(state_->mu);
  const auto it = state_->entries.find(object.facts().identity.local_id);
  if (it == state_->entries.end()) return;
  if (it->second->object.get() == &object) it->second->expires = TimePoint{};
}

void Resolver::RememberRangeBlind(const Object& object) {
  std::optional<UrlRecord> record;
  {
    MutexLock lock(state_->mu);
    const auto it = state_->entries.find(object.facts().identity.local_id);
    if (it == state_->entries.end() || !it->second->record) return;
    it->second->record->range_blind = true;
    record = it->second->record;
  }
  state_->env.store.PutName(NameTable::kUrls, object.facts().identity.local_id,
                            EncodeUrlRecord(*record));
}

void Resolver::RememberError(const Object& object, const Error& error) {
  MutexLock lock(state_->mu);
  const auto it = state_->entries.find(object.facts().identity.local_id);
  if (it == state_->entries.end()) return;
  it->second->error = error;
  it->second->error_at = state_->Now();  // for `explain`: error_until stays, opens go on
}

void Resolver::Refuse(const DigestCheck& check, const Error& error) {
  std::vector<std::string> forgotten;
  {
    MutexLock lock(state_->mu);
    const TimePoint now = state_->Now();
    for (auto& [id, entry] : state_->entries) {
      if (entry->object == nullptr || entry->object->flights().digest().get() != &check) continue;
      entry->object = nullptr;
      entry->record.reset();
      entry->error = error;
      entry->error_at = now;
      entry->error_until = now + kWrongDigestPause;
      forgotten.push_back(id);
    }
  }
  for (const std::string& id : forgotten) state_->env.store.DeleteName(NameTable::kUrls, id);
}

void Resolver::Stop() {
  std::vector<Waiter> waiters;
  std::vector<std::shared_ptr<HttpCall>> calls;
  {
    MutexLock lock(state_->mu);
    state_->stopped = true;
    for (auto& [id, entry] : state_->entries) {
      for (Waiter& waiter : entry->waiters) waiters.push_back(std::move(waiter));
      entry->waiters.clear();
      if (entry->call != nullptr) calls.push_back(entry->call);
    }
  }
  for (const auto& call : calls) call->Cancel();
  state_->Answer(std::move(waiters), MakeError(Code::kCancelled, "stopping"));
}

}  // namespace dartfs::core
