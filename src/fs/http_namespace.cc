#include "fs/http_namespace.h"

#include <optional>
#include <utility>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/engine/object.h"
#include "fs/habit_names.h"
#include "fs/name_mapping.h"
#include "fs/prober.h"
#include "fs/stated_sizes.h"
#include "fs/url_space.h"

namespace dartfs::fs {

using core::Code;
using core::Error;
using core::MakeError;
using core::Object;
using core::Result;
using core::TimePoint;
using core::Url;

namespace {

using Opened = Result<std::shared_ptr<Object>>;

// What a name is, as far as can be told without asking.
struct Resolved {
  std::string rest;  // as it goes over the wire, without a directory's last '/'
  bool always_file = false;
  std::optional<ListedEntry> entry;  // where the directory's listing has it
  bool fresh = false;                // that listing
  bool complete = false;
};

Error NotADirectory(std::string_view key) {
  return MakeError(Code::kInvalidArgument,
                   "'" + core::EscapeForeign(key) + "' is not a directory of this mount");
}

}  // namespace

struct HttpNamespace::State {
  State(HttpNamespaceOptions o, core::Engine& e, core::Scheduler& worker, core::Random& random)
      : options(std::move(o)),
        space(options.any ? UrlSpace::Any() : UrlSpace::Below(options.root)),
        engine(e),
        listings({.space = space, .authorization = options.authorization, .ttl = options.ttl}, e,
                 worker, random),
        probes(e, OpenOptionsUntil(core::kNoDeadline)) {}

  const HttpNamespaceOptions options;
  const UrlSpace space;
  core::Engine& engine;
  DirListings listings;
  Prober probes;
  StatedSizes sizes;

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
    if (!space.IsKey(dir.key)) return NotADirectory(dir.key);
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

  // What a fresh listing says of the file, where it may be believed.
  std::optional<Promise> PromiseOf(const ListedEntry& entry, const Url& url) {
    if (entry.kind != EntryKind::kFile || !entry.size) return std::nullopt;
    if (!sizes.Believed(url.ToString(), *entry.size)) return std::nullopt;
    return Promise{*entry.size, entry.mtime ? std::to_string(*entry.mtime) : ""};
  }

  void Distrust(const Url& url, uint64_t listed, uint64_t size) {
    if (!sizes.Disbelieve(url.ToString(), listed)) return;
    LOG_WARN(
        "{}: listed with {} bytes, but the origin serves {}; the file is shown as it is served",
        core::RedactUrl(url.ToString()), listed, size);
  }

  // The file as it is known without asking anybody: its version, or what a fresh listing promises;
  // nullopt also where these contradict each other.
  std::optional<Found> KnownFile(const std::optional<ListedEntry>& entry, bool fresh,
                                 const Url& url) {
    Found found;
    if (entry && fresh) found.promise = PromiseOf(*entry, url);
    if (Contradicts(engine, url, {}, found.promise)) return std::nullopt;
    auto opened = engine.OpenCached(url);
    if (opened && *opened) found.object = std::move(**opened);
    if (!found.object && !found.promise) return std::nullopt;
    CompleteFile(found, entry, url);
    return found;
  }

  void CompleteFile(Found& found, const std::optional<ListedEntry>& entry, const Url& url) {
    found.kind = EntryKind::kFile;
    found.url = url;
    if (found.object) {
      const int64_t modified = found.object->facts().meta.last_modified;
      if (modified >= 0) found.mtime = modified;
      if (found.promise && found.promise->size != found.object->size()) {
        Distrust(url, found.promise->size, found.object->size());
        found.promise.reset();
      }
    }
    if (!found.mtime && entry) found.mtime = entry->mtime;
  }
};

// One lookup on its way; kept alive by the completion it waits for.
class HttpNamespace::LookupOp : public std::enable_shared_from_this<LookupOp> {
 public:
  // `opening`: a promise of the listing is not enough.
  LookupOp(std::shared_ptr<State> state, DirRef dir, std::string_view name, bool opening,
           TimePoint deadline, LookupDone done)
      : state_(std::move(state)),
        dir_(std::move(dir)),
        name_(name),
        opening_(opening),
        deadline_(deadline),
        done_(std::move(done)) {}

