// HttpNamespace: the names below one directory URL, or below any (DESIGN.md section 8; NAMES.md).
//
// List: the directory's listing, at most one request per directory and time to live; the last one
// known, also over a restart, while the origin can't be reached. Where the origin has none or
// forbids it (403), the listing is empty and not complete, names are found by looking them up, and
// the log says so; where it wants a login (401), kUnauthorized.
//
// Lookup: a name listed as a directory, or as a file of an exact size, costs no request while the
// listing is fresh; anything else is opened through the engine. A file that turns out to have
// another size than was listed is looked up through the engine from then on. A redirect to the same
// path plus "/" means a directory. After a 404 the name plus "/" is tried, unless a fresh and
// complete listing lacks it. 401 and 403 are kForbidden or kUnauthorized; an origin out of reach
// leaves what the index remembers, else its error.
//
// A DirRef's key is a UrlSpace's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/random.h"
#include "core/base/scheduler.h"
#include "core/engine/engine.h"
#include "fs/dir_listings.h"
#include "fs/namespace.h"

namespace dartfs::fs {

struct HttpNamespaceOptions {
  core::Url root;             // "/" is added where it does not end so; a login in it is not used
  bool any = false;           // every URL instead, for AnyNamespace: keys are UrlSpace::Any's
  std::string authorization;  // for listings and opens, as in core::OpenOptions
  core::Duration ttl = std::chrono::seconds(60);  // of listings and of versions
  bool immutable = false;                         // as in core::OpenOptions
};

class HttpNamespace final : public Namespace {
 public:
  // kInvalidArgument: the URL has a query (names could not be appended to it). Asks nobody. Engine,
  // worker and random outlive the namespace and what it began: Stop, then stop the engine. Tasks of
  // `worker` read and write the index and parse listings: give it one thread of its own.
  static core::Result<std::unique_ptr<HttpNamespace>> Create(HttpNamespaceOptions options,
                                                             core::Engine& engine,
                                                             core::Scheduler& worker,
                                                             core::Random& random);
  ~HttpNamespace() override;

  DirRef Root() const override { return {}; }
  void Lookup(const DirRef& dir, std::string_view name, core::TimePoint deadline,
              LookupDone done) override;
  void Open(const DirRef& dir, std::string_view name, core::TimePoint deadline,
            LookupDone done) override;
  void List(const DirRef& dir, core::TimePoint deadline, ListDone done) override;
  void ProbeAhead(const DirRef& dir) override;
  std::optional<Found> Known(const DirRef& dir, const ListedEntry& entry) override;
  core::Result<core::Url> UrlOf(const DirRef& dir, std::string_view name) const override;
  core::Result<DirRef> DirOf(const DirRef& dir, std::string_view name) const override;

  std::optional<core::Url> RootUrl() const override;
  std::optional<DirRef> DirOfUrl(const core::Url& url) const override;
  ListingReport ExplainListing(const DirRef& dir) const override;
  // Listings and probing.
  void Stop() override;

 private:
  struct State;
  class LookupOp;
  explicit HttpNamespace(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;
};

}  // namespace dartfs::fs
