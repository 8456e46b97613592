#include "fs/name_mapping.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/base/text.h"
#include "core/base/url.h"
#include "fake/seeded_random.h"

namespace dartfs::fs {
namespace {

struct Pair {
  const char* what;
  std::string segment;
  std::string name;
};

const Pair kSegments[] = {
    {"letters", "disk.img", "disk.img"},
    {"space", "a%20b", "a b"},
    {"escaped percent", "a%2520b", "a%20b"},
    {"escaped letter", "%41", "%=%2541"},
    {"lower-case hex of a letter", "%4a", "%=%254a"},
    {"UTF-8", "caf%C3%A9", "caf\xC3\xA9"},
    {"UTF-8 in lower-case hex", "caf%c3%a9", "%=caf%25c3%25a9"},
    {"not UTF-8", "%FF%FE", "\xFF\xFE"},
    {"control characters", "%01%0A%7F", "\x01\n\x7F"},
    {"sub-delims stay", "a!$&'()*+,;=:@b", "a!$&'()*+,;=:@b"},
    {"escaped plus", "a%2Bb", "%=a%252Bb"},
    {"raw bracket", "a[b]", "%=a[b]"},
    {"escaped bracket", "a%5Bb%5D", "a[b]"},
    {"question mark", "a%3Fb", "a?b"},
    {"hash", "a%23b", "a#b"},
    {"colon of a digest", "sha256:ab", "sha256:ab"},
    {"tilde", "~x", "~x"},
    {"lone percent", "100%", "%=100%25"},
    {"percent", "100%25", "100%"},
    {"half an escape", "a%2", "%=a%252"},
    {"escape without hex", "a%zzb", "%=a%25zzb"},
    {"empty", "", "%="},
    {"dot", ".", "%=."},
    {"escaped dot", "%2E", "%=%252E"},
    {"three dots", "...", "..."},
    {"dot dot, escaped twice", ".%252E", ".%2E"},
    {"hidden", ".hidden", ".hidden"},
    {"NUL", "a%00b", "%=a%2500b"},
    {"slash within", "a%2Fb", "%=a%252Fb"},
    {"lower-case slash within", "a%2fb", "%=a%252fb"},
    {"reads as a long name", "a%252Fb", "%=a%25252Fb"},
    {"reads as a long name, lower case", "a%253fb", "%=a%25253fb"},
    {"reads as escaped", "%25=x", "%=%2525=x"},
    {"reads as digested", "%25~x", "%=%2525~x"},
    {"percent, equals within", "a%25=x", "a%=x"},
    {"backslash", "a%5Cb", "a\\b"},
};

TEST(NameMapping, SegmentsBothWays) {
  for (const Pair& row : kSegments) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(SegmentToName(row.segment), row.name);
    const auto wire = NameToWire(row.name);
    ASSERT_TRUE(wire) << wire.error().ToString();
    EXPECT_EQ(wire->rest, row.segment);
    EXPECT_FALSE(wire->always_file);
  }
}

TEST(NameMapping, RestsBothWays) {
  const Pair rows[] = {
      {"deep", "sub/disk.img", "sub%2Fdisk.img"},
      {"query", "x?a=1&b=2", "x%3Fa=1&b=2"},
      {"escapes", "a%20b/c%2Fd", "a%2520b%2Fc%252Fd"},
      {"signature", "x?sig=ab%2Bcd%3D", "x%3Fsig=ab%252Bcd%253D"},
      {"query with slash and question mark", "x?p=/a?b", "x%3Fp=%2Fa%3Fb"},
      {"empty segments", "/x//y/", "%2Fx%2F%2Fy%2F"},
      {"query alone", "?x", "%3Fx"},
      {"lone percent", "a/100%", "a%2F100%25"},
      {"begins like an escaped name", "%=a/b", "%25=a%2Fb"},
      {"dot segments that stay inside", "a/../b", "a%2F..%2Fb"},
  };
  for (const Pair& row : rows) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(RestToName(row.segment), row.name);
    const auto wire = NameToWire(row.name);
    ASSERT_TRUE(wire) << wire.error().ToString();
    EXPECT_EQ(wire->rest, row.segment);
    EXPECT_TRUE(wire->always_file);
  }
}

