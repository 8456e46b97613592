// CatalogNamespace: the tree that a catalogue spells out (CATALOG.md). Names, listings and the
// sizes that the catalogue states cost no request; a file without a size is probed like any other
// name. Opening a file asks its origin, whose word wins: where it says another size, the file is
// looked up through the engine from then on, and the log names the line.
//
// A digest makes the file content-addressed by it.
//
// A DirRef's key is the directory's path from the root, in file names, "" or ending in '/'.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/engine/engine.h"
#include "fs/namespace.h"

namespace dartfs::fs {

struct CatalogNamespaceOptions {
  std::string path;                               // of the catalogue
  core::Duration ttl = std::chrono::seconds(60);  // of versions
  bool immutable = false;                         // as in core::OpenOptions
};

class CatalogNamespace final : public Namespace {
 public:
  // Reads the catalogue: errors as Catalog::Load's. The engine outlives the namespace.
  static core::Result<std::unique_ptr<CatalogNamespace>> Create(CatalogNamespaceOptions options,
                                                                core::Engine& engine);
  ~CatalogNamespace() override;

  DirRef Root() const override { return {}; }
  void Lookup(const DirRef& dir, std::string_view name, core::TimePoint deadline,
              LookupDone done) override;
  void Open(const DirRef& dir, std::string_view name, core::TimePoint deadline,
            LookupDone done) override;
  void List(const DirRef& dir, core::TimePoint deadline, ListDone done) override;
  void ProbeAhead(const DirRef& dir) override;
  std::optional<Found> Known(const DirRef& dir, const ListedEntry& entry) override;
  // kNotFound for directories: they have no URL.
  core::Result<core::Url> UrlOf(const DirRef& dir, std::string_view name) const override;
  core::Result<DirRef> DirOf(const DirRef& dir, std::string_view name) const override;
  std::string DigestOf(const DirRef& dir, std::string_view name) const override;
  ListingReport ExplainListing(const DirRef& dir) const override;
  // The file as it is now. The kernel keeps names it knows for their time to live.
  core::Status Reload() override;
  void Stop() override;

 private:
  struct State;
  explicit CatalogNamespace(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const std::shared_ptr<State> state_;
};

}  // namespace dartfs::fs
