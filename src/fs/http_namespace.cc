#include "fs/http_namespace.h"

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/text.h"
#include "core/engine/object.h"
#include "fs/habit_names.h"
#include "fs/name_mapping.h"

namespace dartfs::fs {

using core::Code;
using core::Error;
using core::MakeError;
using core::Object;
using core::Result;
using core::TimePoint;
using core::Url;

namespace {

constexpr size_t kProbesAtOnce = 16;
constexpr size_t kProbesPerListing = 4096;
constexpr size_t kProbeRunsAtOnce = 4;
constexpr size_t kProbeFailuresInRow = 3;  // then the origin has other worries
constexpr core::Duration kProbeTimeout = std::chrono::seconds(30);

using Opened = Result<std::shared_ptr<Object>>;

// What a name is, as far as can be told without asking.
struct Resolved {
  std::string rest;  // as it goes over the wire, without a directory's last '/'
  bool always_file = false;
  std::optional<ListedEntry> entry;  // where the directory's listing has it
  bool fresh = false;                // that listing
  bool complete = false;
};

bool IsDirKey(std::string_view key) {
  return key.empty() || (IsRest(key) && key.ends_with('/') &&
                         key.find('?') == std::string_view::npos && !LeavesDirectory(key));
}

Error NotADirectory(std::string_view key) {
  return MakeError(Code::kInvalidArgument,
                   "'" + core::EscapeForeign(key) + "' is not a directory of this mount");
}

}  // namespace

struct HttpNamespace::State {
  State(HttpNamespaceOptions o, core::Engine& e, core::Scheduler& worker, core::Random& random)
      : options(std::move(o)),
        engine(e),
        listings({.root = options.root, .authorization = options.authorization, .ttl = options.ttl},
                 e, worker, random) {}

  const HttpNamespaceOptions options;
  core::Engine& engine;
  DirListings listings;
  std::atomic<size_t> probe_runs{0};
  std::atomic<bool> stopped{false};

  core::OpenOptions OpenOptionsUntil(TimePoint deadline) const {
    core::OpenOptions open;
    open.authorization = options.authorization;
    open.ttl = options.ttl;
    open.immutable = options.immutable;
    open.deadline = deadline;
    return open;
  }

  Url UrlOf(std::string_view dir, std::string_view rest) const {
    Url url = listings.UrlOf(dir);
    const size_t question = rest.find('?');
    url.path += rest.substr(0, question);
    if (question != std::string_view::npos) url.query = rest.substr(question + 1);
    return url;
  }

  // kNotFound: not a name here.
  Result<Resolved> Resolve(const DirRef& dir, std::string_view name) {
    if (!IsDirKey(dir.key)) return NotADirectory(dir.key);
    Resolved resolved;
    const KnownDir known = listings.Known(dir.key);
    if (known.listing != nullptr) {
      resolved.fresh = known.fresh;
      resolved.complete = known.listing->shown()->complete;
      if (const ListedEntry* const entry = known.listing->Find(name)) {
        resolved.rest = known.listing->SegmentOf(*entry);
        resolved.entry = *entry;
      }
    }
    if (!resolved.entry) {
      TRY_ASSIGN(WireName wire, NameToWire(name));
      resolved.rest = std::move(wire.rest);
      resolved.always_file = wire.always_file;
    }
    if (UrlOf(dir.key, resolved.rest).ToString().size() >= core::kMaxUrlBytes) {
      return MakeError(Code::kNotFound, "the URL of that name would be too long");
    }
    return resolved;
  }
};

// One lookup on its way; kept alive by the completion it waits for.
class HttpNamespace::LookupOp : public std::enable_shared_from_this<LookupOp> {
 public:
  LookupOp(std::shared_ptr<State> state, DirRef dir, std::string_view name, TimePoint deadline,
           LookupDone done)
      : state_(std::move(state)),
        dir_(std::move(dir)),
        name_(name),
        deadline_(deadline),
        done_(std::move(done)) {}

  void Begin() {
    auto resolved = state_->Resolve(dir_, name_);
    if (!resolved) {
      // Only a listing can tell what such a name stands for.
      if (IsDigestedName(name_) && IsDirKey(dir_.key) && !relisted_) return Relist();
      return Finish(std::move(resolved).error());
    }
    resolved_ = std::move(*resolved);
    child_ = dir_.key + resolved_.rest + "/";
    const bool listed_dir = resolved_.entry && resolved_.entry->kind == EntryKind::kDirectory;
    if (listed_dir && (resolved_.fresh || relisted_)) return FinishAsDirectory();
    if (listed_dir) return Relist();
    if (!resolved_.always_file && !resolved_.entry &&
        state_->listings.IsRememberedDirectory(child_)) {
      return FinishAsDirectory();
    }
    if (!resolved_.entry && IsAskedByHabit(name_)) {
      return Finish(MakeError(Code::kNotFound, "not asked for, as no listing has it"));
    }
    Open();
  }