TEST(NameMapping, LongNamesAsToolsWriteThem) {
  const Pair rows[] = {
      {"quote(safe='')", "x?y=1&z=2", "x%3Fy%3D1%26z%3D2"},
      {"lower-case hex", "a/b?c", "a%2fb%3fc"},
      {"a space in clear", "a%20b/c", "a b%2Fc"},
      {"a space as in the URL", "a%20b/c", "a%20b%2Fc"},
      {"bytes that are not ASCII", "%C3%A9/x", "\xC3\xA9%2Fx"},
      {"hash", "a%23b/c", "a#b%2Fc"},
      {"escaped hash", "a%23b/c", "a%23b%2Fc"},
      {"NUL", "a%00/c", "a%00%2Fc"},
      {"no escape", "a%zz/c", "a%zz%2Fc"},
  };
  for (const Pair& row : rows) {
    SCOPED_TRACE(row.what);
    const auto wire = NameToWire(row.name);
    ASSERT_TRUE(wire) << wire.error().ToString();
    EXPECT_EQ(*wire, (WireName{row.segment, true}));
  }
}

TEST(NameMapping, WhatIsNoName) {
  const std::pair<const char*, std::string> rows[] = {
      {"empty", ""},
      {"dot", "."},
      {"dot dot", ".."},
      {"slash", "a/b"},
      {"NUL", std::string("a\0b", 3)},
      {"plain, too long", std::string(256, 'x')},
      {"long, too long", "%2F" + std::string(1024, 'x')},
      {"escaped without need", "%=abc"},
      {"escaped percent with another escape", "%=%41"},
      {"escaped, byte not of a URL", "%=a b"},
      {"escaped, would be plain", "%=a%2520b"},
      {"escaped, hash", "%=a#%25"},
      {"escaped slash", "%=a%2Fb"},
      {"digested", "%~00112233445566778899aabbccddeeff.img"},
      {"escaped dot dot", "%=.."},
      {"escaped dot dot in escapes", "%=%252e%252E"},
      {"climbs out", "..%2Fsecret"},
      {"climbs out later", "a%2F..%2F..%2Fsecret"},
      {"climbs out in escapes", "%252e%252e%2Fsecret"},
      {"climbs out by escaped slashes", "%=..%252Fsecret"},
      {"climbs out past an empty segment", "a%2F%2F..%2F..%2Fx"},
  };
  for (const auto& [what, name] : rows) {
    SCOPED_TRACE(what);
    const auto wire = NameToWire(name);
    ASSERT_FALSE(wire) << wire->rest;
    EXPECT_EQ(wire.error().code, core::Code::kNotFound);
  }
}

TEST(NameMapping, OverlongSegmentsAreDigested) {
  const std::string a(300, 'a');
  const std::string name = SegmentToName(a + "%20x.img");
  EXPECT_TRUE(IsDigestedName(name));
  EXPECT_TRUE(name.ends_with("20x.img"));
  EXPECT_LE(name.size(), kMaxNameBytes);
  EXPECT_NE(name, SegmentToName(a + "%20y.img"));
  // 253 bytes still fit behind the mark, and 255 as a plain name.
  EXPECT_EQ(SegmentToName("[" + std::string(252, 'a')), "%=[" + std::string(252, 'a'));
  EXPECT_TRUE(IsDigestedName(SegmentToName("[" + std::string(253, 'a'))));
  EXPECT_EQ(SegmentToName(std::string(255, 'a')), std::string(255, 'a'));
  EXPECT_TRUE(IsDigestedName(SegmentToName(std::string(256, 'a'))));
  // Escaping on the wire does not count: 255 bytes of name are 765 of segment.
  std::string spaces;
  for (int i = 0; i < 255; ++i) spaces += "%20";
  EXPECT_EQ(SegmentToName(spaces), std::string(255, ' '));
}

TEST(NameMapping, OverlongNames) {
  EXPECT_FALSE(IsOverlong(std::string(255, 'x')));
  EXPECT_TRUE(IsOverlong(std::string(256, 'x')));
  EXPECT_FALSE(IsOverlong("%3F" + std::string(1021, 'x')));
  EXPECT_TRUE(IsOverlong("%3F" + std::string(1022, 'x')));
}

