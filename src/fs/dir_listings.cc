#include "fs/dir_listings.h"

#include <algorithm>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/text.h"
#include "fs/listing_fetch.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::Error;
using core::MakeError;
using core::NameTable;
using core::Result;
using core::TimePoint;

constexpr size_t kMaxRememberedDirectories = 100'000;
constexpr size_t kMaxSites = 10'000;
constexpr size_t kMaxWaiters = 100'000;  // of one listing
constexpr size_t kTableOverhead = 128;   // bytes of a directory's places in map and list
constexpr core::Duration kBucketRetry = std::chrono::seconds(60);
constexpr size_t kWarningsAtOnce = 20;
constexpr core::Duration kWarningsInterval = std::chrono::seconds(60);

struct Waiter {
  uint64_t id = 0;
  GotDirDone done;
  core::TimerId timer = core::kNoTimer;
};

// What all directories of an origin share. Guarded by State::mu.
struct Site {
  TimePoint unreachable_until{};
  std::optional<std::string> bucket;
  TimePoint find_bucket_after{};
};

// All that is known of one directory. Guarded by State::mu.
struct Dir {
  std::shared_ptr<const DirListing> listing;
  DirPresence presence = DirPresence::kPresent;
  TimePoint fresh_until{};
  std::shared_ptr<const Error> problem;  // of the last fetch; null when it went well
  TimePoint problem_at{};
  uint64_t warned = 0;  // hash of the last problem that was logged
  bool in_index_looked = false;
  std::optional<uint64_t> record_hash;  // of the listing that the index is known to hold
  bool taken_for_probing = false;
  bool fetching = false;
  std::shared_ptr<ListingFetch> fetch;
  std::vector<Waiter> waiters;
  std::list<std::string>::iterator lru;
};

std::shared_ptr<const DirListing> NoListing() {
  static const auto kNone = std::make_shared<const DirListing>(std::vector<NamedChild>{}, false,
                                                               DirListing::Validators{});
  return kNone;
}

}  // namespace

bool MeansUnreachable(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kDeadlineExceeded ||
         error.code == Code::kTooManyRequests || error.code == Code::kBusy;
}

struct DirListings::State : std::enable_shared_from_this<DirListings::State> {
  State(DirListingsOptions o, core::Engine& e, core::Scheduler& w, core::Random& r)
      : options(std::move(o)), engine(e), worker(w), random(r) {}

  const DirListingsOptions options;
  core::Engine& engine;
  core::Scheduler& worker;
  core::Random& random;

  core::Mutex mu;  // before the schedulers'; never held over a call to store, fetch or waiter
  std::unordered_map<std::string, Dir> dirs GUARDED_BY(mu);
  std::list<std::string> lru GUARDED_BY(mu);  // front: last used
  size_t memory_bytes GUARDED_BY(mu) = 0;
  std::unordered_map<std::string, TimePoint> remembered GUARDED_BY(mu);
  std::unordered_map<std::string, Site> sites GUARDED_BY(mu);
  uint64_t next_waiter GUARDED_BY(mu) = 1;
  TimePoint warnings_since GUARDED_BY(mu){};
  size_t warnings GUARDED_BY(mu) = 0;  // since then
  bool stopped GUARDED_BY(mu) = false;

  TimePoint Now() { return engine.scheduler().clock().Now(); }
  core::Duration Jittered(core::Duration ttl) {
    return std::chrono::duration_cast<core::Duration>(ttl * (0.8 + 0.4 * random.NextDouble()));
  }
  // Whether what is known may be served while the origin can't be reached: absence may not.
  static bool HasStale(const Dir& dir) {
    return dir.listing != nullptr && dir.presence == DirPresence::kPresent;
  }
  // About what the directory takes; the one listing of all that have none is nobody's.
  static size_t MemoryBytes(const std::string& key, const Dir& dir) {
    const bool own = dir.listing != nullptr && dir.listing != NoListing();
    const size_t problem = dir.problem != nullptr ? sizeof(Error) + dir.problem->context.size() : 0;
    return sizeof(Dir) + kTableOverhead + 2 * key.size() + problem +
           (own ? dir.listing->memory_bytes() : 0);
  }

  core::Url UrlOf(std::string_view dir) const { return options.space.UrlOf(dir); }
  std::string RecordUrl(std::string_view dir) const { return UrlOf(dir).ToString(); }

