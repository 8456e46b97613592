#include "httpd/conditions.h"

#include <gtest/gtest.h>

namespace dartfs::httpd {
namespace {

using Field = std::optional<std::string_view>;

constexpr Verdict kServe = Verdict::kServe;
constexpr Verdict kNotModified = Verdict::kNotModified;
constexpr Verdict kFailed = Verdict::kPreconditionFailed;

constexpr int64_t kThen = 784111777;
constexpr const char* kThenText = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr const char* kBefore = "Sun, 06 Nov 1994 08:49:36 GMT";
constexpr const char* kAfter = "Sun, 06 Nov 1994 08:49:38 GMT";

const Validators kStrong = {"\"a\"", kThen};
const Validators kWeak = {"W/\"a\"", kThen};
const Validators kNone = {};

struct Row {
  const char* what;
  Conditions conditions;
  Validators validators;
  Verdict verdict;
};

Conditions IfMatch(Field value) { return {.if_match = value}; }
Conditions IfNoneMatch(Field value) { return {.if_none_match = value}; }
Conditions Since(Field value) { return {.if_modified_since = value}; }
Conditions UnmodifiedSince(Field value) { return {.if_unmodified_since = value}; }

const Row kRows[] = {
    {"none", {}, kStrong, kServe},
    {"none, and no validators", {}, kNone, kServe},

    {"its tag", IfNoneMatch("\"a\""), kStrong, kNotModified},
    {"its tag, weak in the request", IfNoneMatch("W/\"a\""), kStrong, kNotModified},
    {"its tag, weak at the origin", IfNoneMatch("\"a\""), kWeak, kNotModified},
    {"another tag", IfNoneMatch("\"b\""), kStrong, kServe},
    {"tags differ in case", IfNoneMatch("\"A\""), kStrong, kServe},
    {"one of a list", IfNoneMatch("\"x\", W/\"y\" ,\"a\""), kStrong, kNotModified},
    {"a comma in a tag", IfNoneMatch("\"x,y\",\"a\""), kStrong, kNotModified},
    {"an odd quote", IfNoneMatch("\"x,\"a\""), kStrong, kServe},
    {"any", IfNoneMatch("*"), kStrong, kNotModified},
    {"any, without a tag", IfNoneMatch("*"), kNone, kNotModified},
    {"a tag, without one", IfNoneMatch("\"a\""), kNone, kServe},
    {"without quotes", IfNoneMatch("a"), kStrong, kServe},
    {"an open quote", IfNoneMatch("\"a"), kStrong, kServe},
    {"nothing", IfNoneMatch(""), kStrong, kServe},

    {"its date", Since(kThenText), kStrong, kNotModified},
    {"a later date", Since(kAfter), kStrong, kNotModified},
    {"an earlier date", Since(kBefore), kStrong, kServe},
    {"no date", Since("yesterday"), kStrong, kServe},
    {"a date, and none is known", Since(kAfter), kNone, kServe},
    {"another tag goes before the date",
     {.if_none_match = "\"b\"", .if_modified_since = kAfter},
     kStrong,
     kServe},
    {"its tag goes before an earlier date",
     {.if_none_match = "\"a\"", .if_modified_since = kBefore},
     kStrong,
     kNotModified},
    {"what is no tag goes before nothing",
     {.if_none_match = "a", .if_modified_since = kAfter},
     kStrong,
     kNotModified},

    {"must be it", IfMatch("\"a\""), kStrong, kServe},
    {"must be any", IfMatch("*"), kNone, kServe},
    {"must be another", IfMatch("\"b\""), kStrong, kFailed},
    {"must be one of", IfMatch("\"b\", \"a\""), kStrong, kServe},
    {"must be it, weak in the request", IfMatch("W/\"a\""), kStrong, kFailed},
    {"must be it, weak at the origin", IfMatch("\"a\""), kWeak, kFailed},
    {"must be what is no tag", IfMatch("a"), kStrong, kFailed},
    {"must be some tag, and there is none", IfMatch("\"a\""), kNone, kFailed},
    {"must be it, and not have it",
     {.if_match = "\"a\"", .if_none_match = "\"a\""},
     kStrong,
     kNotModified},

    {"unmodified since its date", UnmodifiedSince(kThenText), kStrong, kServe},
    {"unmodified since later", UnmodifiedSince(kAfter), kStrong, kServe},
    {"unmodified since before", UnmodifiedSince(kBefore), kStrong, kFailed},
    {"unmodified since, and no date is known", UnmodifiedSince(kBefore), kNone, kServe},
    {"unmodified since no date", UnmodifiedSince("x"), kStrong, kServe},
    {"its tag goes before the date it must have",
     {.if_match = "\"a\"", .if_unmodified_since = kBefore},
     kStrong,
     kServe},
};

TEST(Conditions, Table) {
  for (const Row& row : kRows) {
    EXPECT_EQ(Judge(row.conditions, row.validators), row.verdict) << row.what;
  }
}

TEST(Conditions, IfRangeIsAStrongTag) {
  const auto holds = [](Field value, const Validators& validators) {
    return RangeHolds({.if_range = value}, validators);
  };
  EXPECT_TRUE(holds(std::nullopt, kNone));
  EXPECT_TRUE(holds("\"a\"", kStrong));
  EXPECT_TRUE(holds(" \"a\" ", kStrong));
  EXPECT_FALSE(holds("\"b\"", kStrong));
  EXPECT_FALSE(holds("W/\"a\"", kStrong));
  EXPECT_FALSE(holds("W/\"a\"", kWeak));
  EXPECT_FALSE(holds("\"a\"", kWeak));
  EXPECT_FALSE(holds("\"a\"", kNone));
  EXPECT_FALSE(holds("", kNone));
  EXPECT_FALSE(holds(kThenText, kStrong)) << "a date is no strong validator";
  EXPECT_FALSE(holds("\"a\", \"b\"", kStrong)) << "one tag, no list";
}

}  // namespace
}  // namespace dartfs::httpd
