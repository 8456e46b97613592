#include "core/base/wire_id.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace dartfs::core {
namespace {

std::string Repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

struct KeyRow {
  const char* cache_namespace;
  std::string id;
  uint64_t index;
  uint64_t want;
};

// WIRE.md section 8.
TEST(MakeChunkKey, GoldenValues) {
  const std::string digest = "sha256:" + Repeat("ab", 32);
  const std::vector<KeyRow> rows = {
      {"dart", digest, 0, 284481562108898346u},
      {"dart", digest, 1, 5100546052700164472u},
      {"dart", digest, ~uint64_t{0}, 143782729898896373u},
      {"ns2", digest, 0, 7473071683502782500u},
      {"dart", "https://registry.example.com/v2/lib/nginx/blobs", 0, 4130664464540416952u},
      {"dart", "https://images.example.org/debian.qcow2", 7, 11559067340787465040u},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(MakeChunkKey(row.cache_namespace, row.id, row.index), row.want)
        << row.id << row.index;
  }
  EXPECT_EQ(MakeFileKey("dart", digest), 143782729898896373u);
  EXPECT_EQ(FormatKey(284481562108898346u), "3f2ae7936a62c2a");
}

struct NodeRow {
  uint64_t key;
  const char* node;
  uint64_t want;
};

// The node hash is placement's; its golden values pin the primitives it is made of.
TEST(Fnv1a64, GoldenNodeHashes) {
  const NodeRow rows[] = {
      {0, "node-a", 16511540948091628860u},
      {1, "node-a", 16141481610525751987u},
      {0, "node-b", 16852417870494220010u},
      {0xdeadbeefcafebabeu, "node-0", 15394106576409441172u},
      {42, "kube-node-01", 16063926426682601568u},
      {UINT64_MAX, "n", 8170348174710897647u},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Fmix64(Fnv1a64().AddLittleEndian(row.key).Add(row.node).value()), row.want)
        << row.key << row.node;
  }
  EXPECT_EQ(Fmix64(Fnv1a64().value()), 17280346270528514342u);  // the epoch of no members
}

TEST(Key, Format) {
  EXPECT_EQ(FormatKey(0), "0");
  EXPECT_EQ(FormatKey(UINT64_MAX), "ffffffffffffffff");
}

TEST(Key, Parse) {
  EXPECT_EQ(ParseKey("3f2ae7936a62c2a"), 284481562108898346u);
  EXPECT_EQ(ParseKey("3F2AE7936A62C2A"), 284481562108898346u);
  EXPECT_EQ(ParseKey("03f2ae7936a62c2a"), 284481562108898346u);
  EXPECT_EQ(ParseKey("0"), 0u);
  EXPECT_EQ(ParseKey("ffffffffffffffff"), UINT64_MAX);
  for (const char* bad : {"", "g", "0x1", "-1", "+1", " 1", "1 ", "00000000000000001", "1.0"}) {
    EXPECT_EQ(ParseKey(bad), std::nullopt) << bad;
  }
}

TEST(Namespace, Validate) {
  EXPECT_TRUE(ValidateNamespace("dart").has_value());
  EXPECT_FALSE(ValidateNamespace("").has_value());
  EXPECT_FALSE(ValidateNamespace("a\x1F"
                                 "b")
                   .has_value());
}

struct WireRow {
  const char* name;
  std::string url;
  std::string want;
  bool oci_digest_only = false;
};

TEST(WireId, Rules) {
  const std::string hex = Repeat("ab", 32);
  const std::string hex512 = Repeat("cd", 64);
  const std::string digest = "sha256:" + hex;
  const std::string layout = "https://b.example.net/docker/registry/v2/blobs/sha256/ab/" + hex;
  const std::vector<WireRow> rows = {
      {"registry blob", "https://R.example.com/v2/a/b/blobs/sha256:" + Repeat("AB", 32), digest},
      {"store layout", layout + "/data?sig=1", digest},
      {"store layout without data", layout, digest},
      {"store layout switched off", layout + "/data?sig=1", layout + "/data", true},
      {"digest segment stays on", "http://h/sha256:" + hex, digest, true},
      {"store layout, sha512", "http://h/blobs/sha512/cd/" + hex512, "sha512:" + hex512},
      {"store layout, other digits", "http://h/blobs/sha256/cd/" + hex,
       "http://h/blobs/sha256/cd/" + hex},
      {"store layout, more behind", layout + "/data/x", layout + "/data/x"},
      {"canonical", "HTTPS://Images.Example.org:8443/a%20b.img?x=1#y",
       "https://images.example.org:8443/a b.img"},
      {"default port stays", "https://h:443/x", "https://h:443/x"},
      {"login goes", "https://u:p@h/x", "https://h/x"},
      {"login with @ goes", "https://u:p@q@h/x", "https://h/x"},
      {"separator is dropped", "http://h/a%1Fb", "http://h/ab"},
      {"separator is dropped from raw text",
       "a\x1F"
       "b",
       "ab"},
      {"escaped slash", "http://h/a%2fb", "http://h/a/b"},
      {"no path", "http://h", "http://h"},
      {"query without path", "http://h?x", "http://h"},
      {"any scheme", "S3+x://Bucket/Key", "s3+x://bucket/Key"},
      {"IPv6", "http://[::A]:80/x", "http://[::a]:80/x"},
      {"32 digits of any algorithm", "http://h/md5:" + Repeat("0F", 16), "md5:" + Repeat("0f", 16)},
      {"31 digits", "http://h/md5:" + std::string(31, '0'), "http://h/md5:" + std::string(31, '0')},
      {"odd number of digits", "http://h/x:" + std::string(33, 'A'), "x:" + std::string(33, 'a')},
      {"algorithm in capitals", "http://h/MD5:" + std::string(32, '0'),
       "http://h/MD5:" + std::string(32, '0')},
      {"no algorithm", "http://h/:" + std::string(32, '0'), "http://h/:" + std::string(32, '0')},
      {"not hex", "http://h/md5:" + std::string(32, 'g'), "http://h/md5:" + std::string(32, 'g')},
      {"first digest wins", "http://h/sha256:" + hex + "/sha512:" + hex512 + "/x", digest},
      {"digest in the middle", "http://h/" + digest + "/data", digest},
      {"escaped colon", "http://h/sha256%3A" + hex, digest},
      {"digest in the query is none", "http://h/x?" + digest, "http://h/x"},
      {"no scheme", "/a/b?c", "/a/b"},
      {"no scheme, digest", "v2/" + digest + "?c", digest},
      {"no host", "file:///a/b#c", "file:///a/b"},
      {"bad escape: raw text", "HTTP://H/%zz?q", "HTTP://H/%zz"},
      {"bad escape, digest", "http://h/%zz/" + digest, digest},
      {"empty", "", ""},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(WireId(row.url, row.oci_digest_only), row.want) << row.name;
  }
}

TEST(WireId, OfAUrlIsThatOfWhatPeersAreSent) {
  for (const char* text :
       {"HTTPS://u:p@H:443/a%20b?q#f", "http://h", "http://H/%zz", "http://h/x?"}) {
    const auto url = ParseUrl(text);
    ASSERT_TRUE(url.has_value()) << text;
    EXPECT_EQ(WireId(*url, false), WireId(url->ToString(), false)) << text;
  }
}

}  // namespace
}  // namespace dartfs::core
