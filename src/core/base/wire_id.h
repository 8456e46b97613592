// DART's names on the wire: object ID, chunk key, file key (WIRE.md sections 1 and 2). They route;
// whose bytes are whose is decided by identity.h alone. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/url.h"

namespace dartfs::core {

// Separates the fields of every hashed tuple; no field may hold it.
inline constexpr char kFieldSeparator = '\x1F';

// fmix64: the finaliser of MurmurHash3.
uint64_t Fmix64(uint64_t z);

// FNV-1a, 64 bits, over what Add was given, in order.
class Fnv1a64 {
 public:
  Fnv1a64& Add(std::string_view bytes);
  Fnv1a64& AddByte(uint8_t byte);
  Fnv1a64& AddLittleEndian(uint64_t value);
  Fnv1a64& AddBigEndian(uint64_t value);
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 14695981039346656037u;
};

// The object ID of any text, a URL or not, by WIRE.md section 2; never holds 0x1F. Its rules 1 and
// 2 look at the segments of the percent-decoded path. A malformed escape in the path makes the text
// unparsable (rule 4), as DART's URL parser has it.
std::string WireId(std::string_view url, bool oci_digest_only);

// The same for the text that goes to peers as X-DART-Origin, which is url.ToString(): a relay
// compares the key in the path with that of the header.
std::string WireId(const Url& url, bool oci_digest_only);

// Routes a chunk of the object. `cache_namespace` holds no 0x1F (ValidateNamespace).
uint64_t MakeChunkKey(std::string_view cache_namespace, std::string_view wire_id,
                      uint64_t chunk_index);
// Routes the object as a whole (tracker, object facts): the chunk key with index -1.
uint64_t MakeFileKey(std::string_view cache_namespace, std::string_view wire_id);

// kInvalidArgument for an empty namespace or one with 0x1F.
Status ValidateNamespace(std::string_view cache_namespace);

// A key in a peer path: hex, lower-case and without padding when written; either case and up to 16
// digits when read, else nullopt.
std::string FormatKey(uint64_t key);
std::optional<uint64_t> ParseKey(std::string_view hex);

}  // namespace dartfs::core