 private:
  // Begins again with the directory's listing renewed, or as it is when that can't be.
  void Relist() {
    relisted_ = true;
    state_->listings.Get(dir_.key, deadline_, [self = shared_from_this()](Result<GotDir> got) {
      if (!got && !MeansUnreachable(got.error())) return self->Finish(std::move(got).error());
      self->Begin();
    });
  }

  void Open() {
    url_ = state_->UrlOf(dir_.key, resolved_.rest);
    state_->engine.Open(
        url_, state_->OpenOptionsUntil(deadline_),
        [self = shared_from_this()](Opened opened) { self->OnOpened(std::move(opened)); });
  }

  void OnOpened(Opened opened) {
    if (opened) return FinishAsFile(std::move(*opened));
    const Error& error = opened.error();
    if (resolved_.always_file) return Finish(error);
    if (error.code == Code::kIsDirectory) {
      state_->listings.RememberDirectory(child_);
      return FinishAsDirectory();
    }
    if (error.code == Code::kNotFound || error.code == Code::kGone) {
      // A listing that says all there is, and says nothing of this: no second question.
      const bool settled = resolved_.entry || resolved_.complete;
      if (settled && resolved_.fresh) return Finish(error);
      return TryAsDirectory();
    }
    if (!MeansUnreachable(error)) return Finish(error);
    if (error.code != Code::kDeadlineExceeded) state_->listings.NoteUnreachable();
    if (state_->listings.WasDirectory(child_)) return FinishAsDirectory();
    Finish(error);
  }

  void TryAsDirectory() {
    state_->listings.Get(child_, deadline_, [self = shared_from_this()](Result<GotDir> got) {
      if (!got) return self->Finish(std::move(got).error());
      if (got->presence != DirPresence::kPresent) {
        return self->Finish(MakeError(Code::kNotFound, core::RedactUrl(self->url_.ToString()) +
                                                           ": no such file or directory"));
      }
      self->state_->listings.RememberDirectory(self->child_);
      self->FinishAsDirectory();
    });
  }

  void FinishAsFile(std::shared_ptr<Object> object) {
    Found found;
    found.kind = EntryKind::kFile;
    found.url = std::move(url_);
    const int64_t modified = object->facts().meta.last_modified;
    if (modified >= 0) found.mtime = modified;
    if (!found.mtime && resolved_.entry) found.mtime = resolved_.entry->mtime;
    found.object = std::move(object);
    Finish(std::move(found));
  }

  void FinishAsDirectory() {
    Found found;
    found.kind = EntryKind::kDirectory;
    found.dir.key = child_;
    found.url = state_->listings.UrlOf(child_);
    if (resolved_.entry) found.mtime = resolved_.entry->mtime;
    Finish(std::move(found));
  }

  void Finish(Result<Found> result) {
    LookupDone done = std::move(done_);
    done(std::move(result));
  }

  const std::shared_ptr<State> state_;
  const DirRef dir_;
  const std::string name_;
  const TimePoint deadline_;
  LookupDone done_;
  Resolved resolved_;
  std::string child_;  // the key it has if it is a directory
  Url url_;            // the one it has if it is a file
  bool relisted_ = false;
};

// Opens the files of one listing, some at a time. What comes of it the engine keeps.
class HttpNamespace::ProbeRun : public std::enable_shared_from_this<ProbeRun> {
 public:
  ProbeRun(std::shared_ptr<State> state, std::string dir, std::shared_ptr<const DirListing> listing)
      : state_(std::move(state)), dir_(std::move(dir)), listing_(std::move(listing)) {}
  ~ProbeRun() { state_->probe_runs.fetch_sub(1, std::memory_order_relaxed); }

  // Starts what may be started. A completion on this stack finds it running and leaves the rest to
  // it.
  void Pump() {
    {
      core::MutexLock lock(mu_);
      if (pumping_) return;
      pumping_ = true;
    }
    while (const ListedEntry* const entry = TakeNext()) {
      const Url url = state_->UrlOf(dir_, listing_->SegmentOf(*entry));
      if (state_->engine.OpenCached(url)) {
        Done(true);
        continue;
      }
      const TimePoint deadline = state_->engine.scheduler().clock().Now() + kProbeTimeout;
      state_->engine.Open(url, state_->OpenOptionsUntil(deadline),
                          [self = shared_from_this()](const Opened& opened) {
                            self->Done(opened || !MeansUnreachable(opened.error()));
                            self->Pump();
                          });
    }
  }

