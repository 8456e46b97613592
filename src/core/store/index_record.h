// Records of the index as bytes (FORMAT.md, "Index"). Pure: no LMDB here.
//
// Every value begins with the XXH3-64 of table, key and payload, as LMDB has no page checksums: a
// value that was read under the wrong key, from the wrong table or with a bit flipped does not
// decode. Decoding trusts nothing; numbers are little-endian in values, big-endian in keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/store_key.h"
#include "core/store/store.h"

namespace dartfs::core {

enum class IndexTable : uint8_t { kMeta, kObjects, kChunks, kSums, kNames, kUrls };
inline constexpr size_t kIndexTables = 6;
const char* IndexTableName(IndexTable table);

// One chunk of one object: which blocks the file holds.
struct ChunkRecord {
  // Flags, of the object: its file is lent; it is pinned by the operator.
  static constexpr uint8_t kLent = 1;
  static constexpr uint8_t kPinned = 2;

  uint64_t blocks = 0;       // bit i: block i of the chunk
  uint64_t object_size = 0;  // repeated here, so that a start needs nothing but chunk records
  uint64_t used_ms = 0;      // coarse time of use, milliseconds since the epoch
  uint8_t placement = 0;     // a Placement
  uint8_t flags = 0;
  bool operator==(const ChunkRecord&) const = default;
};

struct ChunkKey {
  StoreKey object;
  uint32_t chunk = 0;
  bool operator==(const ChunkKey&) const = default;
};

struct NameRecord {
  std::string name;
  std::string value;
};

// Keys.
std::string ObjectKeyBytes(const StoreKey& key);
std::string ChunkKeyBytes(const ChunkKey& key);
std::string SumsKeyBytes(const StoreKey& key, uint64_t block);
std::string NameKeyBytes(std::string_view name);
std::optional<ChunkKey> ParseChunkKey(std::string_view key);
std::optional<StoreKey> ParseObjectKey(std::string_view key);

// Values, checksum included. Decoders: nullopt for anything these did not make.
std::string SealRecord(IndexTable table, std::string_view key, std::string_view payload);
std::optional<std::string_view> UnsealRecord(IndexTable table, std::string_view key,
                                             std::string_view value);

std::string EncodeObject(const ObjectMeta& meta);
std::optional<ObjectMeta> DecodeObject(std::string_view payload);
std::string EncodeChunk(const ChunkRecord& record);
std::optional<ChunkRecord> DecodeChunk(std::string_view payload);
std::string EncodeSums(const std::vector<uint64_t>& sums);
std::optional<std::vector<uint64_t>> DecodeSums(std::string_view payload);
std::string EncodeName(std::string_view name, std::string_view value);
std::optional<NameRecord> DecodeName(std::string_view payload);
std::string EncodeNumber(uint64_t number);
std::optional<uint64_t> DecodeNumber(std::string_view payload);

}  // namespace dartfs::core
