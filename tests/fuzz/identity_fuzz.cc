// Input: lines: URL, URL, parameter, digest-like text, ETag, Last-Modified, Date, then bytes for
// store keys. Two URLs share a local ID exactly if an independent reading of IDENTITY.md says so;
// names that differ give keys that differ.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/check.h"
#include "core/base/identity.h"
#include "core/base/text.h"

namespace dartfs::core {
namespace {

using Strings = std::vector<std::string>;

// Borrows from the URL; empty without a query.
std::string_view QueryOf(const Url& url) {
  return url.query ? std::string_view(*url.query) : std::string_view();
}

std::string NameOf(const std::string& parameter) {
  return parameter.substr(0, parameter.find('='));
}

bool Has(const Strings& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The signature table, read a second time: whether `name` goes, given all names of the query.
bool GoesByTable(const Strings& all, const std::string& name) {
  const auto has = [&](const char* marker) { return Has(all, marker); };
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
  };
  const bool signed_until = has("Signature") && has("Expires");
  if (has("X-Amz-Signature") && has("X-Amz-Credential") && name.starts_with("X-Amz-")) return true;
  if (signed_until && (has("AWSAccessKeyId") || has("GoogleAccessId")) &&
      is({"Signature", "Expires", "AWSAccessKeyId", "GoogleAccessId", "x-amz-security-token"})) {
    return true;
  }
  if (has("X-Goog-Signature") && has("X-Goog-Credential") && name.starts_with("X-Goog-"))
    return true;
  if (has("Signature") && has("Key-Pair-Id") && (has("Expires") || has("Policy")) &&
      is({"Signature", "Key-Pair-Id", "Expires", "Policy"})) {
    return true;
  }
  if (has("sig") && has("sv") && (has("se") || has("si")) &&
      is({"sig",   "sv",    "se",  "si",  "st",  "sp",  "sr",  "spr",   "sip",   "ss",  "srt",
          "skoid", "sktid", "skt", "ske", "sks", "skv", "sdd", "saoid", "suoid", "scid"})) {
    return true;
  }
  if (signed_until && has("OSSAccessKeyId") &&
      is({"Signature", "Expires", "OSSAccessKeyId", "security-token"})) {
    return true;
  }
  if (has("x-oss-signature") && has("x-oss-credential") && name.starts_with("x-oss-") &&
      !is({"x-oss-process", "x-oss-async-process"})) {
    return true;
  }
  return has("q-signature") && has("q-ak") &&
         (name.starts_with("q-") || name == "x-cos-security-token");
}

// What makes two URLs one object.
using Oracle = std::tuple<std::string, std::string, std::string, std::string, std::string>;

Oracle ReadByTable(const Url& url) {
  Strings parameters;
  for (const auto parameter : Split(QueryOf(url), '&')) parameters.emplace_back(parameter);
  Strings names;
  for (const auto& parameter : parameters) names.push_back(NameOf(parameter));
  std::string rest;
  bool any = false;
  for (const auto& parameter : parameters) {
    if (GoesByTable(names, NameOf(parameter))) continue;
    rest += (any ? "&" : "") + parameter;
    any = true;
  }
  const std::string port = url.HasDefaultPort() ? "" : url.port;
  return {url.scheme, url.host, port, url.path, rest};
}

void CheckLocalId(const Url& url) {
  const IdentityOptions options;
  const std::string id = LocalId(url, options);
  DARTFS_CHECK(id.find(kFieldSeparator) == std::string::npos);
  const auto again = ParseUrl(id);
  DARTFS_CHECK(again.has_value() && LocalId(*again, options) == id);
  DARTFS_CHECK(again->userinfo.empty() && again->Authority() == url.Authority());
  DARTFS_CHECK(DigestOfUrl(*again, options) == DigestOfUrl(url, options));
  const auto [scheme, host, port, path, rest] = ReadByTable(url);
  DARTFS_CHECK(id == scheme + "://" + host + (port.empty() ? "" : ":" + port) + path +
                         (rest.empty() ? "" : "?" + rest));
}

void CheckPair(const Url& a, const Url& b) {
  const bool same = LocalId(a, {}) == LocalId(b, {});
  DARTFS_CHECK(same == (ReadByTable(a) == ReadByTable(b)));
}

// Adding what IDENTITY.md leaves out changes nothing.
void CheckAdditions(Url url) {
  constexpr const char* kSignatures[] = {
      "X-Amz-Signature=S&X-Amz-Credential=C&X-Amz-Date=1",
      "Signature=S&Expires=1&AWSAccessKeyId=K",
      "GoogleAccessId=K&Signature=S&Expires=1",
      "X-Goog-Credential=C&X-Goog-Signature=S",
      "Key-Pair-Id=K&Policy=P&Signature=S",
      "sv=1&se=2&sp=r&sig=S",
      "OSSAccessKeyId=K&Expires=1&Signature=S&security-token=T",
      "x-oss-credential=C&x-oss-signature=S&x-oss-date=1",
      "q-ak=A&q-signature=S&q-sign-time=1",
  };
  // A URL that already has some of a family's names may lose them with it.
  for (const auto parameter : Split(QueryOf(url), '&')) {
    Strings everything{NameOf(std::string(parameter))};
    for (const char* signature : kSignatures) {
      for (const auto added : Split(signature, '&'))
        everything.push_back(NameOf(std::string(added)));
    }
    if (GoesByTable(everything, everything[0])) return;
  }
  const std::string id = LocalId(url, {});
  const std::string query(QueryOf(url));
  url.userinfo = "u:p";
  for (const char* signature : kSignatures) {
    url.query = query.empty() ? signature : query + "&" + signature;
    DARTFS_CHECK(LocalId(url, {}) == id);
    url.query = query.empty() ? signature : std::string(signature) + "&" + query;
    DARTFS_CHECK(LocalId(url, {}) == id);
  }
}

void CheckIgnored(Url url, std::string_view name) {
  IdentityOptions options;
  options.ignore_query = {std::string(name)};
  if (!ValidateIdentityOptions(options)) return;
  const std::string id = LocalId(url, options);
  const auto again = ParseUrl(id);
  DARTFS_CHECK(again.has_value() && LocalId(*again, options) == id);
  for (const auto parameter : Split(QueryOf(*again), '&')) {
    DARTFS_CHECK(NameOf(std::string(parameter)) != name);
  }
}

void CheckNames(const Url& url) {
  const Identity identity = MakeIdentity(url, {});
  const Version version = MakeVersion({.fixed = true});
  if (PeerRuleOf(identity, version) == PeerRule::kNoEcho) {
    DARTFS_CHECK(identity.local_id == identity.wire_id);
    DARTFS_CHECK(identity.local_id.find_first_of("?%") == std::string::npos);
  }
  const StoreKey verified = MakeStoreKey(identity, version, Trust::kVerified);
  const StoreKey unverified = MakeStoreKey(identity, version, Trust::kUnverified);
  DARTFS_CHECK((verified == unverified) == !identity.content_addressed());
  DARTFS_CHECK(PeerObjectKey(identity, version) == verified);
  DARTFS_CHECK(StoreKey::Parse(verified.ToHex()) == verified);
  for (const Trust trust : {Trust::kVerified, Trust::kUnverified}) {
    const auto from_record = MakeStoreKey("dart", NameOfObject(identity, trust), version);
    DARTFS_CHECK(from_record.has_value() && *from_record == MakeStoreKey(identity, version, trust));
  }
}

void CheckVersion(const std::vector<std::string_view>& lines) {
  const Version version = MakeVersion(
      {.etag = lines[4], .last_modified = lines[5], .date = lines[6], .size = lines[4].size()});
  DARTFS_CHECK(version.text.find(kFieldSeparator) == std::string::npos);
  DARTFS_CHECK(version.text.find('\n') == std::string::npos);
  DARTFS_CHECK(ParseVersion(version.text) == version);
  if (const auto parsed = ParseVersion(lines[7])) DARTFS_CHECK(parsed->text == lines[7]);
  if (const auto digest = ParseDigest(lines[3])) {
    DARTFS_CHECK(digest->ToString() == ToLowerAscii(lines[3]));
  }
}

// Cuts the bytes into fields at two places: unequal tuples have unequal keys, or are refused.
void CheckStoreKeys(std::string_view bytes) {
  if (bytes.size() < 4) return;
  const auto cut = [&](size_t seed) {
    const size_t first = static_cast<unsigned char>(bytes[seed]) % (bytes.size() + 1);
    const size_t second = static_cast<unsigned char>(bytes[seed + 1]) % (bytes.size() - first + 1);
    StoreKeyFields fields;
    fields.cache_namespace = bytes.substr(0, first);
    fields.id = bytes.substr(first, second);
    fields.version = bytes.substr(first + second);
    fields.kind = (bytes[seed] & 1) != 0 ? 'd' : 'u';
    if (fields.kind == 'd' && (bytes[seed + 1] & 1) != 0) std::swap(fields.origin, fields.version);
    return fields;
  };
  const StoreKeyFields a = cut(0);
  const StoreKeyFields b = cut(2);
  const auto key_a = HashStoreKey(a);
  const auto key_b = HashStoreKey(b);
  const bool separator = bytes.find(kFieldSeparator) != std::string_view::npos;
  DARTFS_CHECK(key_a.has_value() == !separator && key_b.has_value() == !separator);
  if (separator) return;
  const auto tie = [](const StoreKeyFields& f) {
    return std::tie(f.cache_namespace, f.kind, f.id, f.origin, f.version);
  };
  DARTFS_CHECK((*key_a == *key_b) == (tie(a) == tie(b)));
}

void FuzzIdentity(std::string_view input) {
  auto lines = Split(input, '\n');
  lines.resize(8);
  CheckVersion(lines);
  CheckStoreKeys(lines[7]);
  const auto a = ParseUrl(lines[0]);
  const auto b = ParseUrl(lines[1]);
  if (a && b) CheckPair(*a, *b);
  for (const auto& url : {a, b}) {
    if (!url || url->ToString().size() > kMaxUrlBytes / 2) continue;
    CheckLocalId(*url);
    CheckAdditions(*url);
    CheckIgnored(*url, lines[2]);
    CheckNames(*url);
  }
}

}  // namespace
}  // namespace dartfs::core

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dartfs::core::FuzzIdentity({reinterpret_cast<const char*>(data), size});
  return 0;
}
