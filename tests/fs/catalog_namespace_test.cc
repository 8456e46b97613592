#include "fs/catalog_namespace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "core/engine/object.h"
#include "fake/fake_engine.h"
#include "fake/fake_http_client.h"
#include "fake/manual_scheduler.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::Result;
using ::testing::HasSubstr;

const std::string kDigest = "sha256:" + std::string(64, 'c');

class CatalogNamespaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = (std::filesystem::temp_directory_path() / "dartfs-catalog-XXXXXX").string();
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
    Write(
        "vm/sized.img\thttp://h/sized?t=secret\t10\n"
        "vm/plain.img\thttp://h/plain\n"
        "vm/digest.img\thttp://h/digest\t30\t" +
        kDigest + "\n");
    CatalogNamespaceOptions options;
    options.path = dir_ + "/c.tsv";
    auto made = CatalogNamespace::Create(options, engine_);
    ASSERT_TRUE(made) << made.error().context;
    names_ = std::move(*made);
    engine_.AddFile("http://h/sized?t=secret", {.size = 10});
    engine_.AddFile("http://h/plain", {.size = 20, .last_modified = 1234});
    engine_.AddFile("http://h/digest", {.size = 30});
  }
  void TearDown() override {
    names_.reset();
    std::filesystem::remove_all(dir_);
  }
  void Write(const std::string& text) { std::ofstream(dir_ + "/c.tsv") << text; }

  Result<Found> Lookup(const std::string& name, const DirRef& dir = {"vm/"}) {
    std::optional<Result<Found>> result;
    names_->Lookup(dir, name, core::kNoDeadline, [&](Result<Found> found) { result = found; });
    return *result;
  }
  Result<Found> Open(const std::string& name, const DirRef& dir = {"vm/"}) {
    std::optional<Result<Found>> result;
    names_->Open(dir, name, core::kNoDeadline, [&](Result<Found> found) { result = found; });
    return *result;
  }
  std::string List(const DirRef& dir) {
    std::string names;
    names_->List(dir, core::kNoDeadline, [&](Result<std::shared_ptr<const Listing>> listing) {
      if (!listing) {
        names = core::CodeName(listing.error().code);
        return;
      }
      for (const ListedEntry& entry : (*listing)->entries) {
        names += entry.name + (entry.size ? "=" + std::to_string(*entry.size) : "") +
                 (entry.kind == EntryKind::kDirectory ? "/ " : " ");
      }
    });
    return names;
  }

  std::string dir_;
  core::ManualScheduler scheduler_;
  core::FakeHttpClient http_{&scheduler_};
  core::FakeEngine engine_{http_, scheduler_};
  std::unique_ptr<CatalogNamespace> names_;
};

TEST_F(CatalogNamespaceTest, NamesAndStatedSizesCostNoRequest) {
  EXPECT_EQ(List({""}), "vm/ ");
  EXPECT_EQ(List({"vm/"}), "digest.img=30 plain.img sized.img=10 ");
  EXPECT_EQ(List({"no/"}), "not_found");
  const auto vm = Lookup("vm", {""});
  EXPECT_EQ(vm->kind, EntryKind::kDirectory);
  EXPECT_EQ(vm->dir.key, "vm/");
  const auto sized = Lookup("sized.img");
  ASSERT_TRUE(sized);
  EXPECT_EQ(sized->object, nullptr);
  EXPECT_EQ(sized->promise->size, 10U);
  EXPECT_GT(*sized->mtime, 1'500'000'000);
  EXPECT_EQ(Lookup("absent").error().code, Code::kNotFound);
  EXPECT_EQ(Lookup("x", {"no/"}).error().code, Code::kNotFound);
  EXPECT_EQ(engine_.opens(), 0U);
}

TEST_F(CatalogNamespaceTest, WithoutASizeTheProbeDecides) {
  const auto plain = Lookup("plain.img");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->object->size(), 20U);
  EXPECT_FALSE(plain->promise);
  EXPECT_EQ(plain->mtime, 1234);
  EXPECT_EQ(engine_.Opens("http://h/plain"), 1U);
}

TEST_F(CatalogNamespaceTest, OpeningAsksAndStatesTheDigest) {
  const auto opened = Open("digest.img");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->object->size(), 30U);
  EXPECT_EQ(opened->promise->size, 30U);
  EXPECT_EQ(engine_.last_options().digest, kDigest);
  EXPECT_EQ(names_->DigestOf({"vm/"}, "digest.img"), kDigest);
  EXPECT_EQ(names_->DigestOf({"vm/"}, "sized.img"), "");
  ASSERT_TRUE(Open("sized.img"));
  EXPECT_EQ(engine_.last_options().digest, "");
  EXPECT_EQ(Open("vm", {""}).error().code, Code::kNotFound);
}

