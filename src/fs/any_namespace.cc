#include "fs/any_namespace.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/text.h"
#include "fs/habit_names.h"
#include "fs/url_space.h"

namespace dartfs::fs {

using core::Code;
using core::MakeError;
using core::Result;
using core::TimePoint;
using core::Url;

namespace {

constexpr size_t kMaxSeen = 1024;  // origins that are listed
constexpr std::array<std::string_view, 2> kSchemes = {"http", "https"};

// The directories above the origins.
bool IsRoot(const DirRef& dir) { return dir.key.empty(); }
bool IsScheme(const DirRef& dir) { return dir.key == "http/" || dir.key == "https/"; }
bool IsOwn(const DirRef& dir) { return IsRoot(dir) || IsScheme(dir); }

std::string_view SchemeOf(const DirRef& dir) {
  return std::string_view(dir.key).substr(0, dir.key.size() - 1);
}

Found Directory(std::string key) {
  Found found;
  found.kind = EntryKind::kDirectory;
  found.dir.key = std::move(key);
  return found;
}

// What a name in the root or in a scheme's directory means.
Result<Found> FindOwn(const DirRef& dir, std::string_view name) {
  if (IsRoot(dir)) {
    if (std::find(kSchemes.begin(), kSchemes.end(), name) != kSchemes.end()) {
      return Directory(std::string(name) + "/");
    }
    return MakeError(Code::kNotFound,
                     "'" + core::EscapeForeign(name) +
                         "' is no scheme; here are the directories http and https");
  }
  const auto origin = IsAskedByHabit(name) ? std::nullopt : OriginOfName(SchemeOf(dir), name);
  if (!origin) {
    return MakeError(Code::kNotFound,
                     "'" + core::EscapeForeign(name) +
                         "' is not a host, or a host and a port as in localhost:8080");
  }
  Found found = Directory(dir.key + origin->HostPort() + "/");
  found.url = origin;
  return found;
}

}  // namespace

struct AnyNamespace::Seen {
  core::Mutex mu;                              // leaf
  std::set<std::string> sites GUARDED_BY(mu);  // keys of origins' root directories

  void Note(std::string_view key) {
    const std::string_view site = UrlSpace::Any().SiteOf(key);
    core::MutexLock lock(mu);
    if (sites.size() < kMaxSeen) sites.emplace(site);
  }
};

Result<std::unique_ptr<AnyNamespace>> AnyNamespace::Create(AnyNamespaceOptions options,
                                                           core::Engine& engine,
                                                           core::Scheduler& worker,
                                                           core::Random& random) {
  HttpNamespaceOptions origins;
  origins.any = true;
  origins.ttl = options.ttl;
  origins.immutable = options.immutable;
  TRY_ASSIGN(auto made, HttpNamespace::Create(std::move(origins), engine, worker, random));
  return std::unique_ptr<AnyNamespace>(new AnyNamespace(std::move(made), std::make_shared<Seen>()));
}

void AnyNamespace::Lookup(const DirRef& dir, std::string_view name, TimePoint deadline,
                          LookupDone done) {
  if (IsOwn(dir)) return done(FindOwn(dir, name));
  origins_->Lookup(
      dir, name, deadline,
      [seen = seen_, key = dir.key, done = std::move(done)](Result<Found> found) mutable {
        if (found) seen->Note(key);
        done(std::move(found));
      });
}

void AnyNamespace::Open(const DirRef& dir, std::string_view name, TimePoint deadline,
                        LookupDone done) {
  if (IsOwn(dir)) return done(FindOwn(dir, name));
  origins_->Open(dir, name, deadline, std::move(done));
}

void AnyNamespace::List(const DirRef& dir, TimePoint deadline, ListDone done) {
  if (IsOwn(dir)) return done(ListOwn(dir));
  origins_->List(dir, deadline,
                 [seen = seen_, key = dir.key,
                  done = std::move(done)](Result<std::shared_ptr<const Listing>> listing) mutable {
                   if (listing && !(*listing)->entries.empty()) seen->Note(key);
                   done(std::move(listing));
                 });
}

std::shared_ptr<const Listing> AnyNamespace::ListOwn(const DirRef& dir) const {
  auto listing = std::make_shared<Listing>();
  const auto add = [&](std::string_view name) {
    ListedEntry entry;
    entry.name = name;
    entry.kind = EntryKind::kDirectory;
    listing->entries.push_back(std::move(entry));
  };
  if (IsRoot(dir)) {
    for (const std::string_view scheme : kSchemes) add(scheme);
    return listing;
  }
  listing->complete = false;
  core::MutexLock lock(seen_->mu);
  for (auto it = seen_->sites.lower_bound(dir.key);
       it != seen_->sites.end() && it->starts_with(dir.key); ++it) {
    const std::string_view site = *it;
    add(site.substr(dir.key.size(), site.size() - dir.key.size() - 1));
  }
  // By name; the keys' order has the '/' behind it.
  std::sort(listing->entries.begin(), listing->entries.end(),
            [](const ListedEntry& a, const ListedEntry& b) { return a.name < b.name; });
  return listing;
}

void AnyNamespace::ProbeAhead(const DirRef& dir) {
  if (!IsOwn(dir)) origins_->ProbeAhead(dir);
}

std::optional<Found> AnyNamespace::Known(const DirRef& dir, const ListedEntry& entry) {
  if (!IsOwn(dir)) return origins_->Known(dir, entry);
  auto found = FindOwn(dir, entry.name);
  return found ? std::optional(std::move(*found)) : std::nullopt;
}

Result<Url> AnyNamespace::UrlOf(const DirRef& dir, std::string_view name) const {
  if (!IsOwn(dir)) return origins_->UrlOf(dir, name);
  TRY_ASSIGN(const Found found, FindOwn(dir, name));
  if (found.url) return *found.url;
  return MakeError(Code::kNotFound, "'" + std::string(name) + "' has no URL; name a host in it");
}

Result<DirRef> AnyNamespace::DirOf(const DirRef& dir, std::string_view name) const {
  if (!IsOwn(dir)) return origins_->DirOf(dir, name);
  TRY_ASSIGN(Found found, FindOwn(dir, name));
  return std::move(found.dir);
}

std::optional<DirRef> AnyNamespace::DirOfUrl(const Url& url) const {
  return origins_->DirOfUrl(url);
}

ListingReport AnyNamespace::ExplainListing(const DirRef& dir) const {
  if (!IsOwn(dir)) return origins_->ExplainListing(dir);
  ListingReport report;
  report.listing = ListOwn(dir);
  return report;
}

}  // namespace dartfs::fs
