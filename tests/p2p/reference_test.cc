// Values that other nodes must compute alike, against reference.py, which is written from the
// protocol's text and shares nothing with the programs.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "core/base/wire_id.h"
#include "p2p/placement.h"
#include "p2p/preorder_tree.h"
#include "p2p/view.h"

namespace dartfs::p2p {
namespace {

constexpr int kCases = 10000;

std::vector<std::string> Split(std::string_view text, char at) {
  const auto parts = core::Split(text, at);
  return {parts.begin(), parts.end()};
}

std::vector<std::vector<std::string>> Cases(const std::string& kind) {
  const std::string command =
      "python3 -B " DARTFS_P2P_TESTS "/reference.py " + kind + " 20 " + std::to_string(kCases);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::vector<char> bytes(1 << 16);
  while (const size_t got = fread(bytes.data(), 1, bytes.size(), pipe.get())) {
    text.append(bytes.data(), got);
  }
  std::vector<std::vector<std::string>> cases;
  for (const std::string& line : Split(text, '\n')) {
    if (!line.empty()) cases.push_back(Split(line, '\t'));
  }
  EXPECT_EQ(cases.size(), static_cast<size_t>(kCases)) << command;
  return cases;
}

std::vector<Member> ParseMembers(const std::string& text) {
  const auto parts = Split(text, ' ');
  std::vector<Member> members;
  for (size_t i = 0; i + 1 < parts.size(); i += 2) {
    const double weight = std::bit_cast<double>(std::stoull(parts[i + 1], nullptr, 16));
    members.push_back({.id = parts[i], .addr = "h:1", .weight = weight});
  }
  return members;
}

TEST(Reference, NodeHashes) {
  for (const auto& row : Cases("node")) {
    ASSERT_EQ(NodeHash(std::stoull(row[0]), row[1]), std::stoull(row[2])) << row[1];
  }
}

TEST(Reference, ChunkKeys) {
  for (const auto& row : Cases("chunk")) {
    const int64_t index = std::stoll(row[2]);
    const uint64_t key = index < 0
                             ? core::MakeFileKey(row[0], row[1])
                             : core::MakeChunkKey(row[0], row[1], static_cast<uint64_t>(index));
    ASSERT_EQ(key, std::stoull(row[3])) << row[1] << " " << index;
  }
}

TEST(Reference, Epochs) {
  for (const auto& row : Cases("epoch")) {
    ASSERT_EQ(View(ParseMembers(row[0])).epoch(), std::stoull(row[1])) << row[0];
  }
}

TEST(Reference, Ranks) {
  for (const auto& row : Cases("rank")) {
    const View view(ParseMembers(row[1]));
    std::string order;
    for (const uint32_t index : Rank(std::stoull(row[0]), view.ready())) {
      order += (order.empty() ? "" : " ") + std::string(view.ready()[index].id);
    }
    ASSERT_EQ(order, row[2]) << row[0] << " " << row[1];
  }
}

TEST(Reference, Parents) {
  for (const auto& row : Cases("parents")) {
    const PreorderTree tree{static_cast<uint32_t>(std::stoul(row[0])),
                            static_cast<uint32_t>(std::stoul(row[1]))};
    std::string parents;
    for (uint32_t i = 0; i < tree.size; ++i) {
      parents += (i == 0 ? "-1" : " " + std::to_string(tree.Parent(i)));
    }
    ASSERT_EQ(parents, row[2]) << row[0] << " " << row[1];
  }
}

}  // namespace
}  // namespace dartfs::p2p
