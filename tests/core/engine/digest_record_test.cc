#include "core/engine/digest_record.h"

#include <gtest/gtest.h>

#include "core/base/hash.h"

namespace dartfs::core {
namespace {

Grid SmallGrid() {
  Grid grid;
  grid.block_size = 64 * 1024;
  grid.chunk_size = 4 * grid.block_size;
  grid.granule_size = grid.block_size / 4;
  return grid;
}

DigestRecord Sample() {
  DigestRecord record;
  record.block_size = SmallGrid().block_size;
  record.size = 2 * record.block_size + 1;
  for (const char* text : {"a", "b", "c"}) record.blocks.push_back(DigestOfBlock(AsBytes(text)));
  return record;
}

TEST(DigestRecord, TheDigestOfABlockIsHalfItsSha256) {
  // SHA-256("abc"), FIPS 180-2 appendix B.1.
  const unsigned char expected[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                    0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23};
  const BlockDigest digest = DigestOfBlock(AsBytes("abc"));
  ASSERT_EQ(digest.size(), sizeof expected);
  EXPECT_EQ(memcmp(digest.data(), expected, sizeof expected), 0);
}

TEST(DigestRecord, RoundTrip) {
  EXPECT_EQ(DecodeDigestRecord(EncodeDigestRecord(Sample()), SmallGrid()), Sample());
  DigestRecord empty;
  empty.block_size = SmallGrid().block_size;
  EXPECT_EQ(DecodeDigestRecord(EncodeDigestRecord(empty), SmallGrid()), empty);
}

TEST(DigestRecord, AnythingElseIsRefused) {
  const std::string bytes = EncodeDigestRecord(Sample());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_EQ(DecodeDigestRecord(bytes.substr(0, cut), SmallGrid()), std::nullopt) << cut;
  }
  EXPECT_EQ(DecodeDigestRecord(bytes + "x", SmallGrid()), std::nullopt);
  EXPECT_EQ(DecodeDigestRecord(bytes + std::string(16, 'x'), SmallGrid()), std::nullopt);
  std::string other = bytes;
  other[0] = 2;
  EXPECT_EQ(DecodeDigestRecord(other, SmallGrid()), std::nullopt);
  std::string absurd = bytes;
  for (size_t i = 1; i < 9; ++i) absurd[i] = '\xff';
  EXPECT_EQ(DecodeDigestRecord(absurd, SmallGrid()), std::nullopt);
}

TEST(DigestRecord, AnotherGridsIsRefused) {
  Grid other = SmallGrid();
  other.block_size /= 2;
  other.granule_size /= 2;
  EXPECT_EQ(DecodeDigestRecord(EncodeDigestRecord(Sample()), other), std::nullopt);
}

TEST(DigestRecord, NoUrlHasItsName) {
  const auto digest = ParseDigest("sha256:" + std::string(64, 'a'));
  EXPECT_EQ(DigestRecordName(*digest).find("://"), std::string::npos);
}

}  // namespace
}  // namespace dartfs::core
