#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/text.h"

namespace dartfs::core {
namespace {

TEST(ParseHttpDate, Table) {
  struct Row {
    const char* in;
    std::optional<int64_t> out;
  };
  const std::vector<Row> rows = {
      // RFC 9110 section 5.6.7's examples, one instant in three forms.
      {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
      {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
      {"Sun Nov  6 08:49:37 1994", 784111777},
      {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
      {"Wed, 31 Dec 1969 23:59:59 GMT", -1},
      {"Thu, 29 Feb 2024 12:00:00 GMT", 1709208000},
      {"Fri Nov 16 08:49:37 2001", 1005900577},
      // The two-digit year's window.
      {"Thursday, 01-Jan-70 00:00:00 GMT", 0},
      {"Tuesday, 31-Dec-69 00:00:00 GMT", 3155673600},
      {"Wednesday, 01-Jan-20 00:00:00 GMT", 1577836800},
      // A leap second.
      {"Sat, 31 Dec 2016 23:59:60 GMT", 1483228800},
      // A day of the week that does not fit is not our trouble.
      {"Mon, 06 Nov 1994 08:49:37 GMT", 784111777},
      {"", std::nullopt},
      {"0", std::nullopt},
      {"-1", std::nullopt},
      {"Sun", std::nullopt},
      {"Sun, ", std::nullopt},
      {"Sun, 06 Nov 1994 08:49:37", std::nullopt},
      {"Sun, 06 Nov 1994 08:49:37 UTC", std::nullopt},
      {"Sun, 06 Nov 1994 08:49:37 +0000", std::nullopt},
      {"Sun, 06 Nov 1994 08:49:37 GMT ", std::nullopt},
      {" Sun, 06 Nov 1994 08:49:37 GMT", std::nullopt},
      {"Sun, 6 Nov 1994 08:49:37 GMT", std::nullopt},
      {"Sun, 06 nov 1994 08:49:37 GMT", std::nullopt},
      {"Sun, 06 Nov 94 08:49:37 GMT", std::nullopt},
      {"Sunday, 06-Nov-1994 08:49:37 GMT", std::nullopt},
      {"Sunday, 06 Nov 1994 08:49:37 GMT", std::nullopt},
      {"Sun Nov 6 08:49:37 1994", std::nullopt},
      {"Sun, 06 Nov 1994 24:00:00 GMT", std::nullopt},
      {"Sun, 06 Nov 1994 08:60:00 GMT", std::nullopt},
      {"Sun, 06 Nov 1994 08:00:61 GMT", std::nullopt},
      {"Sun, 06 Nov 1994 -8:49:37 GMT", std::nullopt},
      {"Sun, 00 Nov 1994 08:49:37 GMT", std::nullopt},
      {"Sun, 31 Nov 1994 08:49:37 GMT", std::nullopt},
      {"Wed, 29 Feb 2023 12:00:00 GMT", std::nullopt},
      {"Noday, 06 Nov 1994 08:49:37 GMT", std::nullopt},
  };
  for (const Row& row : rows) EXPECT_EQ(ParseHttpDate(row.in), row.out) << row.in;
}

TEST(ParseHttpDate, NoPrefixOfADateIsOne) {
  for (const std::string date : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                 "Sun Nov  6 08:49:37 1994"}) {
    for (size_t length = 0; length < date.size(); ++length) {
      EXPECT_EQ(ParseHttpDate(date.substr(0, length)), std::nullopt) << date.substr(0, length);
    }
  }
}

TEST(FormatHttpDate, Table) {
  EXPECT_EQ(FormatHttpDate(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(FormatHttpDate(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(FormatHttpDate(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(FormatHttpDate(INT64_MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
  EXPECT_EQ(FormatHttpDate(INT64_MIN), "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST(FormatHttpDate, ParsesBack) {
  for (int64_t t = -4'000'000'000; t < 8'000'000'000; t += 12'345'678) {
    EXPECT_EQ(ParseHttpDate(FormatHttpDate(t)), t);
  }
}

}  // namespace
}  // namespace dartfs::core
