#include "core/base/store_key.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <unordered_set>

namespace dartfs::core {
namespace {

// Computed with an independent script.
constexpr char kHex[] = "f32231a594016f0506e56117b73c04d8";

TEST(StoreKey, HexRoundTrip) {
  const auto key = StoreKey::Parse(kHex);
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->ToHex(), kHex);
  EXPECT_EQ(StoreKey::Parse("F32231A594016F0506E56117B73C04D8"), key);
  EXPECT_EQ(StoreKey().ToHex(), std::string(32, '0'));
  for (const char* bad : {"", "f32231a594016f0506e56117b73c04d",
                          "f32231a594016f0506e56117b73c04d80", "f32231a594016f0506e56117b73c04dg",
                          "0xf32231a594016f0506e56117b73c04", " 32231a594016f0506e56117b73c04d8"}) {
    EXPECT_EQ(StoreKey::Parse(bad), std::nullopt) << bad;
  }
}

TEST(StoreKey, OrdersAndHashes) {
  const auto low = StoreKey::Parse("00000000000000000000000000000001");
  const auto high = StoreKey::Parse("80000000000000000000000000000000");
  ASSERT_TRUE(low && high);
  EXPECT_LT(*low, *high);
  EXPECT_NE(*low, *high);
  EXPECT_EQ((std::set<StoreKey>{*low, *high, *low}.size()), 2u);
  EXPECT_EQ((std::unordered_set<StoreKey>{*low, *high, *low}.size()), 2u);
}

TEST(HashStoreKey, GoldenValues) {
  const std::string digest =
      "sha256:abababababababababababababababababababababababababababababababab";
  const std::string url = "https://images.example.org/a%20b.img?x=1";
  struct Row {
    const char* name;
    StoreKeyFields fields;
    const char* want;
  } const rows[] = {
      {"etag", {"dart", 'u', url, "", "e:\"v1\""}, kHex},
      {"immutable", {"dart", 'u', url, "", ""}, "b97613af05fb8c6faa490850e4230b15"},
      {"namespace", {"ns2", 'u', url, "", ""}, "e25c04eb2fd04e7fd6a1af7753df512d"},
      {"modified",
       {"dart", 'u', "http://h/x", "", "m:Sun, 06 Nov 1994 08:49:37 GMT/1048576"},
       "70e1ee1d7a3af35f42befbc63b3ae1a5"},
      {"unverified",
       {"dart", 'd', digest, "https://r.example:443", ""},
       "57f3b01c41efcd3358c021298b1cdbb9"},
      {"verified", {"dart", 'd', digest, "", ""}, "f9906a5f8788c3f7af89162363c5016f"},
  };
  for (const auto& row : rows) {
    const auto key = HashStoreKey(row.fields);
    ASSERT_TRUE(key.has_value()) << row.name;
    EXPECT_EQ(key->ToHex(), row.want) << row.name;
  }
}

TEST(HashStoreKey, RefusesWhatCouldLookAlike) {
  const StoreKeyFields rows[] = {
      {"da\x1Frt", 'u', "id", "", "v"},
      {"dart", 'u',
       "i\x1F"
       "d",
       "", "v"},
      {"dart", 'd', "id", "o\x1Fo", "v"},
      {"dart", 'u', "id", "", "\x1Fv"},
      {"dart", 'u', "id", "origin", "v"},
      {"dart", 'x', "id", "", "v"},
      {"dart", '\x1F', "id", "", "v"},
  };
  for (const auto& fields : rows) {
    const auto key = HashStoreKey(fields);
    ASSERT_FALSE(key.has_value());
    EXPECT_EQ(key.error().code, Code::kInvalidArgument);
  }
}

// Bytes moved over a field's border give another key.
TEST(HashStoreKey, FieldsDoNotRunTogether) {
  std::set<StoreKey> keys;
  const StoreKeyFields rows[] = {
      {"a", 'u', "bc", "", ""}, {"a", 'u', "b", "", "c"}, {"ab", 'u', "c", "", ""},
      {"a", 'd', "bc", "", ""}, {"a", 'd', "b", "c", ""}, {"a", 'd', "b", "", "c"},
      {"", 'u', "abc", "", ""}, {"a", 'u', "", "", "bc"}, {"abc", 'u', "", "", ""},
  };
  for (const auto& fields : rows) {
    const auto key = HashStoreKey(fields);
    ASSERT_TRUE(key.has_value());
    EXPECT_TRUE(keys.insert(*key).second) << key->ToHex();
  }
}

}  // namespace
}  // namespace dartfs::core