TEST_F(CatalogNamespaceTest, TheOriginsSizeWins) {
  engine_.AddFile("http://h/sized?t=secret", {.size = 11});
  EXPECT_EQ(Lookup("sized.img")->promise->size, 10U);  // nobody knows yet
  const auto opened = Open("sized.img");
  EXPECT_EQ(opened->object->size(), 11U);
  EXPECT_FALSE(opened->promise);
  const auto again = Lookup("sized.img");
  EXPECT_EQ(again->object->size(), 11U);
  EXPECT_FALSE(again->promise);
  EXPECT_EQ(engine_.Opens("http://h/sized?t=secret"), 2U);
}

TEST_F(CatalogNamespaceTest, WhatTheEngineKnowsIsShownWithItsVersion) {
  engine_.AddFile("http://h/sized?t=secret", {.size = 10, .last_modified = 99, .cached = true});
  const auto sized = Lookup("sized.img");
  EXPECT_NE(sized->object, nullptr);
  EXPECT_EQ(sized->promise->size, 10U);
  EXPECT_EQ(sized->mtime, 99);
  EXPECT_EQ(engine_.opens(), 0U);
}

// The engine may know an older one, the file may have changed before the line: the origin decides.
TEST_F(CatalogNamespaceTest, WhatTheEngineKnowsAndTheCatalogueStatesMayDiffer) {
  engine_.AddFile("http://h/sized?t=secret", {.size = 10, .cached = true});
  Write("vm/sized.img\thttp://h/sized?t=secret\t11\n");
  ASSERT_TRUE(names_->Reload());
  ListedEntry entry;
  entry.name = "sized.img";
  EXPECT_FALSE(names_->Known({"vm/"}, entry));
  engine_.OnRevalidate("http://h/sized?t=secret", {.size = 11, .cached = true});
  for (const auto& found : {Lookup("sized.img"), Open("sized.img"), Lookup("sized.img")}) {
    EXPECT_EQ(found->object->size(), 11U);
    EXPECT_EQ(found->promise->size, 11U) << "the line was right";
  }
  // And here the engine was right.
  Write("vm/sized.img\thttp://h/sized?t=secret\t12\n");
  ASSERT_TRUE(names_->Reload());
  const auto opened = Open("sized.img");
  EXPECT_EQ(opened->object->size(), 11U);
  EXPECT_FALSE(opened->promise);
  const size_t opens = engine_.opens();
  EXPECT_EQ(Lookup("sized.img")->object->size(), 11U);
  EXPECT_EQ(engine_.opens(), opens) << "asked once";
}

TEST_F(CatalogNamespaceTest, OnlySizesThatAreMissingAreProbedAhead) {
  names_->ProbeAhead({"vm/"});
  EXPECT_EQ(engine_.opens(), 1U);
  EXPECT_EQ(engine_.Opens("http://h/plain"), 1U);
}

TEST_F(CatalogNamespaceTest, UrlsAndDirectoriesOfNames) {
  EXPECT_EQ(names_->UrlOf({"vm/"}, "sized.img")->ToString(), "http://h/sized?t=secret");
  EXPECT_EQ(names_->UrlOf({""}, "vm").error().code, Code::kNotFound);
  EXPECT_EQ(names_->UrlOf({""}, "no").error().code, Code::kNotFound);
  EXPECT_EQ(names_->DirOf({""}, "vm")->key, "vm/");
  EXPECT_FALSE(names_->DirOf({"vm/"}, "sized.img"));
  EXPECT_EQ(names_->ExplainListing({"vm/"}).listing->entries.size(), 3U);
  EXPECT_EQ(names_->ExplainListing({"no/"}).listing, nullptr);
}

TEST_F(CatalogNamespaceTest, ReloadSwapsAllOrNothing) {
  const auto before = Lookup("sized.img")->promise;
  Write("vm/sized.img\thttp://h/elsewhere\t10\nnew\thttp://h/new\t1\n");
  ASSERT_TRUE(names_->Reload());
  EXPECT_EQ(List({""}), "new=1 vm/ ");
  EXPECT_EQ(Lookup("plain.img").error().code, Code::kNotFound);
  EXPECT_NE(Lookup("sized.img")->promise, before);  // another URL is another file

  Write("vm/sized.img\thttp://h/elsewhere\t10\n../x\thttp://h/x\n");
  const auto bad = names_->Reload();
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().context, HasSubstr("c.tsv:2: "));
  EXPECT_EQ(List({""}), "new=1 vm/ ");
  std::filesystem::remove(dir_ + "/c.tsv");
  EXPECT_FALSE(names_->Reload());
  EXPECT_EQ(List({""}), "new=1 vm/ ");
}

TEST_F(CatalogNamespaceTest, AReloadTrustsACorrectedSize) {
  engine_.AddFile("http://h/sized?t=secret", {.size = 11});
  ASSERT_TRUE(Open("sized.img"));
  Write("vm/sized.img\thttp://h/sized?t=secret\t11\n");
  ASSERT_TRUE(names_->Reload());
  EXPECT_EQ(Lookup("sized.img")->promise->size, 11U);
}

}  // namespace
}  // namespace dartfs::fs
