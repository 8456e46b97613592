#include "core/base/digest.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace dartfs::core {
namespace {

const std::string kHex(64, 'a');
const std::string kHex512(128, 'b');

struct Row {
  const char* name;
  std::string text;
  std::optional<Digest> want;
};

TEST(ParseDigest, Texts) {
  const std::vector<Row> rows = {
      {"sha256", "sha256:" + kHex, Digest{"sha256", kHex}},
      {"sha512", "sha512:" + kHex512, Digest{"sha512", kHex512}},
      {"capitals", "sha256:" + std::string(64, 'A'), Digest{"sha256", kHex}},
      {"63 digits", "sha256:" + kHex.substr(1), std::nullopt},
      {"65 digits", "sha256:" + kHex + "a", std::nullopt},
      {"sha512 of 64 digits", "sha512:" + kHex, std::nullopt},
      {"sha256 of 128 digits", "sha256:" + kHex512, std::nullopt},
      {"no hex", "sha256:" + std::string(64, 'g'), std::nullopt},
      {"algorithm in capitals", "SHA256:" + kHex, std::nullopt},
      {"other algorithm", "sha384:" + std::string(96, 'a'), std::nullopt},
      {"md5", "md5:" + std::string(32, 'a'), std::nullopt},
      {"space behind", "sha256:" + kHex + " ", std::nullopt},
      {"escaped colon", "sha256%3A" + kHex, std::nullopt},
      {"no algorithm", ":" + kHex, std::nullopt},
      {"hex only", kHex, std::nullopt},
      {"empty", "", std::nullopt},
  };
  for (const auto& row : rows) EXPECT_EQ(ParseDigest(row.text), row.want) << row.name;
}

TEST(RegistryBlobDigest, Paths) {
  const std::optional<Digest> want = Digest{"sha256", kHex};
  const std::vector<Row> rows = {
      {"with data", "/docker/registry/v2/blobs/sha256/aa/" + kHex + "/data", want},
      {"without data", "/docker/registry/v2/blobs/sha256/aa/" + kHex, want},
      {"at the root", "/blobs/sha256/aa/" + kHex, want},
      {"sha512", "/blobs/sha512/bb/" + kHex512, Digest{"sha512", kHex512}},
      {"capitals", "/blobs/sha256/AA/" + std::string(64, 'A'), want},
      {"two digits of another case", "/blobs/sha256/AA/" + kHex, std::nullopt},
      {"other two digits", "/blobs/sha256/ab/" + kHex, std::nullopt},
      {"one digit", "/blobs/sha256/a/" + kHex, std::nullopt},
      {"three digits", "/blobs/sha256/aaa/" + kHex, std::nullopt},
      {"no two digits", "/blobs/sha256/" + kHex, std::nullopt},
      {"empty two digits", "/blobs/sha256//" + kHex, std::nullopt},
      {"63 digits", "/blobs/sha256/aa/" + kHex.substr(1) + "/data", std::nullopt},
      {"wrong length for the algorithm", "/blobs/sha512/aa/" + kHex, std::nullopt},
      {"other algorithm", "/blobs/md5/aa/" + std::string(32, 'a'), std::nullopt},
      {"algorithm in capitals", "/blobs/SHA256/aa/" + kHex, std::nullopt},
      {"other folder", "/blob/sha256/aa/" + kHex, std::nullopt},
      {"folder that only ends so", "/myblobs/sha256/aa/" + kHex, std::nullopt},
      {"relative", "blobs/sha256/aa/" + kHex, std::nullopt},
      {"more behind", "/blobs/sha256/aa/" + kHex + "/data/x", std::nullopt},
      {"slash behind", "/blobs/sha256/aa/" + kHex + "/", std::nullopt},
      {"data twice", "/blobs/sha256/aa/" + kHex + "/data/data", std::nullopt},
      {"data in capitals", "/blobs/sha256/aa/" + kHex + "/Data", std::nullopt},
      {"data alone", "/data", std::nullopt},
      {"empty", "", std::nullopt},
  };
  for (const auto& row : rows) EXPECT_EQ(RegistryBlobDigest(row.text), row.want) << row.name;
}

}  // namespace
}  // namespace dartfs::core
