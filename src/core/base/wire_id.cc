#include "core/base/wire_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/digest.h"
#include "core/base/text.h"

namespace dartfs::core {
namespace {

constexpr size_t kMinWireDigestDigits = 32;
constexpr size_t kMaxKeyDigits = 16;
constexpr uint64_t kFileIndex = ~uint64_t{0};  // -1

bool IsLowerAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Rule 1: the first segment "<algorithm>:<hex>" of the path, lower-cased.
std::optional<std::string> DigestSegment(std::string_view path) {
  for (const std::string_view segment : Split(path, '/')) {
    const size_t colon = segment.find(':');
    if (colon == 0 || colon == std::string_view::npos) continue;
    const std::string_view algorithm = segment.substr(0, colon);
    const std::string_view hex = segment.substr(colon + 1);
    if (hex.size() >= kMinWireDigestDigits && IsHex(hex) &&
        std::all_of(algorithm.begin(), algorithm.end(), IsLowerAlnum)) {
      return ToLowerAscii(segment);
    }
  }
  return std::nullopt;
}

std::string WithoutSeparators(std::string text) {
  std::erase(text, kFieldSeparator);
  return text;
}

struct WireParts {
  std::string_view scheme;
  std::string_view host;  // with the port as written, without userinfo
  std::string path;       // percent-decoded
};

// What DART's URL parser would find; nullopt without a scheme, a host, or with a malformed escape.
std::optional<WireParts> SplitUrl(std::string_view text) {
  text = text.substr(0, text.find('#'));
  const size_t scheme_end = text.find("://");
  if (scheme_end == 0 || scheme_end == std::string_view::npos) return std::nullopt;
  WireParts parts;
  parts.scheme = text.substr(0, scheme_end);
  const std::string scheme = ToLowerAscii(parts.scheme);
  if (scheme[0] < 'a' || scheme[0] > 'z') return std::nullopt;
  const bool valid = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return IsLowerAlnum(c) || c == '+' || c == '-' || c == '.';
  });
  if (!valid) return std::nullopt;
  text.remove_prefix(scheme_end + 3);
  text = text.substr(0, text.find('?'));
  parts.host = text.substr(0, text.find('/'));
  text.remove_prefix(parts.host.size());
  parts.host.remove_prefix(parts.host.rfind('@') + 1);  // npos + 1 is 0
  auto path = PercentDecode(text);
  if (parts.host.empty() || !path) return std::nullopt;
  parts.path = std::move(*path);
  return parts;
}

}  // namespace

uint64_t Fmix64(uint64_t z) {
  z ^= z >> 33;
  z *= 0xff51afd7ed558ccdu;
  z ^= z >> 33;
  z *= 0xc4ceb9fe1a85ec53u;
  return z ^ (z >> 33);
}

Fnv1a64& Fnv1a64::AddByte(uint8_t byte) {
  hash_ = (hash_ ^ byte) * 1099511628211u;
  return *this;
}

Fnv1a64& Fnv1a64::Add(std::string_view bytes) {
  for (const char c : bytes) AddByte(static_cast<uint8_t>(c));
  return *this;
}

Fnv1a64& Fnv1a64::AddLittleEndian(uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) AddByte(static_cast<uint8_t>(value >> shift));
  return *this;
}

Fnv1a64& Fnv1a64::AddBigEndian(uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) AddByte(static_cast<uint8_t>(value >> shift));
  return *this;
}

std::string WireId(std::string_view url, bool oci_digest_only) {
  const auto parts = SplitUrl(url);
  if (!parts) {
    const std::string_view text = url.substr(0, url.find_first_of("?#"));
    if (auto digest = DigestSegment(text)) return *digest;
    return WithoutSeparators(std::string(text));
  }
  if (auto digest = DigestSegment(parts->path)) return *digest;
  if (!oci_digest_only) {
    if (const auto digest = RegistryBlobDigest(parts->path)) return digest->ToString();
  }
  return WithoutSeparators(ToLowerAscii(parts->scheme) + "://" + ToLowerAscii(parts->host) +
                           parts->path);
}

std::string WireId(const Url& url, bool oci_digest_only) {
  return WireId(url.ToString(), oci_digest_only);
}

uint64_t MakeChunkKey(std::string_view cache_namespace, std::string_view wire_id,
                      uint64_t chunk_index) {
  DARTFS_CHECK(cache_namespace.find(kFieldSeparator) == std::string_view::npos);
  Fnv1a64 hash;
  hash.Add(cache_namespace).AddByte(kFieldSeparator);
  hash.Add(wire_id).AddByte(kFieldSeparator);
  return Fmix64(hash.AddBigEndian(chunk_index).value());
}

uint64_t MakeFileKey(std::string_view cache_namespace, std::string_view wire_id) {
  return MakeChunkKey(cache_namespace, wire_id, kFileIndex);
}

Status ValidateNamespace(std::string_view cache_namespace) {
  if (cache_namespace.empty()) return MakeError(Code::kInvalidArgument, "the namespace is empty");
  if (cache_namespace.find(kFieldSeparator) == std::string_view::npos) return {};
  return MakeError(Code::kInvalidArgument, "the namespace '" + EscapeForeign(cache_namespace) +
                                               "' holds the byte 0x1F, which separates fields");
}

std::string FormatKey(uint64_t key) { return fmt::format("{:x}", key); }

std::optional<uint64_t> ParseKey(std::string_view hex) {
  if (hex.empty() || hex.size() > kMaxKeyDigits || !IsHex(hex)) return std::nullopt;
  uint64_t key = 0;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), key, 16);
  if (error != std::errc() || end != hex.data() + hex.size()) return std::nullopt;
  return key;
}

}  // namespace dartfs::core
