#include "fs/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace dartfs::fs {
namespace {

using core::Code;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kSha256 = "sha256:" + std::string(32, 'a') + std::string(32, 'B');
const std::string kSha512 = "sha512:" + std::string(128, '7');

std::shared_ptr<const Catalog> Parsed(const std::string& text) {
  auto catalog = Catalog::Parse(text, "/etc/c.tsv", 77);
  EXPECT_TRUE(catalog) << catalog.error().context;
  return catalog ? *catalog : nullptr;
}
std::string ErrorOf(const std::string& text) {
  const auto catalog = Catalog::Parse(text, "/etc/c.tsv", 0);
  EXPECT_FALSE(catalog) << text;
  if (catalog) return "";
  EXPECT_EQ(catalog.error().code, Code::kInvalidArgument);
  return catalog.error().context;
}
std::vector<std::string> NamesIn(const Catalog& catalog, std::string_view dir) {
  std::vector<std::string> names;
  const auto id = catalog.FindDir(dir);
  EXPECT_TRUE(id) << dir;
  if (!id) return names;
  const auto [first, last] = catalog.ChildrenOf(*id);
  for (Catalog::Id child = first; child < last; ++child) {
    names.push_back(std::string(catalog.NameOf(child)) + (catalog.IsDir(child) ? "/" : ""));
  }
  return names;
}

TEST(Catalog, ATree) {
  const auto catalog = Parsed(
      "# images\n"
      "z.img\thttp://h/z\n"
      "\n"
      "vm/b.img\thttps://h/b?x=1\t4096\n"
      "vm/a/c.img\thttp://h/c\t-\t" +
      kSha256 + "\nvm.img\thttp://h/v\t0\t" + kSha512 + "\nvm-old/d\thttp://h/d\t\t-\t\n");
  EXPECT_EQ(catalog->files(), 5U);
  EXPECT_EQ(catalog->mtime(), 77);
  EXPECT_THAT(NamesIn(*catalog, ""), ElementsAre("vm/", "vm-old/", "vm.img", "z.img"));
  EXPECT_THAT(NamesIn(*catalog, "vm/"), ElementsAre("a/", "b.img"));
  EXPECT_THAT(NamesIn(*catalog, "vm/a/"), ElementsAre("c.img"));

  const auto b = catalog->Find(*catalog->FindDir("vm/"), "b.img");
  ASSERT_TRUE(b);
  EXPECT_EQ(catalog->UrlOf(*b), "https://h/b?x=1");
  EXPECT_EQ(catalog->SizeOf(*b), 4096U);
  EXPECT_EQ(catalog->DigestOf(*b), "");
  EXPECT_EQ(catalog->LineOf(*b), 4U);
  const auto c = catalog->Find(*catalog->FindDir("vm/a/"), "c.img");
  EXPECT_EQ(catalog->SizeOf(*c), std::nullopt);
  EXPECT_EQ(catalog->DigestOf(*c), "sha256:" + std::string(32, 'a') + std::string(32, 'b'));
  const auto v = catalog->Find(Catalog::kRoot, "vm.img");
  EXPECT_EQ(catalog->SizeOf(*v), 0U);
  EXPECT_EQ(catalog->DigestOf(*v), kSha512);
}

TEST(Catalog, WhatIsNotThere) {
  const auto catalog = Parsed("a/b\thttp://h/b\n");
  for (const char* dir : {"b/", "a", "a/b/", "/", "a//", "a/../"}) {
    EXPECT_FALSE(catalog->FindDir(dir)) << dir;
  }
  for (const char* name : {"", "b", "A", "a/", "aa"}) {
    EXPECT_FALSE(catalog->Find(Catalog::kRoot, name)) << name;
  }
}

TEST(Catalog, NamesAreBytes) {
  const auto catalog = Parsed(
      "\\x23comment\thttp://h/1\n"
      "tab\\there\thttp://h/2\n"
      "\xff\\xfe\thttp://h/3\n"
      "back\\\\slash\thttp://h/4\n"
      "new\\nline\\r\thttp://h/5\n"
      " spaces \thttp://h/6\n"
      "a%2Fb\thttp://h/7\n");
  EXPECT_THAT(NamesIn(*catalog, ""), ElementsAre(" spaces ", "#comment", "a%2Fb", "back\\slash",
                                                 "new\nline\r", "tab\there", "\xff\xfe"));
}

TEST(Catalog, EndsOfLines) {
  for (const char* text : {"a\thttp://h/1\nb\thttp://h/2\n", "a\thttp://h/1\r\nb\thttp://h/2\r\n",
                           "a\thttp://h/1\r\n\r\nb\thttp://h/2",
                           "\xEF\xBB\xBF"
                           "a\thttp://h/1\nb\thttp://h/2",
                           "#x\r\n \t \na\thttp://h/1\nb\thttp://h/2\n\n\n"}) {
    const auto catalog = Parsed(text);
    EXPECT_THAT(NamesIn(*catalog, ""), ElementsAre("a", "b"));
    EXPECT_EQ(catalog->UrlOf(*catalog->Find(0, "b")), "http://h/2");
  }
}

TEST(Catalog, NothingInIt) {
  for (const char* text : {"", "\n", "# nothing\n", "\xEF\xBB\xBF"}) {
    EXPECT_THAT(NamesIn(*Parsed(text), ""), ElementsAre());
  }
}

TEST(Catalog, ErrorsSayWhereWhatAndWhatIsRight) {
  const std::string good = "x\thttp://h/x\n";
  const struct {
    std::string line;
    const char* says;
  } rows[] = {
      {"a", "no URL"},
      {"a\t", "no URL"},
      {"a http://h/a", "no URL"},
      {"a\tftp://h/a", "http:// or https:// URL"},
      {"a\t/local", "http:// or https:// URL"},
      {"a\thttp://h/a b", "http:// or https:// URL"},
      {"a\thttp://u:secret@h/a", "a login can't stand in a catalogue"},
      {"../a\thttp://h/a", "'..'"},
      {"a/./b\thttp://h/a", "'.'"},
      {"a/..\thttp://h/a", "'..'"},
      {"a/\\x2e\\x2e\thttp://h/a", "'..'"},
      {"/a\thttp://h/a", "an empty component"},
      {"a/\thttp://h/a", "an empty component"},
      {"a//b\thttp://h/a", "an empty component"},
      {"\thttp://h/a", "an empty component"},
      {std::string(256, 'n') + "\thttp://h/a", "256 bytes; a name has at most 255"},
      {"a\\x2Fb\thttp://h/a", "escaped '/'"},
      {"a\\x00b\thttp://h/a", "NUL"},
      {std::string("a\0b\thttp://h/a", 14), "NUL"},
      {"a\\qb\thttp://h/a", "begins no escape"},
      {"a\\x1\thttp://h/a", "begins no escape"},
      {"a\\\thttp://h/a", "begins no escape"},
      {"a\thttp://h/a\t1k", "third column"},
      {"a\thttp://h/a\t-1", "third column"},
      {"a\thttp://h/a\t99999999999999999999", "third column"},
      {"a\thttp://h/a\t9223372036854775808", "third column"},
      {"a\thttp://h/a\t\tmd5:0", "fourth column"},
      {"a\thttp://h/a\t\tsha256:ab", "fourth column"},
      {"a\thttp://h/a\t" + kSha256, "third column"},
      {"a\thttp://h/a\t1\t-\tmore", "more than four columns"},
      {"x\thttp://h/other", "stands in line 1 already"},
      {"x/y\thttp://h/other", "'x', which is a file in line 1"},
      {"a\thttp://h/" + std::string(40'000, 'u'), "at most 32768"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.line.substr(0, 60));
    const std::string error = ErrorOf(good + "# comment\n" + row.line + "\nz\thttp://h/z\n");
    EXPECT_THAT(error, HasSubstr(row.says));
    EXPECT_THAT(error, HasSubstr("/etc/c.tsv:3: "));
    EXPECT_THAT(error, Not(HasSubstr("secret")));
  }
  EXPECT_THAT(ErrorOf("x/y\thttp://h/1\nx\thttp://h/2\n"), HasSubstr("file in line 2"));
  std::string deep;
  for (size_t i = 0; i <= kMaxCatalogDepth; ++i) deep += "d/";
  EXPECT_THAT(ErrorOf(deep + "f\thttp://h/f"), HasSubstr("components; at most 128"));
}

class CatalogFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = (std::filesystem::temp_directory_path() / "dartfs-catalog-XXXXXX").string();
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(CatalogFileTest, Load) {
  const std::string path = dir_ + "/c.tsv";
  std::ofstream(path) << "a\thttp://h/a\t1\n";
  const auto catalog = Catalog::Load(path);
  ASSERT_TRUE(catalog) << catalog.error().context;
  EXPECT_THAT(NamesIn(**catalog, ""), ElementsAre("a"));
  EXPECT_GT((*catalog)->mtime(), 1'500'000'000);
}

TEST_F(CatalogFileTest, WhatIsNoFileSaysSo) {
  const auto absent = Catalog::Load(dir_ + "/absent.tsv");
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().context, HasSubstr("absent.tsv"));
  EXPECT_THAT(absent.error().context, HasSubstr("No such file"));
  for (const std::string& path : {dir_, std::string("/dev/null")}) {
    const auto wrong = Catalog::Load(path);
    ASSERT_FALSE(wrong) << path;
    EXPECT_THAT(wrong.error().context, HasSubstr("not a regular file"));
  }
}

// The figures are for people; only the bytes are a promise.
TEST(Catalog, ManyEntriesTakeLittle) {
  constexpr size_t kFiles = 200'000;
  std::string text;
  for (size_t i = 0; i < kFiles; ++i) {
    const std::string name = "region-" + std::to_string(i / 1000 * 7919 % 200) + "/image-" +
                             std::to_string(i) + ".qcow2";
    text += name + "\thttps://images.example.org/pool/2024/" + name +
            "?versionId=" + std::to_string(i * 7919) + "\t" + std::to_string(i * 4096) + "\t" +
            kSha256 + "\n";
  }
  const std::clock_t begin = std::clock();
  const auto catalog = Parsed(text);
  const auto took_ms = (std::clock() - begin) * 1000 / CLOCKS_PER_SEC;
  EXPECT_EQ(catalog->files(), kFiles);
  const size_t bytes = catalog->memory_bytes() / kFiles;
  EXPECT_LT(bytes, 300U);
  std::printf("%zu files: %zu bytes each, parsed in %ld ms of CPU\n", kFiles, bytes, took_ms);
}

}  // namespace
}  // namespace dartfs::fs
