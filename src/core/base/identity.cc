#include "core/base/identity.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/text.h"

namespace dartfs::core {
namespace {

// A signature family of IDENTITY.md. Lists are separated by spaces; "name*" is a prefix.
struct SignatureFamily {
  std::string_view all_of;  // markers that must all be there
  std::string_view one_of;  // and at least one of these, unless empty
  std::string_view dropped;
  std::string_view kept;  // exceptions to a prefix
};

constexpr SignatureFamily kFamilies[] = {
    {"X-Amz-Signature X-Amz-Credential", "", "X-Amz-*", ""},
    {"Signature Expires", "AWSAccessKeyId GoogleAccessId",
     "Signature Expires AWSAccessKeyId GoogleAccessId x-amz-security-token", ""},
    {"X-Goog-Signature X-Goog-Credential", "", "X-Goog-*", ""},
    {"Signature Key-Pair-Id", "Expires Policy", "Signature Key-Pair-Id Expires Policy", ""},
    {"sig sv", "se si",
     "sig sv se si st sp sr spr sip ss srt skoid sktid skt ske sks skv sdd saoid suoid scid", ""},
    {"Signature OSSAccessKeyId Expires", "", "Signature OSSAccessKeyId Expires security-token", ""},
    // x-oss-process selects other bytes (a scaled image), it is no part of the signature's dress.
    {"x-oss-signature x-oss-credential", "", "x-oss-*", "x-oss-process x-oss-async-process"},
    {"q-signature q-ak", "", "q-* x-cos-security-token", ""},
};

std::string_view ParameterName(std::string_view parameter) {
  return parameter.substr(0, parameter.find('='));
}

bool Matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return name == pattern;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

// Whether `predicate` holds for some item of the list.
template <typename Predicate>
bool AnyItem(std::string_view list, Predicate predicate) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (predicate(list.substr(0, end))) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

bool IsListed(std::string_view name, std::string_view list) {
  return AnyItem(list, [&](std::string_view pattern) { return Matches(name, pattern); });
}

bool IsComplete(const SignatureFamily& family, const std::vector<std::string_view>& parameters) {
  const auto present = [&](std::string_view marker) {
    return std::any_of(parameters.begin(), parameters.end(), [&](std::string_view parameter) {
      return ParameterName(parameter) == marker;
    });
  };
  const auto absent = [&](std::string_view marker) { return !present(marker); };
  return !AnyItem(family.all_of, absent) &&
         (family.one_of.empty() || AnyItem(family.one_of, present));
}

// The query without the complete families' parameters and the ignored ones; order and bytes kept.
std::string StripQuery(std::string_view query, const std::vector<std::string>& ignored) {
  const auto parameters = Split(query, '&');
  std::vector<const SignatureFamily*> complete;
  for (const auto& family : kFamilies) {
    if (IsComplete(family, parameters)) complete.push_back(&family);
  }
  const auto is_dropped = [&](std::string_view name) {
    if (std::find(ignored.begin(), ignored.end(), name) != ignored.end()) return true;
    return std::any_of(complete.begin(), complete.end(), [&](const SignatureFamily* family) {
      return IsListed(name, family->dropped) && !IsListed(name, family->kept);
    });
  };
  std::string out;
  bool first = true;
  for (const auto parameter : parameters) {
    if (is_dropped(ParameterName(parameter))) continue;
    if (!first) out += '&';
    first = false;
    out += parameter;
  }
  return out;
}

bool IsParameterName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c >= 0x21 && c <= 0x7E && c != '&' && c != '=' && c != '#';
  });
}

bool IsHostPattern(std::string_view pattern) {
  if (pattern.starts_with("*.")) pattern.remove_prefix(2);
  const auto url = ParseUrl("http://" + std::string(pattern) + "/");
  return url.has_value() && EqualsIgnoreCase(url->host, pattern);
}

bool MatchesHost(std::string_view pattern, std::string_view host) {
  if (!pattern.starts_with("*.")) return EqualsIgnoreCase(host, pattern);
  pattern.remove_prefix(1);  // ".domain"
  return host.size() > pattern.size() &&
         EqualsIgnoreCase(host.substr(host.size() - pattern.size()), pattern);
}

std::string TrustDomain(const Url& url, const IdentityOptions& options) {
  const bool trusted =
      std::any_of(options.trusted_origins.begin(), options.trusted_origins.end(),
                  [&](const std::string& pattern) { return MatchesHost(pattern, url.host); });
  return trusted ? url.scheme + "://*" : url.Authority();
}

}  // namespace

