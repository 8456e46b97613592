#include "core/engine/digest_record.h"

#include <algorithm>
#include <cstring>

#include "core/base/hash.h"

namespace dartfs::core {

namespace {

constexpr char kFormat = 1;
constexpr size_t kHeadBytes = 1 + 8 + 8;

void PutNumber(std::string* out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t NumberAt(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

}  // namespace

BlockDigest DigestOfBlock(std::span<const std::byte> bytes) {
  const auto whole =
      Sha256(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  BlockDigest half;
  std::copy_n(whole.begin(), half.size(), half.begin());
  return half;
}

std::string DigestRecordName(const Digest& digest) { return "digest " + digest.ToString(); }

std::string EncodeDigestRecord(const DigestRecord& record) {
  std::string out(1, kFormat);
  PutNumber(&out, record.size);
  PutNumber(&out, record.block_size);
  for (const BlockDigest& block : record.blocks) {
    out.append(reinterpret_cast<const char*>(block.data()), block.size());
  }
  return out;
}

std::optional<DigestRecord> DecodeDigestRecord(std::string_view bytes, const Grid& grid) {
  if (bytes.size() < kHeadBytes || bytes[0] != kFormat) return std::nullopt;
  DigestRecord record;
  record.size = NumberAt(bytes, 1);
  record.block_size = NumberAt(bytes, 9);
  if (record.block_size != grid.block_size || !grid.IsLegalSize(record.size)) return std::nullopt;
  bytes.remove_prefix(kHeadBytes);
  const uint64_t count = grid.BlockCount(record.size);
  if (bytes.size() % sizeof(BlockDigest) != 0 || bytes.size() / sizeof(BlockDigest) != count) {
    return std::nullopt;
  }
  record.blocks.resize(count);
  if (count > 0) std::memcpy(record.blocks.data(), bytes.data(), bytes.size());
  return record;
}

}  // namespace dartfs::core
