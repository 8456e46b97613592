// What a mount shows, as its user writes it (DESIGN.md section 8):
//
//   http://host/path/    the directory at that URL; https:// likewise
//   catalog:/etc/x.tsv   the tree that a catalogue spells out (CATALOG.md)
//   any                  all of them, as <scheme>/<host[:port]>/<path...>
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/random.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/base/url.h"
#include "core/engine/engine.h"
#include "fs/namespace.h"

namespace dartfs::fs {

// For messages and help.
inline constexpr std::string_view kSourceForms =
    "the URL of a directory (http:// or https://), catalog:/PATH or any";

enum class SourceKind : uint8_t { kUrl, kCatalog, kAny };

struct Source {
  SourceKind kind = SourceKind::kAny;
  core::Url url;     // kUrl: may hold a login, has no query
  std::string path;  // kCatalog: absolute
};

// Pure. kInvalidArgument, with what would be right; nothing secret is quoted.
core::Result<Source> ParseSource(std::string_view text);

struct NamespaceOptions {
  std::string authorization;  // of a URL's origin: for listings and opens, as in core::OpenOptions
  core::Duration ttl = std::chrono::seconds(60);  // of listings and of versions
  bool immutable = false;                         // as in core::OpenOptions
};

// Asks nobody; reads a catalogue. Errors: ParseSource's and CatalogNamespace::Create's. Engine,
// worker and random outlive the namespace and what it began: Stop, then stop the engine. Tasks of
// `worker` read and write the index and parse listings: give it one thread of its own.
core::Result<std::unique_ptr<Namespace>> MakeNamespace(std::string_view source,
                                                       NamespaceOptions options,
                                                       core::Engine& engine,
                                                       core::Scheduler& worker,
                                                       core::Random& random);

}  // namespace dartfs::fs