  Dir& FindOrMake(const std::string& key) REQUIRES(mu);
  Site& SiteOf(std::string_view key) REQUIRES(mu);
  void SetListing(const std::string& key, Dir& dir, std::shared_ptr<const DirListing> listing)
      REQUIRES(mu);
  void SetProblem(const std::string& key, Dir& dir, std::shared_ptr<const Error> problem)
      REQUIRES(mu);
  bool MayWarn(const std::string& key, uint64_t cause, bool& last) EXCLUDES(mu);
  void Evict() REQUIRES(mu);
  void LoadFromIndex(const std::string& key) EXCLUDES(mu);
  GotDir GotOf(const Dir& dir, TimePoint now) REQUIRES(mu);
  void AddWaiter(const std::string& key, Dir& dir, TimePoint deadline, GotDirDone done)
      REQUIRES(mu);
  std::optional<Result<GotDir>> AnswerOrWait(const std::string& key, TimePoint deadline,
                                             GotDirDone& done, bool& start) EXCLUDES(mu);
  void ExpireWaiter(const std::string& key, uint64_t id) EXCLUDES(mu);
  void StartFetch(const std::string& key) EXCLUDES(mu);
  void OnFetched(const std::string& key, Result<FetchedListing> fetched) EXCLUDES(mu);
  void OnFailed(const std::string& key, Error error) EXCLUDES(mu);
  void Adopt(const std::string& key, Dir& dir, FetchedListing& fetched) REQUIRES(mu);
  void Persist(const std::string& key) EXCLUDES(mu);
  void AnswerAll(const std::string& key, std::optional<Error> error) EXCLUDES(mu);
};

Dir& DirListings::State::FindOrMake(const std::string& key) {
  const auto [it, made] = dirs.try_emplace(key);
  if (made) {
    lru.push_front(key);
    it->second.lru = lru.begin();
    memory_bytes += MemoryBytes(key, it->second);
    Evict();
  } else {
    lru.splice(lru.begin(), lru, it->second.lru);
  }
  return it->second;
}

Site& DirListings::State::SiteOf(std::string_view key) {
  if (sites.size() >= kMaxSites) sites.clear();
  return sites[std::string(options.space.SiteOf(key))];
}

void DirListings::State::SetListing(const std::string& key, Dir& dir,
                                    std::shared_ptr<const DirListing> listing) {
  memory_bytes -= MemoryBytes(key, dir);
  dir.listing = std::move(listing);
  memory_bytes += MemoryBytes(key, dir);
  Evict();
}

void DirListings::State::SetProblem(const std::string& key, Dir& dir,
                                    std::shared_ptr<const Error> problem) {
  memory_bytes -= MemoryBytes(key, dir);
  dir.problem = std::move(problem);
  dir.problem_at = Now();
  memory_bytes += MemoryBytes(key, dir);
}

// `last`: the next ones are kept quiet for a while.
bool DirListings::State::MayWarn(const std::string& key, uint64_t cause, bool& last) {
  core::MutexLock lock(mu);
  if (std::exchange(FindOrMake(key).warned, cause) == cause) return false;
  const TimePoint now = Now();
  if (warnings == 0 || now - warnings_since >= kWarningsInterval) {
    warnings_since = now;
    warnings = 0;
  }
  if (warnings >= kWarningsAtOnce) return false;
  last = ++warnings == kWarningsAtOnce;
  return true;
}

// Lets go of what was not used for longest; the first one and those being fetched stay.
void DirListings::State::Evict() {
  auto it = lru.end();
  while (memory_bytes > options.memory_bytes && it != lru.begin() && --it != lru.begin()) {
    const auto found = dirs.find(*it);
    if (found->second.fetching) continue;
    memory_bytes -= MemoryBytes(*it, found->second);
    dirs.erase(found);
    it = lru.erase(it);
  }
}

void DirListings::State::LoadFromIndex(const std::string& key) {
  {
    core::MutexLock lock(mu);
    Dir& dir = FindOrMake(key);
    if (dir.in_index_looked || dir.listing != nullptr) return;
  }
  const std::string url = RecordUrl(key);
  const auto record = engine.store().GetName(NameTable::kNames, DirListingKey(url));
  auto listing = record ? DecodeDirListing(*record, url) : nullptr;
  core::MutexLock lock(mu);
  Dir& dir = FindOrMake(key);
  dir.in_index_looked = true;
  if (listing == nullptr || dir.listing != nullptr) return;
  dir.record_hash = core::Xxh3(*record);
  SetListing(key, dir, std::move(listing));
}