  void Begin() {
    auto resolved = state_->Resolve(dir_, name_);
    if (!resolved) {
      // Only a listing can tell what such a name stands for.
      if (IsDigestedName(name_) && state_->space.IsKey(dir_.key) && !relisted_) return Relist();
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
    url_ = state_->UrlOf(dir_.key, resolved_.rest);
    if (!opening_ && resolved_.entry && resolved_.entry->size) {
      auto known = state_->KnownFile(resolved_.entry, resolved_.fresh, url_);
      if (known) return Finish(std::move(*known));
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
    core::OpenOptions options = state_->OpenOptionsUntil(deadline_);
    options.revalidate = Contradicts(state_->engine, url_, {}, Promised());
    state_->engine.Open(url_, std::move(options), [self = shared_from_this()](Opened opened) {
      self->OnOpened(std::move(opened));
    });
  }

  std::optional<Promise> Promised() const {
    if (!resolved_.entry || !resolved_.fresh) return std::nullopt;
    return state_->PromiseOf(*resolved_.entry, url_);
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
    if (error.code != Code::kDeadlineExceeded) state_->listings.NoteUnreachable(dir_.key);
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
    found.promise = Promised();
    found.object = std::move(object);
    state_->CompleteFile(found, resolved_.entry, url_);
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
  const bool opening_;
  const TimePoint deadline_;
  LookupDone done_;
  Resolved resolved_;
  std::string child_;  // the key it has if it is a directory
  Url url_;            // the one it has if it is a file
  bool relisted_ = false;
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
  std::make_shared<LookupOp>(state_, dir, name, false, deadline, std::move(done))->Begin();
}

void HttpNamespace::Open(const DirRef& dir, std::string_view name, TimePoint deadline,
                         LookupDone done) {
  std::make_shared<LookupOp>(state_, dir, name, true, deadline, std::move(done))->Begin();
}

std::optional<Found> HttpNamespace::Known(const DirRef& dir, const ListedEntry& entry) {
  const auto resolved = state_->Resolve(dir, entry.name);
  if (!resolved) return std::nullopt;
  if (entry.kind == EntryKind::kFile) {
    return state_->KnownFile(resolved->entry, resolved->fresh,
                             state_->UrlOf(dir.key, resolved->rest));
  }
  if (!resolved->fresh || !resolved->entry) return std::nullopt;
  Found found;
  found.kind = EntryKind::kDirectory;
  found.dir.key = dir.key + resolved->rest + "/";
  found.mtime = entry.mtime;
  return found;
}

void HttpNamespace::List(const DirRef& dir, TimePoint deadline, ListDone done) {
  if (!state_->space.IsKey(dir.key)) return done(NotADirectory(dir.key));
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

std::optional<Url> HttpNamespace::RootUrl() const {
  return state_->options.any ? std::nullopt : std::optional(state_->options.root);
}

ListingReport HttpNamespace::ExplainListing(const DirRef& dir) const {
  return state_->listings.Explain(dir.key);
}

std::optional<DirRef> HttpNamespace::DirOfUrl(const Url& url) const {
  auto key = state_->space.KeyOf(url);
  return key ? std::optional(DirRef{std::move(*key)}) : std::nullopt;
}

// Files whose size the listing states need no probe: a lookup costs nothing.
void HttpNamespace::ProbeAhead(const DirRef& dir) {
  if (!state_->probes.HasRoom()) return;
  const auto listing = state_->listings.TakeForProbing(dir.key);
  if (listing == nullptr) return;
  state_->probes.Start(
      listing->size(),
      [state = state_, listing, dir = dir.key](size_t i) -> std::optional<ProbeTarget> {
        const ListedEntry& entry = listing->shown()->entries[i];
        if (entry.kind != EntryKind::kFile) return std::nullopt;
        ProbeTarget target;
        target.url = state->UrlOf(dir, listing->SegmentOf(entry));
        if (state->PromiseOf(entry, target.url)) return std::nullopt;
        return target;
      });
}

Result<Url> HttpNamespace::UrlOf(const DirRef& dir, std::string_view name) const {
  TRY_ASSIGN(const Resolved resolved, state_->Resolve(dir, name));
  return state_->UrlOf(dir.key, resolved.rest);
}

Result<DirRef> HttpNamespace::DirOf(const DirRef& dir, std::string_view name) const {
  TRY_ASSIGN(const Resolved resolved, state_->Resolve(dir, name));
  if (resolved.always_file || (resolved.entry && resolved.entry->kind == EntryKind::kFile)) {
    return MakeError(Code::kNotFound, "'" + ShownPath(name) + "' is a file");
  }
  return DirRef{dir.key + resolved.rest + "/"};
}

void HttpNamespace::Stop() {
  state_->probes.Stop();
  state_->listings.Stop();
}

}  // namespace dartfs::fs
