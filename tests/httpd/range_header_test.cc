#include "httpd/range_header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <random>
#include <set>
#include <string>

namespace dartfs::httpd {

void PrintTo(const RangeAnswer& answer, std::ostream* out) {
  *out << "kind " << static_cast<int>(answer.kind);
  for (const ByteRange& part : answer.parts) *out << " " << part.first << "-" << part.last;
}

namespace {

constexpr RangeAnswer::Kind kParts = RangeAnswer::Kind::kParts;
const RangeAnswer kWhole = {};
const RangeAnswer kUnsatisfiable = {RangeAnswer::Kind::kUnsatisfiable, {}};

struct Row {
  const char* what;
  std::string header;
  uint64_t size;
  RangeAnswer answer;
};

const Row kRows[] = {
    {"from to", "bytes=2-5", 10, {kParts, {{2, 5}}}},
    {"one byte", "bytes=0-0", 10, {kParts, {{0, 0}}}},
    {"the last byte", "bytes=9-9", 10, {kParts, {{9, 9}}}},
    {"all", "bytes=0-9", 10, {kParts, {{0, 9}}}},
    {"beyond the end is cut", "bytes=8-100", 10, {kParts, {{8, 9}}}},
    {"open", "bytes=3-", 10, {kParts, {{3, 9}}}},
    {"open from the start", "bytes=0-", 10, {kParts, {{0, 9}}}},
    {"suffix", "bytes=-3", 10, {kParts, {{7, 9}}}},
    {"suffix of all", "bytes=-10", 10, {kParts, {{0, 9}}}},
    {"suffix of more than all", "bytes=-11", 10, {kParts, {{0, 9}}}},
    {"unit in any case", "Bytes=1-2", 10, {kParts, {{1, 2}}}},
    {"spaces around", " bytes=1-2 ", 10, {kParts, {{1, 2}}}},
    {"leading zeros", "bytes=0001-00000000000000000000000002", 10, {kParts, {{1, 2}}}},
    {"a last byte beyond all numbers", "bytes=1-99999999999999999999999", 10, {kParts, {{1, 9}}}},
    {"a suffix beyond all numbers", "bytes=-99999999999999999999999", 10, {kParts, {{0, 9}}}},
    {"of a size near the largest",
     "bytes=-1",
     UINT64_MAX,
     {kParts, {{UINT64_MAX - 1, UINT64_MAX - 1}}}},

    {"start at the end", "bytes=10-", 10, kUnsatisfiable},
    {"start beyond the end", "bytes=11-12", 10, kUnsatisfiable},
    {"a start beyond all numbers", "bytes=99999999999999999999999-", 10, kUnsatisfiable},
    {"no suffix", "bytes=-0", 10, kUnsatisfiable},
    {"of nothing, from to", "bytes=0-0", 0, kUnsatisfiable},
    {"of nothing, open", "bytes=0-", 0, kUnsatisfiable},
    {"of nothing, suffix", "bytes=-5", 0, kUnsatisfiable},
    {"several, all beyond", "bytes=10-11,20-,-0", 10, kUnsatisfiable},

    {"several", "bytes=0-1,4-5", 10, {kParts, {{0, 1}, {4, 5}}}},
    {"in the client's order", "bytes=4-5,0-1", 10, {kParts, {{4, 5}, {0, 1}}}},
    {"with spaces and empty elements", "bytes= 0-1 ,, 4-5 ,\t", 10, {kParts, {{0, 1}, {4, 5}}}},
    {"those beyond are left out", "bytes=0-1,10-11,-0", 10, {kParts, {{0, 1}}}},
    {"overlapping", "bytes=0-4,3-6", 10, {kParts, {{0, 6}}}},
    {"touching", "bytes=0-4,5-6", 10, {kParts, {{0, 6}}}},
    {"the same twice", "bytes=1-2,1-2", 10, {kParts, {{1, 2}}}},
    {"one within another", "bytes=1-8,3-4", 10, {kParts, {{1, 8}}}},
    {"one that joins two", "bytes=0-1,6-7,1-6", 10, {kParts, {{0, 7}}}},
    {"one that joins two after another", "bytes=8-9,0-1,4-5,2-3", 10, {kParts, {{8, 9}, {0, 5}}}},
    {"suffix and whole", "bytes=-2,0-", 10, {kParts, {{0, 9}}}},

    {"empty", "", 10, kWhole},
    {"no unit", "0-5", 10, kWhole},
    {"another unit", "items=0-5", 10, kWhole},
    {"a unit that begins alike", "bytesx=0-5", 10, kWhole},
    {"nothing after the unit", "bytes=", 10, kWhole},
    {"commas alone", "bytes=,,", 10, kWhole},
    {"no dash", "bytes=5", 10, kWhole},
    {"a dash alone", "bytes=-", 10, kWhole},
    {"two dashes", "bytes=1--2", 10, kWhole},
    {"three numbers", "bytes=1-2-3", 10, kWhole},
    {"backwards", "bytes=5-4", 10, kWhole},
    {"backwards and beyond", "bytes=50-40", 10, kWhole},
    {"signs", "bytes=+1-2", 10, kWhole},
    {"hexadecimal", "bytes=0x1-2", 10, kWhole},
    {"a space inside", "bytes=1 -2", 10, kWhole},
    {"a space before the equals sign", "bytes =1-2", 10, kWhole},
    {"one of several is malformed", "bytes=0-1,x", 10, kWhole},
    {"malformed behind one beyond", "bytes=20-30,x", 10, kWhole},
    {"of nothing, malformed", "bytes=x", 0, kWhole},
};

TEST(RangeHeader, Table) {
  for (const Row& row : kRows) {
    EXPECT_EQ(AnswerRange(row.header, row.size), row.answer) << row.what << ": " << row.header;
  }
}

TEST(RangeHeader, OnlySoMany) {
  std::string header = "bytes=";
  for (size_t i = 0; i < kMostRanges; ++i) header += std::to_string(3 * i) + "-,";
  EXPECT_EQ(AnswerRange(header, 1000), (RangeAnswer{kParts, {{0, 999}}}));
  EXPECT_EQ(AnswerRange(header + "5-6", 1000), kWhole);
  EXPECT_EQ(AnswerRange(header + "5000-", 1000), kWhole) << "those beyond count too";
}

// Against the plain meaning: the set of bytes that some range names.
TEST(RangeHeader, PartsAreTheBytesThatWereAskedFor) {
  std::mt19937 random(7);
  const auto below = [&random](uint64_t limit) { return random() % limit; };
  for (int round = 0; round < 3000; ++round) {
    const uint64_t size = 1 + below(30);
    std::string header = "bytes=";
    std::set<uint64_t> wanted;
    for (uint64_t n = 1 + below(6); n > 0; --n) {
      const uint64_t first = below(35);
      const uint64_t last = first + below(8);
      header += std::to_string(first) + "-" + std::to_string(last) + (n > 1 ? "," : "");
      for (uint64_t i = first; i <= last && i < size; ++i) wanted.insert(i);
    }
    const RangeAnswer answer = AnswerRange(header, size);
    std::set<uint64_t> got;
    for (const ByteRange& part : answer.parts) {
      for (uint64_t i = part.first; i <= part.last; ++i) {
        ASSERT_TRUE(got.insert(i).second) << header << ": byte " << i << " twice";
      }
      ASSERT_EQ(got.count(part.last + 1), 0u) << header << ": parts that touch";
    }
    ASSERT_EQ(got, wanted) << header << " of " << size;
    ASSERT_EQ(answer == kUnsatisfiable, wanted.empty()) << header << " of " << size;
  }
}

TEST(RangeHeader, ContentRange) {
  EXPECT_EQ(ContentRange({2, 5}, 10), "bytes 2-5/10");
  EXPECT_EQ(UnsatisfiedContentRange(0), "bytes */0");
}

}  // namespace
}  // namespace dartfs::httpd