GotDir DirListings::State::GotOf(const Dir& dir, TimePoint now) {
  GotDir got;
  got.listing = dir.listing != nullptr ? dir.listing : NoListing();
  got.presence = dir.presence;
  got.fresh = now < dir.fresh_until;
  if (got.listing == NoListing()) got.problem = dir.problem;
  return got;
}

void DirListings::State::AddWaiter(const std::string& key, Dir& dir, TimePoint deadline,
                                   GotDirDone done) {
  Waiter waiter{next_waiter++, std::move(done), core::kNoTimer};
  if (deadline < core::kNoDeadline) {
    waiter.timer = engine.scheduler().At(
        deadline,
        [self = shared_from_this(), key, id = waiter.id] { self->ExpireWaiter(key, id); });
  }
  dir.waiters.push_back(std::move(waiter));
}

// The answer where it is known; else takes `done`, and says whether a fetch is to start.
std::optional<Result<GotDir>> DirListings::State::AnswerOrWait(const std::string& key,
                                                               TimePoint deadline, GotDirDone& done,
                                                               bool& start) {
  core::MutexLock lock(mu);
  if (stopped) return MakeError(Code::kCancelled, "the mount is stopping");
  Dir& dir = FindOrMake(key);
  const TimePoint now = Now();
  const bool leave_alone = HasStale(dir) && now < SiteOf(key).unreachable_until;
  if (now < dir.fresh_until || leave_alone) return GotOf(dir, now);
  if (dir.waiters.size() >= kMaxWaiters) {
    return MakeError(Code::kBusy, "too many wait for the listing of one directory");
  }
  AddWaiter(key, dir, deadline, std::move(done));
  start = !std::exchange(dir.fetching, true);
  return std::nullopt;
}

void DirListings::State::ExpireWaiter(const std::string& key, uint64_t id) {
  GotDirDone done;
  std::optional<GotDir> stale;
  const Error late =
      MakeError(Code::kDeadlineExceeded, "listing " + core::RedactUrl(RecordUrl(key)) +
                                             ": the origin did not answer in time");
  {
    core::MutexLock lock(mu);
    const auto found = dirs.find(key);
    if (found == dirs.end()) return;
    auto& waiters = found->second.waiters;
    const auto it = std::find_if(waiters.begin(), waiters.end(),
                                 [id](const Waiter& waiter) { return waiter.id == id; });
    if (it == waiters.end()) return;
    done = std::move(it->done);
    waiters.erase(it);
    SetProblem(key, found->second, std::make_shared<const Error>(late));
    if (HasStale(found->second)) stale = GotOf(found->second, Now());
  }
  if (stale) return done(std::move(*stale));
  done(late);
}

void DirListings::State::StartFetch(const std::string& key) {
  ListingRequest request;
  request.directory = UrlOf(key);
  request.authorization = options.authorization;
  request.deadline = Now() + options.fetch_timeout;
  {
    core::MutexLock lock(mu);
    const Dir& dir = FindOrMake(key);
    if (dir.listing != nullptr) request.validators = dir.listing->validators();
    const Site& site = SiteOf(key);
    request.bucket = site.bucket;
    request.find_bucket = !site.bucket && Now() >= site.find_bucket_after;
  }
  auto fetch =
      ListingFetch::Start(engine.http(), worker, std::move(request),
                          [self = shared_from_this(), key](Result<FetchedListing> fetched) {
                            self->OnFetched(key, std::move(fetched));
                          });
  bool cancel = false;
  {
    core::MutexLock lock(mu);
    Dir& dir = FindOrMake(key);
    cancel = stopped;
    if (dir.fetching && !stopped) dir.fetch = fetch;
  }
  if (cancel) fetch->Cancel();
}

void DirListings::State::OnFetched(const std::string& key, Result<FetchedListing> fetched) {
  if (!fetched) return OnFailed(key, std::move(fetched).error());
  {
    core::MutexLock lock(mu);
    Dir& dir = FindOrMake(key);
    Site& site = SiteOf(key);
    site.unreachable_until = {};
    if (fetched->bucket) site.bucket = std::move(fetched->bucket);
    if (fetched->looked_for_bucket && !site.bucket) site.find_bucket_after = Now() + kBucketRetry;
    Adopt(key, dir, *fetched);
  }
  Persist(key);
  AnswerAll(key, std::nullopt);
}

