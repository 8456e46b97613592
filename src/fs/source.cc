#include "fs/source.h"

#include <utility>

#include "core/base/text.h"
#include "fs/any_namespace.h"
#include "fs/catalog_namespace.h"
#include "fs/http_namespace.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::MakeError;
using core::Result;

constexpr std::string_view kCatalogScheme = "catalog:";

core::Error Wrong(std::string context) {
  return MakeError(Code::kInvalidArgument, std::move(context));
}

// The scheme may be written in any case; of what else it could be the user gets the forms.
bool LooksLikeUrl(std::string_view text) {
  const std::string lower = core::ToLowerAscii(text.substr(0, 8));
  return lower.starts_with("http://") || lower.starts_with("https://");
}

Result<Source> ParseUrlSource(std::string_view text) {
  TRY_ASSIGN(core::Url url, core::ParseUrl(text));
  if (url.query) {
    return Wrong(core::RedactUrl(text) +
                 ": a directory's URL can't have a query, because the names in it are appended to "
                 "its path; leave out the '?' and what follows");
  }
  Source source;
  source.kind = SourceKind::kUrl;
  source.url = std::move(url);
  return source;
}

Result<Source> ParseCatalogSource(std::string_view path) {
  // The node may not run where its user stands, and reads the file again later.
  if (!path.starts_with('/')) {
    return Wrong(
        "catalog:" + core::EscapeForeign(path) +
        ": a catalogue is named by its absolute path, as in catalog:/etc/dartfs/images.tsv");
  }
  Source source;
  source.kind = SourceKind::kCatalog;
  source.path = path;
  return source;
}

Result<std::unique_ptr<Namespace>> MakeHttp(core::Url root, NamespaceOptions options,
                                            core::Engine& engine, core::Scheduler& worker,
                                            core::Random& random) {
  HttpNamespaceOptions http;
  http.root = std::move(root);
  http.authorization = std::move(options.authorization);
  http.ttl = options.ttl;
  http.immutable = options.immutable;
  TRY_ASSIGN(auto made, HttpNamespace::Create(std::move(http), engine, worker, random));
  return std::unique_ptr<Namespace>(std::move(made));
}

Result<std::unique_ptr<Namespace>> MakeCatalog(std::string path, const NamespaceOptions& options,
                                               core::Engine& engine) {
  CatalogNamespaceOptions catalog;
  catalog.path = std::move(path);
  catalog.ttl = options.ttl;
  catalog.immutable = options.immutable;
  TRY_ASSIGN(auto made, CatalogNamespace::Create(std::move(catalog), engine));
  return std::unique_ptr<Namespace>(std::move(made));
}

}  // namespace

Result<Source> ParseSource(std::string_view text) {
  if (LooksLikeUrl(text)) return ParseUrlSource(text);
  if (text.starts_with(kCatalogScheme)) {
    return ParseCatalogSource(text.substr(kCatalogScheme.size()));
  }
  if (text == "any") return Source{};
  return Wrong("'" + core::RedactUrl(text) + "' is not " + std::string(kSourceForms));
}

Result<std::unique_ptr<Namespace>> MakeNamespace(std::string_view text, NamespaceOptions options,
                                                 core::Engine& engine, core::Scheduler& worker,
                                                 core::Random& random) {
  TRY_ASSIGN(Source source, ParseSource(text));
  switch (source.kind) {
    case SourceKind::kUrl:
      return MakeHttp(std::move(source.url), std::move(options), engine, worker, random);
    case SourceKind::kCatalog:
      return MakeCatalog(std::move(source.path), options, engine);
    case SourceKind::kAny:
      break;
  }
  AnyNamespaceOptions any;
  any.ttl = options.ttl;
  any.immutable = options.immutable;
  TRY_ASSIGN(auto made, AnyNamespace::Create(any, engine, worker, random));
  return std::unique_ptr<Namespace>(std::move(made));
}

}  // namespace dartfs::fs
