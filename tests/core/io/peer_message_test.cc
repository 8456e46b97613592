#include "core/io/peer_message.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

namespace dartfs::core {
namespace {

using std::chrono::milliseconds;
using Headers = std::vector<HttpHeader>;

constexpr const char* kStoreKey = "00112233445566778899aabbccddeeff";

TEST(BlockPath, IsReadAsItIsWritten) {
  // The key is a golden value of WIRE.md: it is written without padding.
  EXPECT_EQ(FormatBlockPath({284481562108898346U, 7}), "/peer/v1/block/3f2ae7936a62c2a/7");
  const BlockPath path{284481562108898346U, 7};
  EXPECT_EQ(ParseBlockPath("/peer/v1/block/3f2ae7936a62c2a/7"), path);
  EXPECT_EQ(ParseBlockPath("/peer/v1/block/03F2AE7936A62C2A/7"), path) << "either case, padded";
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(ParseBlockPath(FormatBlockPath({most, most})), (BlockPath{most, most}));
}

TEST(BlockPath, AnythingElseIsNone) {
  for (const char* path :
       {"", "/", "/peer/v1/block", "/peer/v1/block/", "/peer/v1/block/1", "/peer/v1/block/1/",
        "/peer/v1/block//1", "/peer/v1/block/g/1", "/peer/v1/block/1/-1", "/peer/v1/block/1/+1",
        "/peer/v1/block/1/0x1", "/peer/v1/block/1/1/", "/peer/v1/block/1/1?x", "/peer/v2/block/1/1",
        "/peer/v1/block/0x1/1", "/peer/v1/block/11111111111111111/1",
        "/peer/v1/block/1/18446744073709551616"}) {
    EXPECT_FALSE(ParseBlockPath(path)) << path;
  }
}

TEST(BlockRequestHead, IsReadAsItIsWritten) {
  BlockRequestHead head;
  head.origin = "https://r.example/a?sig=1";
  head.hop = 3;
  head.epoch = 448884658194799021U;
  head.object = StoreKey::Parse(kStoreKey);
  head.path = {"node,1", "node-2"};
  head.patience = milliseconds(1500);
  head.trace = 0x1f;
  const Headers headers = WriteBlockRequest(head);
  const Headers expected = {{"X-DART-Origin", "https://r.example/a?sig=1"},
                            {"X-DART-Hop", "3"},
                            {"X-DART-Epoch", "448884658194799021"},
                            {"X-DARTFS-Object", kStoreKey},
                            {"X-DARTFS-Path", "node,1 node-2"},
                            {"X-DARTFS-Deadline", "1500"},
                            {"X-DARTFS-Trace", "000000000000001f"}};
  EXPECT_EQ(headers, expected);
  const auto read = ReadBlockRequest(headers);
  ASSERT_TRUE(read);
  EXPECT_EQ(WriteBlockRequest(*read), headers);
}

TEST(BlockRequestHead, ADartNodesHeadersAreEnough) {
  const auto none = ReadBlockRequest({});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->hop, 0U);
  EXPECT_TRUE(none->origin.empty());
  EXPECT_FALSE(none->object);
  const Headers headers = {{"x-dart-hop", "63"}, {"X-Dart-Origin", "http://h/"}, {"Accept", "*/*"}};
  const auto read = ReadBlockRequest(headers);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->hop, 63U);
  EXPECT_EQ(read->origin, "http://h/");
}

TEST(BlockRequestHead, HopsBeyondCountingAreBeyondTheLimit) {
  for (const char* hop : {"4294967296", "99999999999999999999999999"}) {
    const Headers headers = {{"X-DART-Hop", hop}};
    const auto read = ReadBlockRequest(headers);
    ASSERT_TRUE(read) << hop;
    EXPECT_GE(read->hop, 64U);
  }
}