void DirListings::State::Adopt(const std::string& key, Dir& dir, FetchedListing& fetched) {
  using Kind = FetchedListing::Kind;
  dir.fresh_until = Now() + Jittered(options.ttl);
  dir.presence = DirPresence::kPresent;
  dir.in_index_looked = true;
  const bool listed = fetched.kind == Kind::kListing || fetched.kind == Kind::kNotModified;
  SetProblem(key, dir,
             listed ? nullptr : std::make_shared<const Error>(std::move(fetched.problem)));
  if (fetched.kind == Kind::kNotModified && dir.listing != nullptr) return;
  dir.taken_for_probing = false;
  if (fetched.kind == Kind::kListing) {
    SetListing(key, dir,
               std::make_shared<const DirListing>(std::move(fetched.children), fetched.complete,
                                                  std::move(fetched.validators)));
    return;
  }
  SetListing(key, dir, NoListing());
  if (fetched.kind == Kind::kNone) return;
  dir.fresh_until = Now() + options.absent_ttl;
  dir.presence = fetched.kind == Kind::kAbsent         ? DirPresence::kAbsent
                 : fetched.kind == Kind::kUnauthorized ? DirPresence::kUnauthorized
                                                       : DirPresence::kForbidden;
}

// Writes only what has changed: every write is a commit. No listing means no record. A refusal
// leaves the record as it is: the credential may be at fault.
void DirListings::State::Persist(const std::string& key) {
  std::shared_ptr<const DirListing> listing;
  std::optional<uint64_t> written;
  {
    core::MutexLock lock(mu);
    const Dir& dir = FindOrMake(key);
    if (dir.presence == DirPresence::kForbidden || dir.presence == DirPresence::kUnauthorized) {
      return;
    }
    listing = dir.listing;
    written = dir.record_hash;
  }
  const std::string url = RecordUrl(key);
  const bool none = listing == nullptr || listing == NoListing();
  std::optional<uint64_t> hash;
  if (none) {
    if (written) engine.store().DeleteName(NameTable::kNames, DirListingKey(url));
  } else {
    const std::string record = EncodeDirListing(*listing, url);
    hash = core::Xxh3(record);
    if (hash != written) engine.store().PutName(NameTable::kNames, DirListingKey(url), record);
  }
  core::MutexLock lock(mu);
  FindOrMake(key).record_hash = hash;
}

void DirListings::State::OnFailed(const std::string& key, Error error) {
  bool stale = false;
  {
    core::MutexLock lock(mu);
    Dir& dir = FindOrMake(key);
    if (MeansUnreachable(error)) SiteOf(key).unreachable_until = Now() + options.unreachable_ttl;
    stale = HasStale(dir) && error.code != Code::kCancelled;
    SetProblem(key, dir, std::make_shared<const Error>(error));
  }
  AnswerAll(key, stale ? std::nullopt : std::optional(std::move(error)));
}

// Ends the fetch: with the listing, or with the error.
void DirListings::State::AnswerAll(const std::string& key, std::optional<Error> error) {
  std::vector<Waiter> waiters;
  GotDir got;
  {
    core::MutexLock lock(mu);
    Dir& dir = FindOrMake(key);
    dir.fetching = false;
    dir.fetch = nullptr;
    waiters.swap(dir.waiters);
    got = GotOf(dir, Now());
  }
  for (Waiter& waiter : waiters) {
    if (waiter.timer != core::kNoTimer) engine.scheduler().Cancel(waiter.timer);
    waiter.done(error ? Result<GotDir>(*error) : Result<GotDir>(got));
  }
}

DirListings::DirListings(DirListingsOptions options, core::Engine& engine, core::Scheduler& worker,
                         core::Random& random)
    : state_(std::make_shared<State>(std::move(options), engine, worker, random)) {}

DirListings::~DirListings() { Stop(); }

core::Url DirListings::UrlOf(std::string_view dir) const { return state_->UrlOf(dir); }

KnownDir DirListings::Known(const std::string& key) {
  state_->LoadFromIndex(key);
  core::MutexLock lock(state_->mu);
  const Dir& dir = state_->FindOrMake(key);
  return {dir.listing, dir.listing != nullptr && state_->Now() < dir.fresh_until};
}