TEST(NameMapping, RestLongerThanTheKernelAllowsHasNoName) {
  EXPECT_TRUE(RestToName("x?" + std::string(1020, 'a')));
  EXPECT_FALSE(RestToName("x?" + std::string(1021, 'a')));
}

TEST(NameMapping, FairNames) {
  EXPECT_EQ(FairName("a%281%29"), "a(1)");
  EXPECT_EQ(FairName("caf%c3%a9"), "caf\xC3\xA9");
  EXPECT_EQ(FairName("%7Eme"), "~me");
  EXPECT_EQ(FairName("a[b"), "a[b");
  EXPECT_EQ(FairName("%41"), std::nullopt);
  EXPECT_EQ(FairName("a%2Db"), std::nullopt);
  EXPECT_EQ(FairName("a%2Fb"), std::nullopt);
  EXPECT_EQ(FairName("100%"), std::nullopt);
  EXPECT_EQ(FairName("%25=x"), std::nullopt);
  EXPECT_EQ(FairName("a%252Fb"), std::nullopt);
  EXPECT_EQ(FairName(""), std::nullopt);
}

// Bytes that make mapping hard, more often than others.
std::string HardBytes(core::SeededRandom& random, bool wire) {
  static constexpr std::string_view kHard = "%%%%225E2FfF3?=~./aA#";
  std::string text;
  const uint64_t size = random.Below(12);
  for (uint64_t i = 0; i < size; ++i) {
    char c = random.Below(4) == 0 ? static_cast<char>(random.Below(256))
                                  : kHard[random.Below(kHard.size())];
    if (wire && (c < 0x21 || c > 0x7E || c == '#')) c = '%';
    text += c;
  }
  return text;
}

TEST(NameMapping, EveryRestHasOneNameAndIsWhatItSays) {
  core::SeededRandom random(core::TestSeed());
  std::map<std::string, std::string> seen;
  for (int i = 0; i < 200000; ++i) {
    const std::string rest = HardBytes(random, true);
    const auto name = RestToName(rest);
    ASSERT_TRUE(name) << rest;
    ASSERT_TRUE(IsFileName(*name)) << rest;
    const auto [it, fresh] = seen.emplace(*name, rest);
    ASSERT_EQ(it->second, rest) << "two rests, one name: " << *name;
    const auto wire = NameToWire(*name);
    if (LeavesDirectory(rest)) {
      ASSERT_FALSE(wire) << rest;
    } else {
      ASSERT_TRUE(wire) << rest << " shown as " << *name;
      ASSERT_EQ(wire->rest, rest) << *name;
    }
  }
}

TEST(NameMapping, EveryNameIsTheNameOfWhatItMeans) {
  core::SeededRandom random(core::TestSeed());
  for (int i = 0; i < 200000; ++i) {
    const std::string name = HardBytes(random, false);
    const auto wire = NameToWire(name);
    if (!wire) continue;
    const std::string trace = core::EscapeForeign(name);
    ASSERT_TRUE(IsRest(wire->rest)) << trace;
    ASSERT_EQ(wire->always_file, !IsSegment(wire->rest)) << trace;
    const auto shown = RestToName(wire->rest);
    ASSERT_TRUE(shown) << trace;
    if (!wire->always_file) {
      ASSERT_EQ(*shown, name) << trace;
    } else {
      ASSERT_EQ(NameToWire(*shown).value(), *wire) << trace;
    }
  }
}

TEST(NameMapping, FairNamesDecodeToTheSameBytes) {
  core::SeededRandom random(core::TestSeed());
  for (int i = 0; i < 100000; ++i) {
    std::string segment = HardBytes(random, true);
    std::erase_if(segment, [](char c) { return c == '/' || c == '?'; });
    const auto name = FairName(segment);
    if (!name) continue;
    ASSERT_EQ(core::PercentDecode(segment), *name);
    ASSERT_EQ(core::PercentDecode(NameToWire(*name).value().rest), *name);
  }
}

}  // namespace
}  // namespace dartfs::fs
