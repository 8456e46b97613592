#include "fs/any_namespace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "core/engine/object.h"
#include "fake/fake_engine.h"
#include "fake/fake_http_client.h"
#include "fake/manual_scheduler.h"
#include "fake/seeded_random.h"
#include "fs/url_space.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::Result;

class AnyNamespaceTest : public ::testing::Test {
 protected:
  AnyNamespaceTest() { Mount(); }
  ~AnyNamespaceTest() override {
    names_.reset();
    http_.Stop();
    scheduler_.RunReady();
  }
  void Mount() {
    names_.reset();
    names_ = std::move(AnyNamespace::Create({}, engine_, scheduler_, random_)).value();
  }

  using FoundPtr = std::shared_ptr<std::optional<Result<Found>>>;
  FoundPtr Begin(const DirRef& dir, const std::string& name) {
    auto result = std::make_shared<std::optional<Result<Found>>>();
    names_->Lookup(dir, name, core::kNoDeadline,
                   [result](Result<Found> found) { *result = std::move(found); });
    scheduler_.RunReady();
    return result;
  }
  Result<Found> Lookup(const DirRef& dir, const std::string& name) {
    const auto found = Begin(dir, name);
    return found->has_value() ? **found : core::MakeError(Code::kInternal, "waits");
  }
  std::string KeyOf(const DirRef& dir, const std::string& name) {
    const auto found = Lookup(dir, name);
    return found ? found->dir.key : core::CodeName(found.error().code);
  }
  std::string List(const DirRef& dir) {
    std::string names;
    names_->List(dir, core::kNoDeadline, [&](Result<std::shared_ptr<const Listing>> listing) {
      for (const ListedEntry& entry : (*listing)->entries) names += entry.name + " ";
    });
    return names;
  }
  void Answer(const std::string& url, int status, const std::string& body,
              const std::string& type = "text/html") {
    auto call = http_.TryTake();
    ASSERT_NE(call, nullptr) << "no request; wanted " << url;
    EXPECT_EQ(call->request().url, url);
    EXPECT_EQ(call->request().authorization, "");
    if (call->Head(status, {{"Content-Type", type}}, "") && call->Body(body)) call->Done();
    scheduler_.RunReady();
  }
  void Fail(const std::string& url) {
    auto call = http_.TryTake();
    ASSERT_NE(call, nullptr) << "no request; wanted " << url;
    EXPECT_EQ(call->request().url, url);
    call->Done(core::MakeError(Code::kUnavailable, "scripted"));
    scheduler_.RunReady();
  }

  core::ManualScheduler scheduler_;
  core::SeededRandom random_{7};
  core::FakeHttpClient http_{&scheduler_};
  core::FakeEngine engine_{http_, scheduler_};
  std::unique_ptr<AnyNamespace> names_;
};

TEST_F(AnyNamespaceTest, SchemesAndHostsAreDirectoriesWithoutARequest) {
  EXPECT_EQ(List({""}), "http https ");
  EXPECT_EQ(KeyOf({""}, "http"), "http/");
  EXPECT_EQ(KeyOf({"https/"}, "images.example.org"), "https/images.example.org/");
  EXPECT_EQ(KeyOf({"http/"}, "10.0.0.1:8080"), "http/10.0.0.1:8080/");
  EXPECT_EQ(KeyOf({"http/"}, "[::1]:8080"), "http/[::1]:8080/");
  EXPECT_EQ(KeyOf({"http/"}, "under_score"), "http/under_score/");
  EXPECT_EQ(KeyOf({"http/"}, "Example.ORG"), "http/example.org/");
  EXPECT_EQ(KeyOf({"http/"}, "h:80"), "http/h/");
  EXPECT_EQ(KeyOf({"https/"}, "h:80"), "https/h:80/");
  EXPECT_EQ(engine_.opens(), 0U);
  EXPECT_EQ(http_.TryTake(), nullptr);
}

TEST_F(AnyNamespaceTest, WhatIsNoHostIsNotThere) {
  for (const char* name : {"ftp", "HTTP", ".Trash", "http:", "h"}) {
    EXPECT_EQ(KeyOf({""}, name), "not_found") << name;
  }
  for (const char* name :
       {".Trash", ".Trash-1000", ".hidden", "autorun.inf", "user@h",          "user:pw@h",
        "h:0",    "h:65536",     "h:x",     "h:",          "h:080",           ":80",
        "-h",     "h-",          "a..b",    "a b",         "h%2Fx",           "h?x",
        "h#x",    "[::1",        "[zz]",    "h:80:80",     "\xc3\xbc.example"}) {
    EXPECT_EQ(KeyOf({"http/"}, name), "not_found") << name;
  }
  EXPECT_EQ(KeyOf({"http/"}, std::string(64, 'h')), "not_found");
  EXPECT_EQ(KeyOf({"http/"}, std::string(63, 'h')), "http/" + std::string(63, 'h') + "/");
  EXPECT_EQ(engine_.opens(), 0U);
  EXPECT_EQ(http_.TryTake(), nullptr);
}