 private:
  // Null, and no longer pumping, when enough are under way or there is nothing left.
  const ListedEntry* TakeNext() {
    core::MutexLock lock(mu_);
    const auto& entries = listing_->shown()->entries;
    const bool over =
        state_->stopped.load(std::memory_order_relaxed) || failures_in_row_ >= kProbeFailuresInRow;
    while (!over && active_ < kProbesAtOnce && next_ < entries.size() &&
           taken_ < kProbesPerListing) {
      const ListedEntry& entry = entries[next_++];
      if (entry.kind != EntryKind::kFile) continue;
      ++taken_;
      ++active_;
      return &entry;
    }
    pumping_ = false;
    return nullptr;
  }

  void Done(bool reached) {
    core::MutexLock lock(mu_);
    --active_;
    failures_in_row_ = reached ? 0 : failures_in_row_ + 1;
  }

  const std::shared_ptr<State> state_;
  const std::string dir_;
  const std::shared_ptr<const DirListing> listing_;

  core::Mutex mu_;  // leaf
  bool pumping_ GUARDED_BY(mu_) = false;
  size_t next_ GUARDED_BY(mu_) = 0;
  size_t taken_ GUARDED_BY(mu_) = 0;
  size_t active_ GUARDED_BY(mu_) = 0;
  size_t failures_in_row_ GUARDED_BY(mu_) = 0;
};

Result<std::unique_ptr<HttpNamespace>> HttpNamespace::Create(HttpNamespaceOptions options,
                                                             core::Engine& engine,
                                                             core::Scheduler& worker,
                                                             core::Random& random) {
  if (options.root.query) {
    return MakeError(Code::kInvalidArgument,
                     core::RedactUrl(options.root.ToString()) +
                         ": a directory's URL can't have a query, because the names in it are "
                         "appended to its path; leave out the '?' and what follows");
  }
  options.root.userinfo.clear();
  if (!options.root.path.ends_with('/')) options.root.path += '/';
  auto state = std::make_shared<State>(std::move(options), engine, worker, random);
  return std::unique_ptr<HttpNamespace>(new HttpNamespace(std::move(state)));
}

HttpNamespace::~HttpNamespace() { Stop(); }

void HttpNamespace::Lookup(const DirRef& dir, std::string_view name, TimePoint deadline,
                           LookupDone done) {
  std::make_shared<LookupOp>(state_, dir, name, deadline, std::move(done))->Begin();
}

void HttpNamespace::List(const DirRef& dir, TimePoint deadline, ListDone done) {
  if (!IsDirKey(dir.key)) return done(NotADirectory(dir.key));
  state_->listings.Get(
      dir.key, deadline,
      [state = state_, key = dir.key, done = std::move(done)](Result<GotDir> got) mutable {
        if (!got) return done(std::move(got).error());
        if (got->problem != nullptr) state->listings.WarnOfNoListing(key, *got->problem);
        if (got->presence == DirPresence::kUnauthorized) {
          return done(MakeError(Code::kUnauthorized, got->problem->context));
        }
        done(got->listing->shown());
      });
}

std::optional<Url> HttpNamespace::RootUrl() const { return state_->options.root; }

ListingReport HttpNamespace::ExplainListing(const DirRef& dir) const {
  return state_->listings.Explain(dir.key);
}

std::optional<DirRef> HttpNamespace::DirOfUrl(const Url& url) const {
  const std::string root = state_->listings.UrlOf("").ToString();
  Url plain = url;
  plain.userinfo.clear();
  const std::string text = plain.ToString();
  if (!text.starts_with(root)) return std::nullopt;
  DirRef dir{text.substr(root.size())};
  return IsDirKey(dir.key) ? std::optional(std::move(dir)) : std::nullopt;
}

void HttpNamespace::ProbeAhead(const DirRef& dir) {
  if (state_->stopped || state_->probe_runs.load(std::memory_order_relaxed) >= kProbeRunsAtOnce) {
    return;
  }
  auto listing = state_->listings.TakeForProbing(dir.key);
  if (listing == nullptr) return;
  state_->probe_runs.fetch_add(1, std::memory_order_relaxed);
  std::make_shared<ProbeRun>(state_, dir.key, std::move(listing))->Pump();
}

Result<Url> HttpNamespace::UrlOf(const DirRef& dir, std::string_view name) const {
  TRY_ASSIGN(const Resolved resolved, state_->Resolve(dir, name));
  return state_->UrlOf(dir.key, resolved.rest);
}

Result<DirRef> HttpNamespace::DirOf(const DirRef& dir, std::string_view name) const {
  TRY_ASSIGN(const Resolved resolved, state_->Resolve(dir, name));
  if (resolved.always_file || (resolved.entry && resolved.entry->kind == EntryKind::kFile)) {
    return MakeError(Code::kNotFound, "'" + core::EscapeForeign(name) + "' is a file");
  }
  return DirRef{dir.key + resolved.rest + "/"};
}

void HttpNamespace::Stop() {
  state_->stopped = true;
  state_->listings.Stop();
}

}  // namespace dartfs::fs
