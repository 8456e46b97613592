#include "core/base/version.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

constexpr size_t kMaxEtagBytes = 1024;
constexpr int64_t kMinAgeSeconds = 2;  // a younger file may change again within the same second

bool IsEtagByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0x21 || (byte >= 0x23 && byte <= 0x7E) || byte >= 0x80;
}

bool IsStrongEtag(std::string_view etag) {
  if (etag.size() < 3 || etag.size() > kMaxEtagBytes) return false;
  if (etag.front() != '"' || etag.back() != '"') return false;
  return std::all_of(etag.begin() + 1, etag.end() - 1, IsEtagByte);
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7E; });
}

// "<HTTP date>/<decimal>".
bool IsModifiedText(std::string_view text) {
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos || !IsPrintable(text)) return false;
  return ParseHttpDate(text.substr(0, slash)) && ParseUint(text.substr(slash + 1));
}

bool IsOldEnough(std::string_view last_modified, std::string_view date) {
  const auto modified_s = ParseHttpDate(last_modified);
  const auto date_s = ParseHttpDate(date);
  return modified_s && date_s && *modified_s <= *date_s - kMinAgeSeconds;
}

}  // namespace

std::string_view Version::etag() const {
  return kind == Kind::kETag ? std::string_view(text).substr(2) : std::string_view();
}

std::string_view Version::last_modified() const {
  if (kind != Kind::kModified) return {};
  return std::string_view(text).substr(2, text.rfind('/') - 2);
}

Version MakeVersion(const VersionInputs& inputs) {
  if (inputs.fixed) return {Version::Kind::kFixed, ""};
  const std::string_view etag = TrimAscii(inputs.etag);
  if (IsStrongEtag(etag)) return {Version::Kind::kETag, "e:" + std::string(etag)};
  const std::string_view modified = TrimAscii(inputs.last_modified);
  if (inputs.size && IsPrintable(modified) && IsOldEnough(modified, TrimAscii(inputs.date))) {
    return {Version::Kind::kModified, fmt::format("m:{}/{}", modified, *inputs.size)};
  }
  return {};
}

Version UnversionedGeneration(uint64_t nonce) {
  return {Version::Kind::kUnversioned, fmt::format("n:{:016x}", nonce)};
}

std::optional<Version> ParseVersion(std::string_view text) {
  if (text.empty()) return Version{Version::Kind::kFixed, ""};
  const std::string_view rest = text.substr(std::min<size_t>(2, text.size()));
  if (text.starts_with("e:") && IsStrongEtag(rest)) {
    return Version{Version::Kind::kETag, std::string(text)};
  }
  if (text.starts_with("m:") && IsModifiedText(rest)) {
    return Version{Version::Kind::kModified, std::string(text)};
  }
  if (text.starts_with("n:") && (rest.empty() || (rest.size() == 16 && IsHex(rest)))) {
    return Version{Version::Kind::kUnversioned, std::string(text)};
  }
  return std::nullopt;
}

}  // namespace dartfs::core
