#include "core/base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dartfs::core {
namespace {

using std::chrono::milliseconds;

TEST(EscapeForeign, Table) {
  struct Row {
    const char* name;
    std::string in;
    std::string out;
  };
  const std::vector<Row> rows = {
      {"empty", "", ""},
      {"printable stays", "a b~!\"'<>%", "a b~!\"'<>%"},
      {"backslash doubled", "a\\x41", "a\\\\x41"},
      {"newline and escape", "a\nb\x1b[31m", "a\\x0ab\\x1b[31m"},
      {"NUL and DEL", std::string("\0\x7f", 2), "\\x00\\x7f"},
      {"high bytes", "\xc3\xa9\xff", "\\xc3\\xa9\\xff"},
  };
  for (const Row& row : rows) EXPECT_EQ(EscapeForeign(row.in), row.out) << row.name;
}

TEST(EscapeForeign, CutsInputAtTheLimit) {
  EXPECT_EQ(EscapeForeign("abcd", 4), "abcd");
  EXPECT_EQ(EscapeForeign("abcde", 4), "abcd...");
  EXPECT_EQ(EscapeForeign("\n\n\n", 2), "\\x0a\\x0a...");
  EXPECT_EQ(EscapeForeign("a", 0), "...");
  EXPECT_EQ(EscapeForeign(std::string(513, 'x')), std::string(512, 'x') + "...");
}

TEST(EscapeForeign, EveryByteComesOutPrintableAndDistinct) {
  std::vector<std::string> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string out = EscapeForeign(std::string(1, static_cast<char>(byte)));
    for (const char c : out) EXPECT_TRUE(c >= 0x20 && c <= 0x7e) << byte;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), out), 0) << byte;
    seen.push_back(out);
  }
}

TEST(RedactUrl, Table) {
  struct Row {
    const char* name;
    std::string in;
    std::string out;
  };
  const std::vector<Row> rows = {
      {"plain", "https://h/a/b", "https://h/a/b"},
      {"empty", "", ""},
      {"port", "http://h:81/a", "http://h:81/a"},
      {"query", "https://h/a?X-Amz-Signature=secret", "https://h/a"},
      {"fragment", "https://h/a#secret", "https://h/a"},
      {"query before path", "https://h?secret/x", "https://h"},
      {"question mark in fragment", "https://h/a#x?secret", "https://h/a"},
      {"user", "https://secret@h/a", "https://h/a"},
      {"user and password", "https://user:secret@h:1/a?q", "https://h:1/a"},
      {"@ in password", "https://user:sec@ret@h/a", "https://h/a"},
      {"@ in path stays", "https://h/a@b:c", "https://h/a@b:c"},
      {"IPv6", "http://[2001:db8::1]:80/a@b", "http://[2001:db8::1]:80/a@b"},
      {"IPv6 without port", "http://[::1]/a@b", "http://[::1]/a@b"},
      {"IPv6 and user", "http://u:secret@[::1]:80/a", "http://[::1]:80/a"},
      {"slash in password", "http://u:sec/ret@h/a", "http://..."},
      {"question mark in password", "http://u:sec?ret@h/a", "http://..."},
      {"hash in password", "http://u:sec#ret@h/a", "http://..."},
      {"digits, then slash: a port", "http://h:12/a@b", "http://h:12/a@b"},
      {"no scheme", "u:secret@h/a?q", "h/a"},
      {"one slash only", "http:/u:secret@h/a", "..."},
      {"network path", "//u:secret@h/a?q", "//h/a"},
      {"absolute path", "/a/b@c?secret", "/a/b@c"},
      {"URL in a path", "http://n/dart/https://u:secret@h/a?q", "http://n/dart/https://h/a"},
      {"URL in an absolute path", "/dart/https://u:secret@h/a?q", "/dart/https://h/a"},
      {"URL in a query", "http://n/p?u=https://u:secret@h/a", "http://n/p"},
      {"foreign bytes", "http://h/a\r\nX: y\x80", "http://h/a\\x0d\\x0aX: y\\x80"},
      {"NUL", std::string("http://u:sec\0ret@h/", 19), "http://h/"},
      {"separator only", "://", "://"},
      {"many separators", "://://://", "://://://"},
  };
  for (const Row& row : rows) {
    const std::string out = RedactUrl(row.in);
    EXPECT_EQ(out, row.out) << row.name;
    EXPECT_EQ(out.find("secret"), std::string::npos) << row.name;
  }
}

