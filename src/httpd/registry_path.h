// What a request below /v2/ asks of a registry, by its target as it came (the routes and names of
// the OCI distribution specification). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace dartfs::httpd {

enum class RegistryRoute : uint8_t {
  kBase,       // /v2/
  kCatalog,    // /v2/_catalog
  kBlob,       // /v2/<name>/blobs/<digest>
  kManifest,   // /v2/<name>/manifests/<tag or digest>
  kTags,       // /v2/<name>/tags/list
  kReferrers,  // /v2/<name>/referrers/<digest>
  kUploads,    // /v2/<name>/blobs/uploads/<id>
  kOther,      // what else a registry may offer there
};

struct RegistryPath {
  RegistryRoute route = RegistryRoute::kOther;
  std::string name;       // of the repository; empty for kBase, kCatalog, kOther
  std::string reference;  // the tag, digest or id; else empty
  // Which registry, as containerd's ns= names it: "host" or "host:port", lower case.
  std::optional<std::string> ns;
  // What the registry is asked for: the target's bytes without ns=.
  std::string target;

  // What a token for this is asked for (the distribution project's scope grammar); empty: nothing
  // beyond being let in.
  std::string Scope() const;
};

// Why a request can't be meant: 400, and a code of the specification's.
struct RegistryFault {
  std::string code;  // "NAME_INVALID", ...
  std::string why;   // for people; foreign text in it is escaped
};

// `target` is "/v2" or lies below it, bytes 0x21 to 0x7E. A name, tag or digest that the grammar
// does not know is a fault, and so is a path that two servers could read differently: empty or dot
// segments, percent-escapes, '#'. A digest of an algorithm but sha256 and sha512 passes, its value
// unlooked at.
std::variant<RegistryPath, RegistryFault> ParseRegistryPath(std::string_view target);

// The grammar's <name>, of 255 bytes at most.
bool IsRepositoryName(std::string_view name);

}  // namespace dartfs::httpd
