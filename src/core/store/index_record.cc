#include "core/store/index_record.h"

#include <array>
#include <cstring>

#include "core/base/hash.h"

namespace dartfs::core {
namespace {

constexpr size_t kSumBytes = 8;
constexpr uint8_t kVolatileFlag = 1;
constexpr uint8_t kVerifiedFlag = 2;

template <typename T>
void PutLittle(std::string& out, T number) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(number) >> (8 * i) & 0xFF));
  }
}

template <typename T>
void PutBig(std::string& out, T number) {
  for (size_t i = sizeof(T); i-- > 0;) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(number) >> (8 * i) & 0xFF));
  }
}

void PutText(std::string& out, std::string_view text) {
  PutLittle(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

// Takes fields off the front; all fail once one has.
class Parser {
 public:
  explicit Parser(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T Little() {
    const std::string_view bytes = Bytes(sizeof(T));
    uint64_t number = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      number |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    return static_cast<T>(number);
  }
  std::string Text() { return std::string(Bytes(Little<uint32_t>())); }
  std::string_view Bytes(size_t count) {
    if (failed_ || count > left_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }
  std::string_view Rest() { return Bytes(left_.size()); }
  // Everything has been taken, and everything was there.
  bool Done() const { return !failed_ && left_.empty(); }

 private:
  std::string_view left_;
  bool failed_ = false;
};

std::string_view KeyView(const StoreKey& key) {
  return {reinterpret_cast<const char*>(key.bytes().data()), StoreKey::kBytes};
}

// Checksums of records are taken by the million at a start: short ones without an allocation.
uint64_t SumOf(IndexTable table, std::string_view key, std::string_view payload) {
  std::array<char, 512> small;
  std::string large;
  const size_t bytes = 2 + key.size() + payload.size();
  char* at = small.data();
  if (bytes > small.size()) {
    large.resize(bytes);
    at = large.data();
  }
  at[0] = static_cast<char>(table);
  at[1] = static_cast<char>(key.size());
  std::memcpy(at + 2, key.data(), key.size());
  if (!payload.empty()) std::memcpy(at + 2 + key.size(), payload.data(), payload.size());
  return Xxh3(std::string_view(at, bytes));
}

}  // namespace

const char* IndexTableName(IndexTable table) {
  static constexpr const char* kNames[kIndexTables] = {"meta", "objects", "chunks",
                                                       "sums", "names",   "urls"};
  return kNames[static_cast<size_t>(table)];
}

std::string ObjectKeyBytes(const StoreKey& key) { return std::string(KeyView(key)); }

std::string ChunkKeyBytes(const ChunkKey& key) {
  std::string bytes(KeyView(key.object));
  PutBig(bytes, key.chunk);
  return bytes;
}

std::string SumsKeyBytes(const StoreKey& key, uint64_t block) {
  std::string bytes(KeyView(key));
  PutBig(bytes, block);
  return bytes;
}

std::string NameKeyBytes(std::string_view name) {
  const auto digest = Sha256(name);
  return {reinterpret_cast<const char*>(digest.data()), StoreKey::kBytes};
}

std::optional<StoreKey> ParseObjectKey(std::string_view key) {
  if (key.size() != StoreKey::kBytes) return std::nullopt;
  std::array<std::byte, StoreKey::kBytes> bytes;
  std::memcpy(bytes.data(), key.data(), bytes.size());
  return StoreKey(bytes);
}

std::optional<ChunkKey> ParseChunkKey(std::string_view key) {
  if (key.size() != StoreKey::kBytes + sizeof(uint32_t)) return std::nullopt;
  uint32_t chunk = 0;
  for (const char c : key.substr(StoreKey::kBytes)) {
    chunk = chunk << 8 | static_cast<unsigned char>(c);
  }
  return ChunkKey{*ParseObjectKey(key.substr(0, StoreKey::kBytes)), chunk};
}

std::string SealRecord(IndexTable table, std::string_view key, std::string_view payload) {
  std::string value;
  value.reserve(kSumBytes + payload.size());
  PutLittle(value, SumOf(table, key, payload));
  value.append(payload);
  return value;
}

std::optional<std::string_view> UnsealRecord(IndexTable table, std::string_view key,
                                             std::string_view value) {
  if (value.size() < kSumBytes) return std::nullopt;
  const std::string_view payload = value.substr(kSumBytes);
  if (Parser(value.substr(0, kSumBytes)).Little<uint64_t>() != SumOf(table, key, payload)) {
    return std::nullopt;
  }
  return payload;
}

std::string EncodeObject(const ObjectMeta& meta) {
  std::string out;
  out.push_back(meta.kind);
  PutLittle(out, static_cast<uint8_t>((meta.volatile_version ? kVolatileFlag : 0) |
                                      (meta.verified ? kVerifiedFlag : 0)));
  PutLittle(out, meta.size);
  PutLittle(out, meta.last_modified);
  PutText(out, meta.id);
  PutText(out, meta.version);
  PutText(out, meta.etag);
  PutText(out, meta.content_type);
  return out;
}

std::optional<ObjectMeta> DecodeObject(std::string_view payload) {
  Parser parser(payload);
  ObjectMeta meta;
  meta.kind = static_cast<char>(parser.Little<uint8_t>());
  const auto flags = parser.Little<uint8_t>();
  meta.volatile_version = (flags & kVolatileFlag) != 0;
  meta.verified = (flags & kVerifiedFlag) != 0;
  meta.size = parser.Little<uint64_t>();
  meta.last_modified = parser.Little<int64_t>();
  meta.id = parser.Text();
  meta.version = parser.Text();
  meta.etag = parser.Text();
  meta.content_type = parser.Text();
  if (!parser.Done()) return std::nullopt;
  return meta;
}

std::string EncodeChunk(const ChunkRecord& record) {
  std::string out;
  PutLittle(out, record.blocks);
  PutLittle(out, record.object_size);
  PutLittle(out, record.used_ms);
  PutLittle(out, record.placement);
  PutLittle(out, record.flags);
  return out;
}

std::optional<ChunkRecord> DecodeChunk(std::string_view payload) {
  Parser parser(payload);
  ChunkRecord record;
  record.blocks = parser.Little<uint64_t>();
  record.object_size = parser.Little<uint64_t>();
  record.used_ms = parser.Little<uint64_t>();
  record.placement = parser.Little<uint8_t>();
  record.flags = parser.Little<uint8_t>();
  if (!parser.Done()) return std::nullopt;
  return record;
}

std::string EncodeSums(const std::vector<uint64_t>& sums) {
  std::string out;
  out.reserve(sums.size() * sizeof(uint64_t));
  for (const uint64_t sum : sums) PutLittle(out, sum);
  return out;
}

std::optional<std::vector<uint64_t>> DecodeSums(std::string_view payload) {
  if (payload.size() % sizeof(uint64_t) != 0) return std::nullopt;
  Parser parser(payload);
  std::vector<uint64_t> sums(payload.size() / sizeof(uint64_t));
  for (uint64_t& sum : sums) sum = parser.Little<uint64_t>();
  return sums;
}

std::string EncodeName(std::string_view name, std::string_view value) {
  std::string out;
  PutText(out, name);
  out.append(value);
  return out;
}

std::optional<NameRecord> DecodeName(std::string_view payload) {
  Parser parser(payload);
  NameRecord record;
  record.name = parser.Text();
  record.value = parser.Rest();
  if (!parser.Done()) return std::nullopt;
  return record;
}

std::string EncodeNumber(uint64_t number) {
  std::string out;
  PutLittle(out, number);
  return out;
}

std::optional<uint64_t> DecodeNumber(std::string_view payload) {
  Parser parser(payload);
  const auto number = parser.Little<uint64_t>();
  if (!parser.Done()) return std::nullopt;
  return number;
}

}  // namespace dartfs::core
