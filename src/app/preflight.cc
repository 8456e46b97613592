#include "app/preflight.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/text.h"
#include "fs/catalog.h"
#include "fs/fuse_mount.h"
#include "fs/source.h"
#include "httpd/registry_logins.h"

namespace dartfs::app {
namespace {

using core::Code;
using core::EscapeForeign;
using core::MakeError;
using core::Status;

enum class Place { kNone, kDirectory, kOther };

Place PlaceOf(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) return Place::kNone;
  return S_ISDIR(st.st_mode) ? Place::kDirectory : Place::kOther;
}

Status CheckWritten(const std::string& what, const std::string& path) {
  if (path.empty()) return {};
  TRY(CheckParent(what, path));
  if (PlaceOf(path) != Place::kDirectory) return {};
  return MakeError(Code::kInvalidArgument, what + " " + EscapeForeign(path) + ": is a directory");
}

Status CheckCaFile(const std::string& path) {
  if (path.empty()) return {};
  if (access(path.c_str(), R_OK) != 0) {
    return core::ErrnoError(errno, "--ca-file " + EscapeForeign(path));
  }
  if (PlaceOf(path) != Place::kDirectory) return {};
  return MakeError(Code::kInvalidArgument,
                   "--ca-file " + EscapeForeign(path) + ": is a directory, not a PEM file");
}

// Where the source is a catalogue, every line of it.
Status CheckCatalog(const std::string& source) {
  if (source.empty()) return {};
  TRY_ASSIGN(const fs::Source parsed, fs::ParseSource(source));
  if (parsed.kind != fs::SourceKind::kCatalog) return {};
  auto loaded = fs::Catalog::Load(parsed.path);
  if (!loaded) return std::move(loaded).error();
  return {};
}

}  // namespace

Status CheckParent(const std::string& what, const std::string& path) {
  const std::string parent = path.substr(0, path.rfind('/') + 1);
  if (parent.empty() || PlaceOf(parent) == Place::kDirectory) return {};
  return MakeError(Code::kInvalidArgument, what + " " + EscapeForeign(path) + ": " +
                                               EscapeForeign(parent) +
                                               " is no directory; make it first");
}

Status CheckFiles(const Options& options) {
  TRY(CheckCaFile(options.ca_file));
  TRY(CheckWritten("--log-file", options.log_file));
  TRY(CheckWritten("--pid-file", options.pid_file));
  TRY(CheckWritten("--access-log", options.access_log));
  if (PlaceOf(options.cache_dir) != Place::kOther) return {};
  return MakeError(Code::kInvalidArgument,
                   "--cache-dir " + EscapeForeign(options.cache_dir) + ": is not a directory");
}

Status CheckPlaces(const Options& options) {
  TRY(CheckFiles(options));
  TRY(CheckCatalog(options.source));
  if (!options.registry_auth.empty()) {
    auto logins = httpd::RegistryLogins::Load(options.registry_auth);
    if (!logins) return std::move(logins).error();
  }
  return options.mountpoint.empty() ? Status() : fs::CheckMountpoint(options.mountpoint);
}

}  // namespace dartfs::app
