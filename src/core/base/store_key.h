// StoreKey: the name of one version of one object in the cache (IDENTITY.md): file name, index key,
// X-DARTFS-Object. A hash only: whoever opens a record by it compares the full names.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace dartfs::core {

class StoreKey {
 public:
  static constexpr size_t kBytes = 16;

  StoreKey() = default;  // all zero: no object's key in practice
  explicit StoreKey(const std::array<std::byte, kBytes>& bytes) : bytes_(bytes) {}
  // Exactly 32 hex digits of either case.
  static std::optional<StoreKey> Parse(std::string_view hex);

  // 32 lower-case digits.
  std::string ToHex() const;
  std::span<const std::byte, kBytes> bytes() const { return bytes_; }

  bool operator==(const StoreKey&) const = default;
  auto operator<=>(const StoreKey&) const = default;

 private:
  std::array<std::byte, kBytes> bytes_{};
};

// What is hashed: SHA-256(namespace, 0x1F, kind, 0x1F, id [, 0x1F, origin], 0x1F, version), the
// first 16 bytes.
struct StoreKeyFields {
  std::string_view cache_namespace = {};
  char kind = 'u';  // 'u': id is a local ID; 'd': a digest
  std::string_view id = {};
  std::string_view origin = {};  // kind 'd', unverified: where it is shared; else empty
  std::string_view version = {};
};

// kInvalidArgument where a field holds 0x1F (two tuples could look alike), the kind is another, or
// a 'u' has an origin.
Result<StoreKey> HashStoreKey(const StoreKeyFields& fields);

}  // namespace dartfs::core

template <>
struct std::hash<dartfs::core::StoreKey> {
  size_t operator()(const dartfs::core::StoreKey& key) const noexcept {
    size_t value;
    std::memcpy(&value, key.bytes().data(), sizeof value);
    return value;
  }
};
