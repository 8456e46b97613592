// AnyNamespace: every URL as <scheme>/<host[:port]>/<path...> (DESIGN.md section 8; NAMES.md). The
// root holds `http` and `https`. Below them any name that can mean an origin is a directory,
// without a request; below that, names are HttpNamespace's.
//
// A scheme's directory lists the origins of which something has been found since the mount began:
// some, in the order of their names.
//
// A DirRef's key is "", "<scheme>/", or UrlSpace::Any's.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/base/mutex.h"
#include "core/base/random.h"
#include "core/base/scheduler.h"
#include "core/engine/engine.h"
#include "fs/http_namespace.h"
#include "fs/namespace.h"

namespace dartfs::fs {

struct AnyNamespaceOptions {
  core::Duration ttl = std::chrono::seconds(60);  // of listings and of versions
  bool immutable = false;                         // as in core::OpenOptions
};

class AnyNamespace final : public Namespace {
 public:
  // Asks nobody. Engine, worker and random as HttpNamespace::Create's.
  static core::Result<std::unique_ptr<AnyNamespace>> Create(AnyNamespaceOptions options,
                                                            core::Engine& engine,
                                                            core::Scheduler& worker,
                                                            core::Random& random);

  DirRef Root() const override { return {}; }
  void Lookup(const DirRef& dir, std::string_view name, core::TimePoint deadline,
              LookupDone done) override;
  void Open(const DirRef& dir, std::string_view name, core::TimePoint deadline,
            LookupDone done) override;
  void List(const DirRef& dir, core::TimePoint deadline, ListDone done) override;
  void ProbeAhead(const DirRef& dir) override;
  std::optional<Found> Known(const DirRef& dir, const ListedEntry& entry) override;
  // kNotFound for the schemes: they have no URL.
  core::Result<core::Url> UrlOf(const DirRef& dir, std::string_view name) const override;
  core::Result<DirRef> DirOf(const DirRef& dir, std::string_view name) const override;
  std::optional<DirRef> DirOfUrl(const core::Url& url) const override;
  ListingReport ExplainListing(const DirRef& dir) const override;
  void Stop() override { origins_->Stop(); }

 private:
  struct Seen;
  AnyNamespace(std::unique_ptr<HttpNamespace> origins, std::shared_ptr<Seen> seen)
      : origins_(std::move(origins)), seen_(std::move(seen)) {}
  std::shared_ptr<const Listing> ListOwn(const DirRef& dir) const;

  const std::unique_ptr<HttpNamespace> origins_;
  const std::shared_ptr<Seen> seen_;
};

}  // namespace dartfs::fs