TEST_F(AnyNamespaceTest, FilesBelowAHost) {
  engine_.AddFile("http://h:8080/a.img", {.size = 7});
  engine_.AddFile("http://h:8080/d/b.img?v=1", {.size = 8});
  EXPECT_EQ(Lookup({"http/h:8080/"}, "a.img")->object->size(), 7U);
  EXPECT_EQ(Lookup({"http/h:8080/"}, "d%2Fb.img%3Fv=1")->object->size(), 8U);
  EXPECT_EQ(Lookup({"http/h:8080/d/"}, "b.img%3Fv=1")->url->ToString(),
            "http://h:8080/d/b.img?v=1");
  EXPECT_EQ(Lookup({"http/h:8080/"}, ".Trash").error().code, Code::kNotFound);
  EXPECT_EQ(engine_.Opens("http://h:8080/.Trash"), 0U);
}

TEST_F(AnyNamespaceTest, ListingsBelowAHost) {
  std::optional<Result<std::shared_ptr<const Listing>>> listing;
  names_->List({"https/h/pool/"}, core::kNoDeadline, [&](auto got) { listing = std::move(got); });
  scheduler_.RunReady();
  Answer("https://h/pool/", 200,
         R"([{"name":"a","type":"file","size":5},)"
         R"({"name":"sub","type":"directory"}])",
         "application/json");
  ASSERT_TRUE(listing && *listing);
  EXPECT_EQ((**listing)->entries.size(), 2U);
  EXPECT_EQ(KeyOf({"https/h/pool/"}, "sub"), "https/h/pool/sub/");
  EXPECT_EQ(Lookup({"https/h/pool/"}, "a")->promise->size, 5U);
  EXPECT_EQ(engine_.opens(), 0U);
}

TEST_F(AnyNamespaceTest, AnOriginOutOfReachSaysNothingOfAnother) {
  const auto list = [&](const std::string& key) {
    auto result = std::make_shared<std::optional<Result<std::shared_ptr<const Listing>>>>();
    names_->List({key}, core::kNoDeadline, [result](auto got) { *result = std::move(got); });
    scheduler_.RunReady();
    return result;
  };
  const std::string page = "<title>Index of /</title><a href=\"x\">x</a>";
  for (const char* host : {"one", "two"}) {
    const auto listing = list(std::string("http/") + host + "/");
    Answer(std::string("http://") + host + "/", 200, page);
    ASSERT_TRUE(listing->has_value());
  }
  scheduler_.Advance(std::chrono::seconds(120));
  const auto gone = list("http/one/");
  Fail("http://one/");
  ASSERT_TRUE(gone->has_value() && **gone);  // stale
  list("http/two/");
  Answer("http://two/", 200, page);  // asked all the same
  list("http/one/");
  EXPECT_EQ(http_.TryTake(), nullptr);  // left alone
}

TEST_F(AnyNamespaceTest, AHostIsListedOnceSomethingWasFoundOnIt) {
  engine_.AddFile("http://h/a", {.size = 7});
  engine_.AddFile("http://h:81/a", {.size = 7});
  engine_.AddFile("https://s/a", {.size = 7});
  EXPECT_EQ(KeyOf({"http/"}, "typo"), "http/typo/");
  EXPECT_FALSE(*Begin({"http/typo/"}, "a"));
  EXPECT_EQ(List({"http/"}), "");
  for (const char* key : {"http/h:81/", "http/h/", "https/s/"}) {
    ASSERT_TRUE(Lookup({key}, "a")) << key;
  }
  EXPECT_EQ(List({"http/"}), "h h:81 ");
  EXPECT_EQ(List({"https/"}), "s ");
}

TEST_F(AnyNamespaceTest, Urls) {
  EXPECT_EQ(names_->UrlOf({"http/"}, "h:81")->ToString(), "http://h:81/");
  EXPECT_FALSE(names_->UrlOf({""}, "http"));
  EXPECT_EQ(names_->UrlOf({"http/h/d/"}, "a b")->ToString(), "http://h/d/a%20b");
  EXPECT_EQ(names_->DirOf({"http/"}, "h:81")->key, "http/h:81/");
  EXPECT_FALSE(names_->RootUrl());
  const std::pair<const char*, std::optional<std::string>> rows[] = {
      {"http://h/", "http/h/"},
      {"HTTPS://H:443/d/", "https/h/d/"},
      {"http://h:8080/d/", "http/h:8080/d/"},
      {"http://h/d", std::nullopt},
      {"http://h/d/?q", std::nullopt},
      {"http://u:p@h/d/", "http/h/d/"},
  };
  for (const auto& [url, key] : rows) {
    const auto dir = names_->DirOfUrl(core::ParseUrl(url).value());
    EXPECT_EQ(dir ? std::optional(dir->key) : std::nullopt, key) << url;
  }
}

TEST(UrlSpace, KeysOfAny) {
  const UrlSpace any = UrlSpace::Any();
  for (const char* key : {"http/h/", "https/h:81/a/b/", "http/[::1]/"}) {
    ASSERT_TRUE(any.IsKey(key)) << key;
    EXPECT_EQ(any.KeyOf(any.UrlOf(key)), key);
  }
  for (const char* key :
       {"", "http/", "http/h", "ftp/h/", "http/H/", "http/h:80/", "http/u@h/", "http/h/../",
        "http/h/a/../../x/", "http/h/a", "http//", "http/h/%2e%2e/"}) {
    EXPECT_FALSE(any.IsKey(key)) << key;
  }
  EXPECT_EQ(any.SiteOf("http/h:81/a/b/"), "http/h:81/");
  EXPECT_EQ(UrlSpace::Below(core::ParseUrl("http://h/d/").value()).SiteOf("a/"), "");
}

}  // namespace
}  // namespace dartfs::fs
