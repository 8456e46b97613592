#include "core/base/version.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace dartfs::core {
namespace {

using Kind = Version::Kind;

constexpr char kModified[] = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr char kSecondLater[] = "Sun, 06 Nov 1994 08:49:38 GMT";
constexpr char kTwoSecondsLater[] = "Sun, 06 Nov 1994 08:49:39 GMT";
constexpr char kDayLater[] = "Mon, 07 Nov 1994 08:49:37 GMT";
constexpr char kDayBefore[] = "Sat, 05 Nov 1994 08:49:37 GMT";

struct Row {
  const char* name;
  VersionInputs inputs;
  Version want;
};

VersionInputs Head(std::string_view etag, std::string_view modified = {},
                   std::string_view date = {}, std::optional<uint64_t> size = 10) {
  return {.etag = etag, .last_modified = modified, .date = date, .size = size};
}

TEST(MakeVersion, Inputs) {
  const Version none;
  const Version modified{Kind::kModified, std::string("m:") + kModified + "/10"};
  const std::string long_etag = "\"" + std::string(1023, 'a') + "\"";
  const std::vector<Row> rows = {
      {"fixed", {.fixed = true}, {Kind::kFixed, ""}},
      {"fixed wins over validators",
       {.fixed = true, .etag = "\"a\"", .last_modified = kModified, .date = kDayLater, .size = 1},
       {Kind::kFixed, ""}},
      {"strong ETag", Head("\"v1\""), {Kind::kETag, "e:\"v1\""}},
      {"ETag wins over Last-Modified",
       Head("\"v1\"", kModified, kDayLater),
       {Kind::kETag, "e:\"v1\""}},
      {"ETag needs no size", Head("\"v1\"", {}, {}, std::nullopt), {Kind::kETag, "e:\"v1\""}},
      {"ETag with space around", Head(" \"v1\"\t"), {Kind::kETag, "e:\"v1\""}},
      {"ETag of UTF-8", Head("\"\xC3\xA4\""), {Kind::kETag, "e:\"\xC3\xA4\""}},
      {"weak ETag", Head("W/\"v1\""), none},
      {"weak ETag, Last-Modified serves", Head("W/\"v1\"", kModified, kDayLater), modified},
      {"weak mark in lower case", Head("w/\"v1\"", kModified, kDayLater), modified},
      {"empty ETag", Head("\"\"", kModified, kDayLater), modified},
      {"ETag without quotes", Head("v1", kModified, kDayLater), modified},
      {"one quote", Head("\"", kModified, kDayLater), modified},
      {"quote inside", Head("\"a\"b\"", kModified, kDayLater), modified},
      {"two ETags", Head("\"a\", \"b\"", kModified, kDayLater), modified},
      {"space inside", Head("\"a b\"", kModified, kDayLater), modified},
      {"separator inside",
       Head("\"a\x1F"
            "b\"",
            kModified, kDayLater),
       modified},
      {"DEL inside", Head("\"a\x7F\"", kModified, kDayLater), modified},
      {"long ETag", Head(long_etag, kModified, kDayLater), modified},
      {"a day old", Head("", kModified, kDayLater), modified},
      {"two seconds old", Head("", kModified, kTwoSecondsLater), modified},
      {"one second old", Head("", kModified, kSecondLater), none},
      {"as old as the answer", Head("", kModified, kModified), none},
      {"from the future", Head("", kModified, kDayBefore), none},
      {"no Date", Head("", kModified), none},
      {"bad Date", Head("", kModified, "yesterday"), none},
      {"bad Last-Modified", Head("", "0", kDayLater), none},
      {"no size", Head("", kModified, kDayLater, std::nullopt), none},
      {"size 0",
       Head("", kModified, kDayLater, 0),
       {Kind::kModified, std::string("m:") + kModified + "/0"}},
      {"nothing", {}, none},
  };
  for (const auto& row : rows) {
    const Version got = MakeVersion(row.inputs);
    EXPECT_EQ(got.kind, row.want.kind) << row.name;
    EXPECT_EQ(got.text, row.want.text) << row.name;
    EXPECT_EQ(ParseVersion(got.text), got) << row.name;
  }
}

TEST(Version, Validators) {
  const Version etag = MakeVersion(Head("\"a/b\""));
  EXPECT_EQ(etag.etag(), "\"a/b\"");
  EXPECT_EQ(etag.last_modified(), "");
  const Version modified = MakeVersion(Head("", kModified, kDayLater));
  EXPECT_EQ(modified.etag(), "");
  EXPECT_EQ(modified.last_modified(), kModified);
  EXPECT_EQ(MakeVersion({.fixed = true}).etag(), "");
  EXPECT_EQ(Version().last_modified(), "");
}

TEST(Version, UnversionedGenerationsAreApart) {
  const Version first = UnversionedGeneration(1);
  EXPECT_EQ(first.kind, Kind::kUnversioned);
  EXPECT_EQ(first.text, "n:0000000000000001");
  EXPECT_NE(first, UnversionedGeneration(2));
  EXPECT_NE(first, Version());
  EXPECT_NE(Version().text, MakeVersion({.fixed = true}).text);
  EXPECT_EQ(ParseVersion(first.text), first);
}

TEST(ParseVersion, Refused) {
  for (const char* bad : {"x", "e", "e:", "e:v1", "e:\"\"", "e:W/\"a\"", "E:\"a\"", "m:", "m:/1",
                          "m:Sun, 06 Nov 1994 08:49:37 GMT", "m:Sun, 06 Nov 1994 08:49:37 GMT/",
                          "m:Sun, 06 Nov 1994 08:49:37 GMT/-1", "m:yesterday/1", "n:1",
                          "n:000000000000000g", "n", "\"a\"", "e:\"a\x1F\""}) {
    EXPECT_EQ(ParseVersion(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace dartfs::core
