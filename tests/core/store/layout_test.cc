// Which directories become a cache, and which are left as they are.
#include "core/store/layout.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace dartfs::core {
namespace {

class LayoutTakeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(root_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string dir() const { return root_ + "/cache"; }
  Status Open() const {
    const auto layout = Layout::Open(dir(), Grid());
    return layout ? Status() : layout.error();
  }
  // As anybody may have made it.
  void Make() const {
    std::filesystem::remove_all(dir());
    std::filesystem::create_directory(dir());
    ASSERT_EQ(::chmod(dir().c_str(), 01777), 0);
  }
  mode_t Mode() const {
    struct stat st = {};
    EXPECT_EQ(::stat(dir().c_str(), &st), 0);
    return st.st_mode & 07777;
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir())) {
      names.insert(entry.path().filename());
    }
    return names;
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir() + "/" + name) << text;
  }
  std::string root_ = "/tmp/dartfs-layout-test.XXXXXX";
};

TEST_F(LayoutTakeTest, AnAbsentOneIsMade) {
  EXPECT_TRUE(Open());
  EXPECT_EQ(Mode(), 0700U);
}

TEST_F(LayoutTakeTest, AnEmptyOneIsTaken) {
  Make();
  EXPECT_TRUE(Open());
  EXPECT_EQ(Mode(), 0700U);
}

TEST_F(LayoutTakeTest, AFreshFileSystemIsEmpty) {
  Make();
  std::filesystem::create_directory(dir() + "/lost+found");
  EXPECT_TRUE(Open());
  EXPECT_EQ(Mode(), 0700U);
}

TEST_F(LayoutTakeTest, ACacheIsMadePrivate) {
  ASSERT_TRUE(Open());
  ASSERT_EQ(::chmod(dir().c_str(), 0755), 0);
  Write("a user's", "note");
  EXPECT_TRUE(Open());
  EXPECT_EQ(Mode(), 0700U);
}

TEST_F(LayoutTakeTest, WhatHoldsOtherThingsIsRefusedUntouched) {
  for (const char* const name : {"file", ".hidden", "objects", "index", "CACHEDIR.TAG"}) {
    SCOPED_TRACE(name);
    Make();
    Write(name, "theirs");
    const Status opened = Open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::kRefused);
    EXPECT_NE(opened.error().context.find(dir() + " is not empty and no cache of dartfs"),
              std::string::npos)
        << opened.error().ToString();
    EXPECT_EQ(Mode(), 01777U);
    EXPECT_EQ(Names(), std::set<std::string>{name});
  }
}

TEST_F(LayoutTakeTest, AVersionOfSomethingElseMakesNoCache) {
  Make();
  Write("version", "1.2.3\n");
  EXPECT_EQ(Open().error().code, Code::kRefused);
  EXPECT_EQ(Mode(), 01777U);
  EXPECT_EQ(Names(), std::set<std::string>{"version"});
}

TEST_F(LayoutTakeTest, AStartThatWasKilledAnywhereIsGoneOnWith) {
  const std::vector<std::vector<std::string>> left = {
      {"lock"}, {"lock", "version.new"}, {"lock", "version.new", "lost+found"}};
  for (const auto& names : left) {
    Make();
    for (const auto& name : names) Write(name, "");
    EXPECT_TRUE(Open());
  }
  // Behind `version` it is a cache, whatever is missing.
  for (const char* const missing : {"CACHEDIR.TAG", "objects", "lock"}) {
    std::filesystem::remove_all(dir() + "/" + missing);
    EXPECT_TRUE(Open());
    EXPECT_TRUE(std::filesystem::exists(dir() + "/" + missing));
  }
}

TEST(LayoutTest, NetworkFileSystemsAreRefused) {
  for (const uint64_t magic : {0x6969U, 0xFF534D42U, 0xFE534D42U, 0x517BU, 0x65735546U}) {
    EXPECT_NE(RefusedFileSystem(magic), nullptr);
  }
  for (const uint64_t magic : {0xEF53U, 0x58465342U, 0x9123683EU, 0x01021994U, 0x794C7630U}) {
    EXPECT_EQ(RefusedFileSystem(magic), nullptr);
  }
}

}  // namespace
}  // namespace dartfs::core