void DirListings::Get(const std::string& key, TimePoint deadline, GotDirDone done) {
  state_->LoadFromIndex(key);
  bool start = false;
  const auto now = state_->AnswerOrWait(key, deadline, done, start);
  if (now) return done(*now);
  if (start) state_->StartFetch(key);
}

void DirListings::RememberDirectory(const std::string& key) {
  {
    core::MutexLock lock(state_->mu);
    auto& remembered = state_->remembered;
    const TimePoint now = state_->Now();
    if (remembered.size() >= kMaxRememberedDirectories) remembered.clear();
    const bool known = remembered.contains(key);
    remembered[key] = now + state_->Jittered(state_->options.ttl);
    if (known) return;
  }
  // The index's lock may be held over a commit.
  state_->worker.Post([state = state_, key] {
    const std::string url = state->RecordUrl(key);
    const std::string record = EncodeDirKind(url);
    core::Store& store = state->engine.store();
    if (store.GetName(NameTable::kNames, DirKindKey(url)) == record) return;
    store.PutName(NameTable::kNames, DirKindKey(url), record);
  });
}

bool DirListings::IsRememberedDirectory(const std::string& key) {
  core::MutexLock lock(state_->mu);
  const auto it = state_->remembered.find(key);
  return it != state_->remembered.end() && state_->Now() < it->second;
}

bool DirListings::WasDirectory(const std::string& key) {
  {
    core::MutexLock lock(state_->mu);
    if (state_->remembered.contains(key)) return true;
  }
  const std::string url = state_->RecordUrl(key);
  auto& store = state_->engine.store();
  const auto kind = store.GetName(NameTable::kNames, DirKindKey(url));
  if (kind && DecodeDirKind(*kind, url)) return true;
  const auto listing = Known(key).listing;
  return listing != nullptr && listing != NoListing();
}

void DirListings::NoteUnreachable(std::string_view key) {
  core::MutexLock lock(state_->mu);
  state_->SiteOf(key).unreachable_until = state_->Now() + state_->options.unreachable_ttl;
}

std::shared_ptr<const DirListing> DirListings::TakeForProbing(const std::string& key) {
  core::MutexLock lock(state_->mu);
  const auto it = state_->dirs.find(key);
  if (it == state_->dirs.end() || it->second.listing == nullptr) return nullptr;
  Dir& dir = it->second;
  if (state_->Now() >= dir.fresh_until) return nullptr;
  if (std::exchange(dir.taken_for_probing, true)) return nullptr;
  return dir.listing;
}

void DirListings::WarnOfNoListing(const std::string& key, const core::Error& problem) {
  bool last = false;
  if (!state_->MayWarn(key, core::Xxh3(problem.context) | 1, last)) return;
  LOG_WARN("{}; {}", problem.context,
           problem.code == Code::kUnauthorized
               ? "the mount needs a login for it (https://user:password@host/)"
               : "names there can only be looked up");
  if (last) LOG_WARN("more directories without a listing are not logged for a minute");
}

ListingReport DirListings::Explain(const std::string& key) {
  state_->LoadFromIndex(key);
  core::MutexLock lock(state_->mu);
  const Dir& dir = state_->FindOrMake(key);
  ListingReport report;
  if (dir.listing != nullptr && dir.listing != NoListing()) report.listing = dir.listing->shown();
  report.problem = dir.problem;
  if (dir.problem != nullptr)
    report.problem_age_ms = core::ToMillis(state_->Now() - dir.problem_at);
  return report;
}

void DirListings::Stop() {
  std::vector<std::shared_ptr<ListingFetch>> fetches;
  std::vector<Waiter> waiters;
  {
    core::MutexLock lock(state_->mu);
    state_->stopped = true;
    for (auto& [key, dir] : state_->dirs) {
      // Moved: a fetch holds us, and its end may be a task that never runs any more.
      if (dir.fetch != nullptr) fetches.push_back(std::move(dir.fetch));
      dir.fetch = nullptr;
      for (Waiter& waiter : dir.waiters) waiters.push_back(std::move(waiter));
      dir.waiters.clear();
    }
  }
  for (const auto& fetch : fetches) fetch->Cancel();
  for (Waiter& waiter : waiters) {
    if (waiter.timer != core::kNoTimer) state_->engine.scheduler().Cancel(waiter.timer);
    waiter.done(MakeError(Code::kCancelled, "the mount is stopping"));
  }
}

}  // namespace dartfs::fs
