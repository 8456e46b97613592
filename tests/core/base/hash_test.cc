#include "core/base/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

// FIPS 180-2's vectors, and those of the xxHash project for seed 0.
TEST(Hash, KnownVectors) {
  EXPECT_EQ(HexEncode(Sha256("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexEncode(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Xxh3(""), 0x2d06800538d394c2U);
}

TEST(Hash, BytesAndTextAgree) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(Xxh3(text), Xxh3(AsBytes(text)));
  EXPECT_NE(Xxh3(text), Xxh3(std::string_view("a")));
}

TEST(Digester, EqualsTheWholeHoweverTheInputIsCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  const std::string whole = HexEncode(Sha256(text));
  for (const size_t step : {1U, 63U, 64U, 65U, 999U, 1000U}) {
    const auto digester = Digester::Create("sha256");
    ASSERT_NE(digester, nullptr);
    for (size_t at = 0; at < text.size(); at += step) {
      digester->Update(AsBytes(std::string_view(text).substr(at, step)));
    }
    EXPECT_EQ(digester->FinishHex(), whole) << step;
  }
}

TEST(Digester, Sha512) {
  const auto digester = Digester::Create("sha512");
  digester->Update(AsBytes("abc"));
  EXPECT_EQ(digester->FinishHex(),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f");
}

TEST(Digester, OtherAlgorithmsAreNone) {
  for (const char* name : {"", "sha1", "md5", "SHA256", "sha256 "}) {
    EXPECT_EQ(Digester::Create(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace dartfs::core