Status ValidateIdentityOptions(const IdentityOptions& options) {
  TRY(ValidateNamespace(options.cache_namespace));
  for (const auto& name : options.ignore_query) {
    if (!IsParameterName(name)) {
      return MakeError(Code::kInvalidArgument, "'" + EscapeForeign(name) +
                                                   "' is no name of a query parameter; write it as "
                                                   "it stands in the URL, without '=' and '&'");
    }
  }
  for (const auto& pattern : options.trusted_origins) {
    if (!IsHostPattern(pattern)) {
      return MakeError(Code::kInvalidArgument, "'" + EscapeForeign(pattern) +
                                                   "' is no host pattern; write a host name "
                                                   "without a port, or *.domain");
    }
  }
  return {};
}

std::string LocalId(const Url& url, const IdentityOptions& options) {
  const std::string query = url.query ? StripQuery(*url.query, options.ignore_query) : "";
  std::string id;  // one allocation: this is done for every request
  id.reserve(url.scheme.size() + url.host.size() + url.port.size() + url.path.size() +
             query.size() + 5);
  id.append(url.scheme).append("://").append(url.host);
  if (!url.port.empty() && !url.HasDefaultPort()) id.append(1, ':').append(url.port);
  id.append(url.path);
  if (!query.empty()) id.append(1, '?').append(query);
  return id;
}

std::optional<Digest> DigestOfUrl(const Url& url, const IdentityOptions& options) {
  const std::string_view path = url.path;
  if (auto digest = ParseDigest(path.substr(path.rfind('/') + 1))) return digest;
  return options.oci_digest_only ? std::nullopt : RegistryBlobDigest(path);
}

Identity MakeIdentity(const Url& url, const IdentityOptions& options,
                      std::optional<Digest> declared) {
  Identity identity;
  identity.cache_namespace = options.cache_namespace;
  identity.local_id = LocalId(url, options);
  identity.digest = declared ? std::move(declared) : DigestOfUrl(url, options);
  identity.wire_id = WireId(url, options.oci_digest_only);
  identity.authority = url.Authority();
  identity.trust_domain = TrustDomain(url, options);
  identity.redacted_url = RedactUrl(url.ToString());
  return identity;
}

ObjectName NameOfObject(const Identity& identity, Trust trust) {
  if (!identity.digest) return {'u', identity.local_id};
  std::string id = identity.digest->ToString();
  if (trust == Trust::kUnverified) id += kFieldSeparator + identity.trust_domain;
  return {'d', std::move(id)};
}

Result<StoreKey> MakeStoreKey(std::string_view cache_namespace, const ObjectName& name,
                              const Version& version) {
  StoreKeyFields fields;
  fields.cache_namespace = cache_namespace;
  fields.kind = name.kind;
  fields.id = name.id;
  if (name.kind == 'd') {
    const size_t end = name.id.find(kFieldSeparator);
    fields.id = std::string_view(name.id).substr(0, end);
    if (!ParseDigest(fields.id)) {
      return MakeError(Code::kInvalidArgument, "'" + EscapeForeign(fields.id) + "' is no digest");
    }
    if (end != std::string::npos) {
      fields.origin = std::string_view(name.id).substr(end + 1);
      if (fields.origin.empty()) {
        return MakeError(Code::kInvalidArgument, "an unverified digest's origin part is empty");
      }
    }
  }
  fields.version = name.kind == 'd' ? std::string_view() : version.text;
  return HashStoreKey(fields);
}

StoreKey MakeStoreKey(const Identity& identity, const Version& version, Trust trust) {
  // The namespace is validated, URLs hold no control bytes, versions neither: this can't fail.
  auto key = MakeStoreKey(identity.cache_namespace, NameOfObject(identity, trust), version);
  DARTFS_CHECK(key.has_value());
  return *key;
}

StoreKey PeerObjectKey(const Identity& identity, const Version& version) {
  return MakeStoreKey(identity, version, Trust::kVerified);
}

PeerRule PeerRuleOf(const Identity& identity, const Version& version) {
  if (identity.content_addressed()) return PeerRule::kByDigest;
  if (version.kind == Version::Kind::kUnversioned) return PeerRule::kNever;
  // A malformed escape makes a wire ID that is raw text: equal, yet shared with its "%25" spelling.
  const bool routes_alone = identity.local_id == identity.wire_id &&
                            identity.local_id.find_first_of("?%") == std::string::npos;
  return version.kind == Version::Kind::kFixed && routes_alone ? PeerRule::kNoEcho
                                                               : PeerRule::kEcho;
}

}  // namespace dartfs::core
