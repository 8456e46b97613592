#include "app/mount_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/reports.h"

namespace dartfs::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Optional;

TEST(PathBelow, Components) {
  EXPECT_THAT(PathBelow("/mnt", "/mnt/a/b.img"), Optional(ElementsAre("a", "b.img")));
  EXPECT_THAT(PathBelow("/mnt", "/mnt"), Optional(IsEmpty()));
  EXPECT_THAT(PathBelow("/mnt", "/mnt/"), Optional(IsEmpty()));
  EXPECT_THAT(PathBelow("/", "/a"), Optional(ElementsAre("a")));
  EXPECT_THAT(PathBelow("/a/b", "//a/./b//c/"), Optional(ElementsAre("c")));
  EXPECT_THAT(PathBelow("/mnt", "/mnt/a/../b"), Optional(ElementsAre("b")));
  EXPECT_THAT(PathBelow("/mnt", "/x/../mnt/b"), Optional(ElementsAre("b")));
  EXPECT_THAT(PathBelow("/mnt", "/mnt/\xff\x01"), Optional(ElementsAre("\xff\x01")));
}

TEST(PathBelow, Elsewhere) {
  for (const char* path : {"/mnt2/a", "/mn", "/", "mnt/a", "", "/mnt/..", "/mnt/../etc"}) {
    EXPECT_FALSE(PathBelow("/mnt", path)) << path;
  }
}

// Names as path segments; a name that ends in ".file" is no directory.
class SegmentNames final : public fs::Namespace {
 public:
  fs::DirRef Root() const override { return {"/root/"}; }
  void Lookup(const fs::DirRef&, std::string_view, core::TimePoint, fs::LookupDone) override {
    ADD_FAILURE() << "asks";
  }
  void List(const fs::DirRef&, core::TimePoint, fs::ListDone) override { ADD_FAILURE() << "asks"; }
  void ProbeAhead(const fs::DirRef&) override { ADD_FAILURE() << "asks"; }
  core::Result<core::Url> UrlOf(const fs::DirRef& dir, std::string_view name) const override {
    return core::ParseUrl("http://h" + dir.key + std::string(name));
  }
  core::Result<fs::DirRef> DirOf(const fs::DirRef& dir, std::string_view name) const override {
    if (name.ends_with(".file")) return core::MakeError(core::Code::kNotFound, "a file");
    return fs::DirRef{dir.key + std::string(name) + "/"};
  }
};

TEST(UrlOfPath, WalksNamesWithoutAsking) {
  const SegmentNames names;
  EXPECT_EQ(UrlOfPath(names, {"x"})->ToString(), "http://h/root/x");
  EXPECT_EQ(UrlOfPath(names, {"a", "b", "x"})->ToString(), "http://h/root/a/b/x");
  const auto below_file = UrlOfPath(names, {"a.file", "x"});
  ASSERT_FALSE(below_file);
  EXPECT_EQ(below_file.error().code, core::Code::kNotFound);
}

TEST(ShowWithoutQuery, QueriesAreHashed) {
  EXPECT_EQ(ShowWithoutQuery("http://h/a"), "http://h/a");
  const std::string shown = ShowWithoutQuery("http://h/a?token=secret");
  EXPECT_THAT(shown, HasSubstr("http://h/a?sha256:"));
  EXPECT_THAT(shown, Not(HasSubstr("secret")));
  EXPECT_NE(shown, ShowWithoutQuery("http://h/a?token=other"));
}

}  // namespace
}  // namespace dartfs::app
