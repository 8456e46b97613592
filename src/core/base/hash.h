// Hashes: XXH3-64 (granule and record checksums) and SHA-2 (names, digests). Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dartfs::core {

// XXH3-64, seed 0.
uint64_t Xxh3(std::span<const std::byte> bytes);
uint64_t Xxh3(std::string_view bytes);

std::array<std::byte, 32> Sha256(std::string_view bytes);

// Incremental SHA-2. Not thread-safe.
class Digester {
 public:
  // "sha256" or "sha512"; nullptr for anything else.
  static std::unique_ptr<Digester> Create(std::string_view algorithm);
  ~Digester();
  void Update(std::span<const std::byte> bytes);
  // Lower-case hex. Call once.
  std::string FinishHex();

 private:
  Digester() = default;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace dartfs::core
