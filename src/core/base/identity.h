// Identity: the names of an object, made of its URL and the operator's options (IDENTITY.md). Pure.
//
//   local ID    what is the same object on this node: exact path bytes, query without signatures
//   digest      instead of it where the object is content-addressed
//   store key   16 bytes of SHA-256 over one of them and the version (store_key.h, version.h)
//   wire ID     routing among nodes only (wire_id.h)
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest.h"
#include "core/base/result.h"
#include "core/base/store_key.h"
#include "core/base/url.h"
#include "core/base/version.h"
#include "core/base/wire_id.h"

namespace dartfs::core {

struct IdentityOptions {
  std::string cache_namespace = "dart";
  std::vector<std::string> ignore_query = {};     // parameter names, exact case, as written in URLs
  bool oci_digest_only = false;                   // no digest from a registry's object store layout
  std::vector<std::string> trusted_origins = {};  // host patterns: "host" or "*.domain"
};

// kInvalidArgument with the offending value. MakeIdentity requires options that pass.
Status ValidateIdentityOptions(const IdentityOptions& options);

struct Identity {
  std::string cache_namespace;
  std::string local_id;
  std::optional<Digest> digest;  // present: content-addressed, named by it
  std::string wire_id;
  std::string authority;     // Url::Authority of the URL that was asked for
  std::string trust_domain;  // who shares the object while it is unverified
  std::string redacted_url;  // for people: no userinfo, no query

  bool content_addressed() const { return digest.has_value(); }
};

// `declared` is a digest the operator states (a catalogue line): it wins over one in the URL. The
// wire ID is that of the URL alone, so that every node routes alike.
//
// trust_domain is the authority, or "<scheme>://*" (no host's) for all trusted origins of one
// scheme: plain http must not decide what an https origin's readers get.
Identity MakeIdentity(const Url& url, const IdentityOptions& options,
                      std::optional<Digest> declared = std::nullopt);

// The local ID alone. Parameters of a signature family (IDENTITY.md's table) go if all its markers
// are there, names compared byte by byte: case matters, nothing is decoded. What is left keeps its
// bytes and order; if that is nothing, the '?' goes too. LocalId of a local ID is itself.
std::string LocalId(const Url& url, const IdentityOptions& options);

// The digest in the URL's last segment or registry layout; exact path bytes, so "sha256%3A" is
// none.
std::optional<Digest> DigestOfUrl(const Url& url, const IdentityOptions& options);

// Whether the whole object has been hashed and matched its digest. Of no effect without a digest.
enum class Trust { kUnverified, kVerified };

// What a record holds beside the version, and compares when it is opened by its key.
struct ObjectName {
  char kind = 'u';  // 'u' local ID, 'd' digest
  std::string id;   // for an unverified digest followed by 0x1F and the trust domain
  bool operator==(const ObjectName&) const = default;
};
ObjectName NameOfObject(const Identity& identity, Trust trust);

// A content-addressed object has the empty version, whatever `version` is.
StoreKey MakeStoreKey(const Identity& identity, const Version& version, Trust trust);
// The same from a record. kInvalidArgument for names NameOfObject does not make.
Result<StoreKey> MakeStoreKey(std::string_view cache_namespace, const ObjectName& name,
                              const Version& version);

// X-DARTFS-Object: for a digest always without the origin part.
StoreKey PeerObjectKey(const Identity& identity, const Version& version);

// When a peer's bytes may become this object's, and this object's may go to a peer.
enum class PeerRule {
  kNever,     // unversioned
  kEcho,      // only with the matching X-DARTFS-Object
  kNoEcho,    // also without: declared immutable, and the local ID equals the wire ID
  kByDigest,  // also without: the digest decides at the end
};
PeerRule PeerRuleOf(const Identity& identity, const Version& version);

}  // namespace dartfs::core
