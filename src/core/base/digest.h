// Content digests as they stand in URLs and catalogues: "sha256:<64 hex>", "sha512:<128 hex>".
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dartfs::core {

// Made by the functions below only: a known algorithm and lower-case hex of its length.
struct Digest {
  std::string algorithm;  // "sha256" or "sha512", as Digester::Create takes it
  std::string hex;

  bool operator==(const Digest&) const = default;
  std::string ToString() const { return algorithm + ":" + hex; }
};

// The whole text is "<algorithm>:<hex>", the algorithm in lower case, the hex in any.
std::optional<Digest> ParseDigest(std::string_view text);

// The path ends in "/blobs/<algorithm>/<first two digits>/<hex>", or in that plus "/data"; the two
// digits are compared as written. A registry's layout in an object store.
std::optional<Digest> RegistryBlobDigest(std::string_view path);

}  // namespace dartfs::core