TEST(BlockRequestHead, WhatIsMalformedIsNotTakenForAbsent) {
  const std::string long_path = [] {
    std::string text = "a";
    for (int i = 0; i < 64; ++i) text += " a";
    return text;
  }();
  const std::vector<HttpHeader> bad = {{"X-DART-Hop", ""},
                                       {"X-DART-Hop", "-1"},
                                       {"X-DART-Hop", "1.0"},
                                       {"X-DART-Hop", "0x1"},
                                       {"X-DARTFS-Object", ""},
                                       {"X-DARTFS-Object", "00"},
                                       {"X-DARTFS-Object", "zz112233445566778899aabbccddeeff"},
                                       {"X-DARTFS-Path", ""},
                                       {"X-DARTFS-Path", "a  b"},
                                       {"X-DARTFS-Path", "a\x7f"},
                                       {"X-DARTFS-Path", long_path},
                                       {"X-DARTFS-Path", std::string(257, 'a')},
                                       {"X-DARTFS-Deadline", "soon"},
                                       {"X-DARTFS-Trace", "1f"}};
  for (const HttpHeader& header : bad) {
    const Headers headers = {header};
    const auto read = ReadBlockRequest(headers);
    ASSERT_FALSE(read) << header.name << ": " << header.value;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_NE(read.error().context.find(header.name), std::string::npos);
  }
  for (const char* name : {"X-DART-Origin", "X-DART-Hop", "X-DARTFS-Object", "X-DARTFS-Path"}) {
    const Headers headers = {{name, "1"}, {name, "1"}};
    EXPECT_FALSE(ReadBlockRequest(headers)) << name << " twice";
  }
}

TEST(BlockRequestHead, DeadlinesDoNotOverflow) {
  const Headers headers = {{"X-DARTFS-Deadline", "18446744073709551615"}};
  const auto read = ReadBlockRequest(headers);
  ASSERT_TRUE(read);
  EXPECT_LE(*read->patience, std::chrono::hours(24));
}

TEST(BlockAnswerHead, IsReadAsItIsWritten) {
  BlockAnswerHead head;
  head.node = "node-1";
  head.epoch = 7;
  head.upstream_status = 403;
  head.object = StoreKey::Parse(kStoreKey);
  head.checksums = {1, 0xffffffffffffffff};
  head.busy = milliseconds(250);
  const Headers headers = WriteBlockAnswer(head);
  const Headers expected = {
      {"X-DART-Node", "node-1"},
      {"X-DART-Epoch", "7"},
      {"X-DART-Upstream-Status", "403"},
      {"X-DARTFS-Object", kStoreKey},
      {"X-DARTFS-Checksum", "xxh3-64/262144 0000000000000001,ffffffffffffffff"},
      {"X-DARTFS-Busy", "250"}};
  EXPECT_EQ(headers, expected);
  const auto read = ReadBlockAnswer(headers);
  ASSERT_TRUE(read);
  EXPECT_EQ(WriteBlockAnswer(*read), headers);
}

TEST(BlockAnswerHead, WhatIsUnreadableIsAbsent) {
  const Headers headers = {{"X-DART-Epoch", "-"},
                           {"X-DART-Upstream-Status", "500"},
                           {"X-DARTFS-Object", "none"},
                           {"X-DARTFS-Busy", "later"}};
  const auto read = ReadBlockAnswer(headers);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->epoch);
  EXPECT_FALSE(read->upstream_status) << "only 401 and 403 are the credential's";
  EXPECT_FALSE(read->object);
  EXPECT_FALSE(read->busy);
  const Headers twice = {{"X-DARTFS-Object", kStoreKey}, {"X-DARTFS-Object", kStoreKey}};
  EXPECT_FALSE(ReadBlockAnswer(twice)->object) << "two names are none";
  const std::string list = FormatChecksums(std::vector<uint64_t>{1});
  const Headers lists = {{"X-DARTFS-Checksum", list}, {"X-DARTFS-Checksum", list}};
  const auto garbled = ReadBlockAnswer(lists);
  ASSERT_FALSE(garbled);
  EXPECT_EQ(garbled.error().code, Code::kBadResponse);
}

TEST(Checksums, AnotherAlgorithmMeansNothingAndAGarbledListIsNone) {
  for (const char* other : {"", "sha256/262144 00", "xxh3-64/4096 0000000000000001"}) {
    const auto read = ParseChecksums(other);
    ASSERT_TRUE(read) << other;
    EXPECT_FALSE(*read) << other;
  }
  for (const char* bad :
       {"xxh3-64/262144 ", "xxh3-64/262144 1", "xxh3-64/262144 0000000000000001,",
        "xxh3-64/262144 0000000000000001 0000000000000001", "xxh3-64/262144 000000000000000g"}) {
    const auto read = ParseChecksums(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, Code::kBadResponse);
  }
  EXPECT_TRUE(ParseChecksums(FormatChecksums(std::vector<uint64_t>(4096, 1))));
  EXPECT_FALSE(ParseChecksums(FormatChecksums(std::vector<uint64_t>(4097, 1))));
}

}  // namespace
}  // namespace dartfs::core
