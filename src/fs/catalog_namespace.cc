#include "fs/catalog_namespace.h"

#include <malloc.h>

#include <utility>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/text.h"
#include "core/engine/object.h"
#include "fs/catalog.h"
#include "fs/name_mapping.h"
#include "fs/prober.h"
#include "fs/stated_sizes.h"

namespace dartfs::fs {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;
using core::TimePoint;
using core::Url;

namespace {

using CatalogPtr = std::shared_ptr<const Catalog>;

core::Error NoSuchName(const DirRef& dir, std::string_view name) {
  return MakeError(Code::kNotFound,
                   "'" + ShownPath(dir.key + std::string(name)) + "' is not in the catalogue");
}

}  // namespace

struct CatalogNamespace::State : std::enable_shared_from_this<State> {
  State(CatalogNamespaceOptions o, core::Engine& e)
      : options(std::move(o)), engine(e), probes(e, OpenOptionsUntil(core::kNoDeadline)) {}

  const CatalogNamespaceOptions options;
  core::Engine& engine;
  Prober probes;
  mutable core::Mutex mu;  // leaf
  CatalogPtr catalog GUARDED_BY(mu);
  StatedSizes sizes;

  // A file of the catalogue, which it keeps.
  struct File {
    CatalogPtr catalog;
    Catalog::Id id = Catalog::kRoot;
    Url url;
    std::string digest;
  };

  CatalogPtr Current() const {
    core::MutexLock lock(mu);
    return catalog;
  }

  core::OpenOptions OpenOptionsUntil(TimePoint deadline) const {
    core::OpenOptions open;
    open.ttl = options.ttl;
    open.immutable = options.immutable;
    open.deadline = deadline;
    return open;
  }

  Status Load() {
    TRY_ASSIGN(CatalogPtr loaded, Catalog::Load(options.path));
    LOG_INFO("catalogue {}: {} files", EscapeForeign(options.path), loaded->files());
    {
      core::MutexLock lock(mu);
      catalog.swap(loaded);
    }
    sizes.Forget();
    loaded.reset();
    // What was needed for parsing, and perhaps the old catalogue: many times what is left.
    malloc_trim(0);
    return {};
  }

  static std::optional<Catalog::Id> Find(const Catalog& catalog, const DirRef& dir,
                                         std::string_view name) {
    const auto parent = catalog.FindDir(dir.key);
    return parent ? catalog.Find(*parent, name) : std::nullopt;
  }

  static File FileOf(const CatalogPtr& catalog, Catalog::Id id) {
    auto url = core::ParseUrl(catalog->UrlOf(id));
    DARTFS_CHECK(url.has_value());  // the parser has looked at it
    return {catalog, id, std::move(*url), catalog->DigestOf(id)};
  }

  // A size that the catalogue states and that may be believed.
  std::optional<uint64_t> SizeOf(const Catalog& tree, Catalog::Id id) const {
    const auto size = tree.SizeOf(id);
    return size && sizes.Believed(tree.UrlOf(id), *size) ? size : std::nullopt;
  }

  // Another URL or digest in the line is another promise.
  std::optional<Promise> PromiseOf(const File& file) const {
    const auto size = SizeOf(*file.catalog, file.id);
    if (!size) return std::nullopt;
    const uint64_t hash = core::Xxh3(std::string(file.catalog->UrlOf(file.id)) + ' ' + file.digest);
    return Promise{*size, std::string(reinterpret_cast<const char*>(&hash), sizeof hash)};
  }

  void Distrust(const File& file, uint64_t stated, uint64_t size) {
    if (!sizes.Disbelieve(file.catalog->UrlOf(file.id), stated)) return;
    LOG_WARN(
        "{}:{}: {} has {} bytes, not {} as the catalogue states; the file is shown as it is "
        "served: correct the line",
        EscapeForeign(file.catalog->file()), file.catalog->LineOf(file.id),
        core::RedactUrl(file.url.ToString()), size, stated);
  }

  // `object`: as the origin has just said, or of the promised size, or null.
  Found FoundFile(const File& file, std::shared_ptr<core::Object> object) {
    Found found;
    found.promise = PromiseOf(file);
    found.url = file.url;
    found.mtime = file.catalog->mtime();
    if (object == nullptr) return found;
    const int64_t modified = object->facts().meta.last_modified;
    if (modified >= 0) found.mtime = modified;
    if (found.promise && found.promise->size != object->size()) {
      Distrust(file, found.promise->size, object->size());
      found.promise.reset();
    }
    found.object = std::move(object);
    return found;
  }

  // As far as it goes without asking anybody; nullopt also where what is known and what is stated
  // contradict each other.
  std::optional<Found> KnownChild(const CatalogPtr& tree, const DirRef& dir, Catalog::Id id) {
    if (tree->IsDir(id)) {
      Found found;
      found.kind = EntryKind::kDirectory;
      found.dir.key = dir.key + std::string(tree->NameOf(id)) + "/";
      found.mtime = tree->mtime();
      return found;
    }
    const File file = FileOf(tree, id);
    if (Contradicts(engine, file.url, file.digest, PromiseOf(file))) return std::nullopt;
    auto opened = engine.OpenCached(file.url, file.digest);
    Found found = FoundFile(file, opened && *opened ? std::move(**opened) : nullptr);
    return found.object || found.promise ? std::optional(std::move(found)) : std::nullopt;
  }

