#include "core/engine/resolver.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/engine/resolver_impl.h"

namespace dartfs::core {

namespace {

constexpr size_t kMaxEntries = 50'000;  // with their objects a few KB each
// A URL whose bytes were not those of its digest is not asked again for so long.
constexpr Duration kWrongDigestPause = std::chrono::seconds(30);

Error NotADigest(const Url& url, std::string_view text) {
  return MakeError(Code::kInvalidArgument, RedactUrl(url.ToString()) + ": '" + EscapeForeign(text) +
                                               "' is no digest; write sha256: or sha512: and the "
                                               "hex digits");
}

}  // namespace

EntryPtr Resolver::State::FindOrMake(const Url& url, std::optional<Digest> declared) {
  Identity identity = MakeIdentity(url, env.options.identity, std::move(declared));
  EntryPtr& slot = entries[EntryName(identity)];
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

std::optional<Result<std::shared_ptr<Object>>> Resolver::State::Known(const Entry& entry,
                                                                      const Asker& asker) {
  const TimePoint now = Now();
  const Object* const object = entry.object.get();
  if (asker.verbatim && (entry.range_blind || (object != nullptr && object->range_blind()))) {
    return Result<std::shared_ptr<Object>>(RangeBlindError(entry.identity));
  }
  if (asker.pass_redirects && entry.redirect && now < entry.redirect_until &&
      asker.Holds(entry.redirect_credential)) {
    return Result<std::shared_ptr<Object>>(*entry.redirect);
  }
  const bool followed = entry.record && entry.record->via_redirect;
  if (object != nullptr && !object->superseded() && now < entry.expires &&
      !(asker.pass_redirects && followed)) {
    return Result<std::shared_ptr<Object>>(entry.object);
  }
  if (!entry.error || now >= entry.error_until) return std::nullopt;
  if (asker.pass_redirects && entry.error_followed) return std::nullopt;
  if (IsOfCredential(entry.error->code) && !asker.Holds(entry.error_credential)) {
    return std::nullopt;
  }
  return Result<std::shared_ptr<Object>>(*entry.error);
}

void Resolver::State::ExpireWaiter(const EntryPtr& entry, uint64_t id) {
  Error late = MakeError(Code::kDeadlineExceeded, "opening " + entry->identity.redacted_url +
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
    if (entry->error && entry->error->code == Code::kTooManyRequests && entry->probes > 0) {
      late = *entry->error;  // it did answer: not now
    }
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
  std::string name;
  {
    MutexLock lock(mu);
    load = !entry->loaded;
    name = EntryName(entry->identity);
    alone = outages.ServedOn(entry->identity.authority, Now());
    hopeless = outages.Hopeless(entry->identity.authority, Now());
  }
  if (load) {
    const auto bytes = env.store.GetName(NameTable::kUrls, name);
    auto record = bytes ? DecodeUrlRecord(*bytes) : std::nullopt;
    // An unversioned generation is not kept over a restart.
    const auto version = record ? ParseVersion(record->version) : std::nullopt;
    if (!version || version->kind == Version::Kind::kUnversioned) record.reset();
    MutexLock lock(mu);
    entry->loaded = true;
    entry->record = std::move(record);
  }
  std::optional<UrlRecord> fixed;
  ForWhom whom = ForWhom::kAll;
  {
    MutexLock lock(mu);
    const bool never_changes = entry->immutable || entry->identity.content_addressed();
    const bool known = entry->record && entry->record->version.empty();
    if (never_changes && known && entry->object == nullptr) fixed = entry->record;
    if (fixed && fixed->via_redirect) whom = ForWhom::kFollowers;
  }
  if (fixed) {
    Finish(entry, MakeCurrent(entry, std::move(*fixed), kForEver), whom);
    return;
  }
  if (alone && ServeStale(entry)) return;
  if (hopeless) {
    Finish(entry, MakeError(Code::kUnavailable, "GET " + entry->identity.redacted_url +
                                                    ": the origin could not be reached just now"));
    return;
  }
  if (http.Throttled(entry->identity.authority)) {
    if (ServeStale(entry)) return;
    const Error throttled = MakeError(Code::kTooManyRequests,
                                      "GET " + entry->identity.redacted_url +
                                          ": the origin has asked to be left alone for a while");
    if (!TellThrottled(entry, throttled)) return;
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
    entry->probe_passes = entry->waiters.front().pass_redirects;
    request.url = entry->probe_credential.url;
    request.authorization = entry->probe_credential.authorization;
    request.untrusted_url = entry->probe_credential.untrusted_url;
    request.pass_redirects = entry->probe_passes;
    request.fixed = entry->immutable || entry->identity.content_addressed();
    if (entry->unconditional) {
      // As if nothing were known.
    } else if (entry->object != nullptr && !entry->object->superseded()) {
      request.known_version = entry->object->version();
      request.known_etag = entry->object->facts().meta.etag;
    } else if (entry->object == nullptr && entry->record) {
      request.known_version = entry->record->version;
      request.known_etag = entry->record->etag;
    }
  }
  request.range_blind = [self = shared_from_this(), entry] { return self->OnRangeBlind(entry); };
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

Resolver::Resolver(FlightEnv& env, HttpClient& http) : state_(std::make_shared<State>(env, http)) {}
Resolver::~Resolver() { Stop(); }

void Resolver::Open(const Url& url, const OpenOptions& options, OpenDone done) {
  State& state = *state_;
  std::optional<Result<std::shared_ptr<Object>>> known;
  EntryPtr entry;
  bool begin = false;
  const Asker asker{url, options.authorization, options.untrusted_url, options.verbatim,
                    options.pass_redirects};
  const auto declared = ParseDigest(options.digest);
  if (!declared && !options.digest.empty()) return done(NotADigest(url, options.digest));
  {
    MutexLock lock(state.mu);
    if (state.stopped) {
      known = Result<std::shared_ptr<Object>>(MakeError(Code::kCancelled, "stopping"));
    } else {
      entry = state.FindOrMake(url, declared);
      entry->immutable = entry->immutable || options.immutable;
      entry->ttl = options.ttl;
      const bool anew = options.revalidate && !(options.verbatim && entry->range_blind);
      if (!anew) known = state.Known(*entry, asker);
    }
    if (!known) {
      Waiter waiter;
      waiter.id = state.next_waiter++;
      waiter.done = std::move(done);
      waiter.credential = {url, options.authorization, options.untrusted_url};
      waiter.verbatim = options.verbatim;
      waiter.pass_redirects = options.pass_redirects;
      if (options.deadline != kNoDeadline) {
        waiter.timer = state.env.scheduler.At(
            options.deadline,
            [self = state_, entry, id = waiter.id] { self->ExpireWaiter(entry, id); });
      }
      entry->waiters.push_back(std::move(waiter));
      begin = !std::exchange(entry->probing, true);
      if (begin) entry->BeginRound();
    }
  }
  if (known) {
    done(std::move(*known));  // NOLINT(bugprone-use-after-move): moved only if unknown
  } else if (begin) {
    state.Begin(entry);
  }
}

std::optional<Result<std::shared_ptr<Object>>> Resolver::OpenCached(const Url& url,
                                                                    const CachedOpen& how) {
  const std::string name = EntryName(url, state_->env.options.identity, how.digest);
  const Asker asker{url, how.authorization, how.untrusted_url, how.verbatim, how.pass_redirects};
  MutexLock lock(state_->mu);
  const auto it = state_->entries.find(name);
  if (it == state_->entries.end()) return std::nullopt;
  return state_->Known(*it->second, asker);
}

Duration Resolver::TtlLeft(const Url& url) {
  const std::string name = EntryName(url, state_->env.options.identity, {});
  MutexLock lock(state_->mu);
  const auto it = state_->entries.find(name);
  if (it == state_->entries.end()) return Duration::zero();
  return std::max(Duration::zero(), it->second->expires - state_->Now());
}

UrlReport Resolver::Explain(const Url& url, std::string_view digest) {
  UrlReport report;
  report.identity = MakeIdentity(url, state_->env.options.identity, ParseDigest(digest));
  const std::string name = EntryName(report.identity);
  {
    MutexLock lock(state_->mu);
    const auto it = state_->entries.find(name);
    if (it != state_->entries.end()) {
      const Entry& entry = *it->second;
      report.object = entry.object;
      report.ttl_left_ms = std::max<int64_t>(0, ToMillis(entry.expires - state_->Now()));
      report.last_error = entry.error;
      if (entry.error) report.last_error_age_ms = ToMillis(state_->Now() - entry.error_at);
    }
  }
  if (report.object != nullptr) return report;
  const auto bytes = state_->env.store.GetName(NameTable::kUrls, name);
  const auto record = bytes ? DecodeUrlRecord(*bytes) : std::nullopt;
  if (!record) return report;
  auto made = state_->maker.Make(url, report.identity, *record, false);
  if (made) report.object = std::move(*made);
  return report;
}

void Resolver::Expire(const Object& object) {
  MutexLock lock(state_->mu);
  const auto it = state_->entries.find(EntryName(object.facts().identity));
  if (it == state_->entries.end()) return;
  if (it->second->object.get() == &object) it->second->expires = TimePoint{};
}

void Resolver::RememberRangeBlind(const Object& object) {
  std::optional<UrlRecord> record;
  {
    MutexLock lock(state_->mu);
    const auto it = state_->entries.find(EntryName(object.facts().identity));
    if (it == state_->entries.end()) return;
    it->second->range_blind = true;
    if (!it->second->record) return;
    it->second->record->range_blind = true;
    record = it->second->record;
  }
  state_->env.store.PutName(NameTable::kUrls, EntryName(object.facts().identity),
                            EncodeUrlRecord(*record));
}

void Resolver::RememberError(const Object& object, const Error& error) {
  MutexLock lock(state_->mu);
  const auto it = state_->entries.find(EntryName(object.facts().identity));
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