TEST(RedactUrl, IsBounded) {
  EXPECT_EQ(RedactUrl("http://h/" + std::string(10'000, 'a')).size(), 512U + 3U);
  std::string nested;
  while (nested.size() < 1'000'000) nested += "http://u:secret@h/";
  EXPECT_EQ(RedactUrl(nested).find("secret"), std::string::npos);
}

TEST(Ascii, LowerTouchesOnlyAscii) {
  EXPECT_EQ(ToLowerAscii("AbZ@[`{0\xc3\x84"), "abz@[`{0\xc3\x84");
}

TEST(Ascii, EqualsIgnoreCase) {
  EXPECT_TRUE(EqualsIgnoreCase("", ""));
  EXPECT_TRUE(EqualsIgnoreCase("ETag", "eTAG"));
  EXPECT_FALSE(EqualsIgnoreCase("ETag", "ETags"));
  EXPECT_FALSE(EqualsIgnoreCase("@", "`"));
  EXPECT_FALSE(EqualsIgnoreCase("\xc4", "\xe4"));
}

TEST(Ascii, Trim) {
  for (const char* in : {"a b", " a b", "a b\t", "\r\n a b \v\f"}) {
    EXPECT_EQ(TrimAscii(in), "a b") << in;
  }
  EXPECT_EQ(TrimAscii(" \t\r\n"), "");
  EXPECT_EQ(TrimAscii(""), "");
  EXPECT_EQ(TrimAscii("\xa0"), "\xa0");
}

TEST(Split, KeepsEmptyParts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(Split("", ','), Parts({""}));
  EXPECT_EQ(Split("a", ','), Parts({"a"}));
  EXPECT_EQ(Split("a,b", ','), Parts({"a", "b"}));
  EXPECT_EQ(Split(",a,,", ','), Parts({"", "a", "", ""}));
}

TEST(Hex, EncodeAndRecognise) {
  const std::array<std::byte, 4> bytes = {std::byte{0}, std::byte{0x0f}, std::byte{0xa0},
                                          std::byte{0xff}};
  EXPECT_EQ(HexEncode(bytes), "000fa0ff");
  EXPECT_EQ(HexEncode({}), "");
  EXPECT_TRUE(IsHex("0123456789abcdefABCDEF"));
  for (const char* in : {"", "0x1", "g", " 1", "1-"}) EXPECT_FALSE(IsHex(in)) << in;
}

TEST(AppendNumber, IsReadAgain) {
  for (const uint64_t number : {uint64_t{0}, uint64_t{9}, uint64_t{10}, UINT64_MAX}) {
    std::string text = "a";
    AppendNumber(number, &text);
    EXPECT_EQ(text, "a" + std::to_string(number));
    EXPECT_EQ(ParseUint(text.substr(1)), number);
  }
}

TEST(ParseUint, Table) {
  struct Row {
    std::string in;
    std::optional<uint64_t> out;
  };
  const std::vector<Row> rows = {
      {"0", 0},
      {"007", 7},
      {"18446744073709551615", UINT64_MAX},
      {"18446744073709551616", std::nullopt},
      {"99999999999999999999999", std::nullopt},
      {"", std::nullopt},
      {"-1", std::nullopt},
      {"+1", std::nullopt},
      {" 1", std::nullopt},
      {"1 ", std::nullopt},
      {"0x10", std::nullopt},
      {"1.0", std::nullopt},
      {std::string("1\0", 2), std::nullopt},
  };
  for (const Row& row : rows) EXPECT_EQ(ParseUint(row.in), row.out) << row.in;
  EXPECT_EQ(ParseUint({}), std::nullopt);
}

TEST(ParseSize, Table) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  struct Row {
    const char* in;
    std::optional<uint64_t> out;
  };
  const std::vector<Row> rows = {
      {"0", 0},
      {"4096", 4096},
      {"4096B", 4096},
      {"64KiB", 65536},
      {"64kib", 65536},
      {"64K", 65536},
      {"64kB", 64000},
      {"3MB", 3'000'000},
      {"3MiB", 3 << 20},
      {"1GB", 1'000'000'000},
      {"1GiB", kGiB},
      {"10G", 10 * kGiB},
      {"2TB", 2'000'000'000'000},
      {"2TiB", 2048 * kGiB},
      {"1PiB", kGiB << 20},
      {"15EiB", 15 * (kGiB << 30)},
      {"18EB", 18'000'000'000'000'000'000U},
      {"16EiB", std::nullopt},
      {"19EB", std::nullopt},
      {"99999999999999999999", std::nullopt},
      {"", std::nullopt},
      {"G", std::nullopt},
      {"-1G", std::nullopt},
      {"1.5G", std::nullopt},
      {"1 G", std::nullopt},
      {"1GiBs", std::nullopt},
      {"1Gi", std::nullopt},
      {"1X", std::nullopt},
      {"1BB", std::nullopt},
  };
  for (const Row& row : rows) EXPECT_EQ(ParseSize(row.in), row.out) << row.in;
}

TEST(FormatSize, Table) {
  struct Row {
    uint64_t in;
    const char* out;
  };
  const std::vector<Row> rows = {
      {0, "0 B"},
      {1, "1 B"},
      {1023, "1023 B"},
      {1024, "1 KiB"},
      {1536, "1.5 KiB"},
      {(1 << 20) - 1, "1 MiB"},
      {1610612736, "1.5 GiB"},
      {uint64_t{1} << 40, "1 TiB"},
      {UINT64_MAX, "16 EiB"},
  };
  for (const Row& row : rows) EXPECT_EQ(FormatSize(row.in), row.out);
}

TEST(ParseDuration, Table) {
  struct Row {
    const char* in;
    std::optional<milliseconds> out;
  };
  const std::vector<Row> rows = {
      {"0", milliseconds(0)},
      {"60", milliseconds(60'000)},
      {"500ms", milliseconds(500)},
      {"2s", milliseconds(2000)},
      {"5m", milliseconds(300'000)},
      {"1h", milliseconds(3'600'000)},
      {"876000h", milliseconds(3'153'600'000'000)},
      {"876001h", std::nullopt},
      {"18446744073709551615", std::nullopt},
      {"", std::nullopt},
      {"s", std::nullopt},
      {"-1s", std::nullopt},
      {"1.5s", std::nullopt},
      {"1 s", std::nullopt},
      {"1S", std::nullopt},
      {"1min", std::nullopt},
      {"none", std::nullopt},
  };
  for (const Row& row : rows) EXPECT_EQ(ParseDuration(row.in), row.out) << row.in;
}

}  // namespace
}  // namespace dartfs::core