  void OpenFile(File file, TimePoint deadline, LookupDone done) {
    core::OpenOptions open = OpenOptionsUntil(deadline);
    open.digest = file.digest;
    open.revalidate = Contradicts(engine, file.url, file.digest, PromiseOf(file));
    const Url url = file.url;
    engine.Open(url, std::move(open),
                [self = shared_from_this(), file = std::move(file),
                 done = std::move(done)](Result<std::shared_ptr<core::Object>> opened) mutable {
                  if (!opened) return done(std::move(opened).error());
                  done(self->FoundFile(file, std::move(*opened)));
                });
  }
};

Result<std::unique_ptr<CatalogNamespace>> CatalogNamespace::Create(CatalogNamespaceOptions options,
                                                                   core::Engine& engine) {
  auto state = std::make_shared<State>(std::move(options), engine);
  TRY(state->Load());
  return std::unique_ptr<CatalogNamespace>(new CatalogNamespace(std::move(state)));
}

CatalogNamespace::~CatalogNamespace() { Stop(); }

void CatalogNamespace::Lookup(const DirRef& dir, std::string_view name, TimePoint deadline,
                              LookupDone done) {
  const CatalogPtr tree = state_->Current();
  const auto id = State::Find(*tree, dir, name);
  if (!id) return done(NoSuchName(dir, name));
  if (auto known = state_->KnownChild(tree, dir, *id)) return done(std::move(*known));
  state_->OpenFile(State::FileOf(tree, *id), deadline, std::move(done));
}

void CatalogNamespace::Open(const DirRef& dir, std::string_view name, TimePoint deadline,
                            LookupDone done) {
  const CatalogPtr tree = state_->Current();
  const auto id = State::Find(*tree, dir, name);
  if (!id || tree->IsDir(*id)) return done(NoSuchName(dir, name));
  state_->OpenFile(State::FileOf(tree, *id), deadline, std::move(done));
}

void CatalogNamespace::List(const DirRef& dir, TimePoint, ListDone done) {
  const auto report = ExplainListing(dir);
  if (report.listing == nullptr) return done(NoSuchName(dir, ""));
  done(report.listing);
}

void CatalogNamespace::ProbeAhead(const DirRef& dir) {
  const CatalogPtr tree = state_->Current();
  const auto id = tree->FindDir(dir.key);
  if (!id || !state_->probes.HasRoom()) return;
  const auto [first, last] = tree->ChildrenOf(*id);
  state_->probes.Start(
      last - first, [state = state_, tree, first = first](size_t i) -> std::optional<ProbeTarget> {
        const auto child = static_cast<Catalog::Id>(first + i);
        if (tree->IsDir(child)) return std::nullopt;
        if (state->SizeOf(*tree, child)) return std::nullopt;
        State::File file = State::FileOf(tree, child);
        return ProbeTarget{std::move(file.url), std::move(file.digest)};
      });
}

std::optional<Found> CatalogNamespace::Known(const DirRef& dir, const ListedEntry& entry) {
  const CatalogPtr tree = state_->Current();
  const auto id = State::Find(*tree, dir, entry.name);
  return id ? state_->KnownChild(tree, dir, *id) : std::nullopt;
}

Result<Url> CatalogNamespace::UrlOf(const DirRef& dir, std::string_view name) const {
  const CatalogPtr tree = state_->Current();
  const auto id = State::Find(*tree, dir, name);
  if (!id) return NoSuchName(dir, name);
  if (!tree->IsDir(*id)) return State::FileOf(tree, *id).url;
  return MakeError(Code::kNotFound, "'" + ShownPath(dir.key + std::string(name)) +
                                        "' is a directory of the catalogue and has no URL");
}

Result<DirRef> CatalogNamespace::DirOf(const DirRef& dir, std::string_view name) const {
  const CatalogPtr tree = state_->Current();
  const auto id = State::Find(*tree, dir, name);
  if (!id) return NoSuchName(dir, name);
  if (tree->IsDir(*id)) return DirRef{dir.key + std::string(name) + "/"};
  return MakeError(Code::kNotFound, "'" + ShownPath(name) + "' is a file");
}

std::string CatalogNamespace::DigestOf(const DirRef& dir, std::string_view name) const {
  const CatalogPtr tree = state_->Current();
  const auto id = State::Find(*tree, dir, name);
  return id && !tree->IsDir(*id) ? tree->DigestOf(*id) : "";
}

ListingReport CatalogNamespace::ExplainListing(const DirRef& dir) const {
  const CatalogPtr tree = state_->Current();
  const auto id = tree->FindDir(dir.key);
  ListingReport report;
  if (!id) return report;
  auto listing = std::make_shared<Listing>();
  const auto [first, last] = tree->ChildrenOf(*id);
  listing->entries.reserve(last - first);
  for (Catalog::Id child = first; child < last; ++child) {
    ListedEntry entry;
    entry.name = tree->NameOf(child);
    entry.kind = tree->IsDir(child) ? EntryKind::kDirectory : EntryKind::kFile;
    if (entry.kind == EntryKind::kFile) entry.size = tree->SizeOf(child);
    listing->entries.push_back(std::move(entry));
  }
  report.listing = std::move(listing);
  return report;
}

Status CatalogNamespace::Reload() { return state_->Load(); }

void CatalogNamespace::Stop() { state_->probes.Stop(); }

}  // namespace dartfs::fs
