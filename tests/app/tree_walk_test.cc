#include "app/tree_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/object.h"

namespace dartfs::app {
namespace {

using core::Code;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Directories and files by name. A file is found as an object, as a promise alone, or not at all.
class ScriptedNames final : public fs::Namespace {
 public:
  enum class Kind { kObject, kPromise, kGoneWhenOpened, kDirectoryWhenOpened, kDirectory };

  // Of every directory.
  std::map<std::string, Kind> entries;
  size_t deepest = 1;  // directories below this one are empty
  uint64_t lists = 0, opens = 0;

  fs::DirRef Root() const override { return {"/"}; }
  void Lookup(const fs::DirRef& dir, std::string_view name, core::TimePoint,
              fs::LookupDone done) override {
    done(Find(dir, name, false));
  }
  void Open(const fs::DirRef& dir, std::string_view name, core::TimePoint,
            fs::LookupDone done) override {
    ++opens;
    done(Find(dir, name, true));
  }
  void List(const fs::DirRef& dir, core::TimePoint, fs::ListDone done) override {
    ++lists;
    auto listing = std::make_shared<fs::Listing>();
    const auto depth = static_cast<size_t>(std::count(dir.key.begin(), dir.key.end(), '/'));
    for (const auto& [name, kind] : entries) {
      if (depth > deepest) break;
      fs::ListedEntry entry;
      entry.name = name;
      listing->entries.push_back(entry);
    }
    done(std::shared_ptr<const fs::Listing>(std::move(listing)));
  }
  void ProbeAhead(const fs::DirRef&) override {}
  core::Result<core::Url> UrlOf(const fs::DirRef& dir, std::string_view name) const override {
    return core::ParseUrl("http://h" + dir.key + std::string(name));
  }
  core::Result<fs::DirRef> DirOf(const fs::DirRef& dir, std::string_view name) const override {
    return fs::DirRef{dir.key + std::string(name) + "/"};
  }

 private:
  core::Result<fs::Found> Find(const fs::DirRef& dir, std::string_view name, bool open) const {
    const Kind kind = entries.at(std::string(name));
    fs::Found found;
    if (kind == Kind::kDirectory || (open && kind == Kind::kDirectoryWhenOpened)) {
      found.kind = fs::EntryKind::kDirectory;
      found.dir = {dir.key + std::string(name) + "/"};
      return found;
    }
    if (open && kind == Kind::kGoneWhenOpened) return core::MakeError(Code::kGone, "gone");
    if (open || kind == Kind::kObject) {
      core::Object::Facts facts;
      facts.url = core::ParseUrl("http://h/object").value();
      facts.meta.id = std::string(name);
      facts.meta.size = 7;
      found.object = std::make_shared<core::Object>(std::move(facts), nullptr, nullptr);
    } else {
      found.promise = fs::Promise{.size = 7, .tag = {}};
    }
    return found;
  }
};

class TreeWalkTest : public ::testing::Test {
 protected:
  using Kind = ScriptedNames::Kind;

  // The names of the objects that were visited, in order.
  std::vector<std::string> Walk(TreeWalk::Limits limits = {}) {
    std::vector<std::string> visited;
    TreeWalk walk(job_, limits);
    walk.WalkDirectory({names_, login_}, names_.Root(), "/mnt", Visits(visited));
    return visited;
  }
  TreeWalk::Visit Visits(std::vector<std::string>& visited) {
    return [&](const std::shared_ptr<core::Object>& object, const core::Requester& requester) {
      ASSERT_NE(object, nullptr);
      EXPECT_EQ(object->size(), 7U);
      EXPECT_EQ(requester.authorization, login_);
      visited.push_back(object->facts().meta.id);
    };
  }
  std::vector<std::string> Errors() { return job_.Progress().errors; }

  const std::string login_ = "Basic abc";
  ScriptedNames names_;
  Job job_;
};

TEST_F(TreeWalkTest, WhatIsOnlyPromisedIsOpened) {
  names_.entries = {{"a", Kind::kObject}, {"b", Kind::kPromise}, {"c", Kind::kPromise}};
  EXPECT_THAT(Walk(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(names_.opens, 2U);
  EXPECT_THAT(Errors(), IsEmpty());
}

TEST_F(TreeWalkTest, OneNameThatIsOnlyPromised) {
  names_.entries = {{"b", Kind::kPromise}};
  std::vector<std::string> visited;
  TreeWalk walk(job_);
  walk.WalkName({names_, login_}, names_.Root(), "b", "/mnt/b", Visits(visited));
  EXPECT_THAT(visited, ElementsAre("b"));
}

TEST_F(TreeWalkTest, AnOpenThatFindsSomethingElse) {
  names_.entries = {
      {"gone", Kind::kGoneWhenOpened}, {"dir", Kind::kDirectoryWhenOpened}, {"z", Kind::kPromise}};
  EXPECT_THAT(Walk(), ElementsAre("z"));
  EXPECT_EQ(names_.lists, 2U) << "the directory is walked";
  EXPECT_THAT(Errors(), ElementsAre(HasSubstr("/mnt/gone: gone")));
}

TEST_F(TreeWalkTest, DirectoriesWithoutFilesEndToo) {
  names_.entries = {{"a", Kind::kDirectory}, {"b", Kind::kDirectory}};
  names_.deepest = SIZE_MAX;
  EXPECT_THAT(Walk({.names = 1000, .depth = SIZE_MAX}), IsEmpty());
  EXPECT_LE(names_.lists, 1000U);
  EXPECT_THAT(Errors(), Contains(HasSubstr("too many names")));
}

TEST_F(TreeWalkTest, ErrorsHoldNoQuery) {
  names_.entries = {{"a%3Ftoken=secret", Kind::kGoneWhenOpened},
                    {"b%3ftoken=secret", Kind::kGoneWhenOpened},
                    {"c?token=secret", Kind::kGoneWhenOpened}};
  Walk();
  EXPECT_EQ(Errors().size(), 3U);
  EXPECT_THAT(Errors(), Each(Not(HasSubstr("secret"))));
}

}  // namespace
}  // namespace dartfs::app
