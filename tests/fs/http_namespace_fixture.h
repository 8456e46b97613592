// Names and listings against a scripted HTTP client and engine; time by hand.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/object.h"
#include "fake/fake_engine.h"
#include "fake/fake_http_client.h"
#include "fake/manual_scheduler.h"
#include "fake/seeded_random.h"
#include "fs/http_namespace.h"

namespace dartfs::fs {

using core::Code;
using core::FakeHttpClient;
using core::Result;
using std::chrono::seconds;

inline std::string Index(const std::vector<std::string>& hrefs) {
  std::string page = "<html><head><title>Index of /</title></head><body><a href=\"../\">../</a>";
  for (const std::string& href : hrefs) page += "<a href=\"" + href + "\">x</a>\n";
  return page + "</body></html>";
}

class HttpNamespaceTest : public ::testing::Test {
 protected:
  HttpNamespaceTest() { Mount("http://h/d/"); }
  ~HttpNamespaceTest() override {
    names_.reset();
    http_.Stop();
    scheduler_.RunReady();
  }

  void Mount(const std::string& root) {
    names_.reset();
    HttpNamespaceOptions options;
    options.root = core::ParseUrl(root).value();
    options.authorization = "Basic abc";
    auto made = HttpNamespace::Create(std::move(options), engine_, scheduler_, random_);
    ASSERT_TRUE(made) << made.error().ToString();
    names_ = std::move(made).value();
  }

  core::TimePoint In(core::Duration d) { return scheduler_.clock().Now() + d; }

  // What a call has come to; the call under test may complete at any time.
  template <typename T>
  struct Pending {
    std::shared_ptr<std::optional<Result<T>>> result = std::make_shared<std::optional<Result<T>>>();
    bool done() const { return result->has_value(); }
    Result<T>& operator*() { return **result; }
    Result<T>* operator->() { return &**result; }
  };
  Pending<Found> Lookup(const std::string& name, const DirRef& dir = {},
                        core::Duration within = seconds(30)) {
    Pending<Found> pending;
    names_->Lookup(dir, name, In(within), [result = pending.result](Result<Found> found) {
      ASSERT_FALSE(result->has_value());
      *result = std::move(found);
    });
    scheduler_.RunReady();
    return pending;
  }
  using ListingPtr = std::shared_ptr<const Listing>;
  Pending<ListingPtr> List(const DirRef& dir = {}, core::Duration within = seconds(30)) {
    Pending<ListingPtr> pending;
    names_->List(dir, In(within), [result = pending.result](Result<ListingPtr> listing) {
      ASSERT_FALSE(result->has_value());
      *result = std::move(listing);
    });
    scheduler_.RunReady();
    return pending;
  }

  void Answer(const std::string& url, int status, std::vector<core::HttpHeader> headers,
              const std::string& body, const std::string& effective = "") {
    auto call = http_.TryTake();
    ASSERT_NE(call, nullptr) << "no request; wanted " << url;
    EXPECT_EQ(call->request().url, url);
    EXPECT_EQ(call->request().authorization, "Basic abc");
    if (call->Head(status, std::move(headers), effective) && call->Body(body)) call->Done();
    scheduler_.RunReady();
  }
  void AnswerIndex(const std::string& url, const std::vector<std::string>& hrefs) {
    Answer(url, 200, {{"Content-Type", "text/html"}}, Index(hrefs));
  }
  void AnswerStatus(const std::string& url, int status) {
    Answer(url, status, {{"Content-Type", "text/html"}}, "<html>no</html>");
  }
  void AnswerFailure(Code code = Code::kUnavailable) {
    auto call = http_.TryTake();
    ASSERT_NE(call, nullptr);
    call->Done(core::MakeError(code, "scripted"));
    scheduler_.RunReady();
  }
  // Makes the root's listing known.
  void ListRoot(const std::vector<std::string>& hrefs) {
    auto listing = List();
    AnswerIndex("http://h/d/", hrefs);
    ASSERT_TRUE(listing.done() && *listing);
  }
  static std::string NamesOf(const ListingPtr& listing) {
    std::string names;
    for (const ListedEntry& entry : listing->entries) {
      names += entry.name + (entry.kind == EntryKind::kDirectory ? "/ " : " ");
    }
    return names;
  }
  void ExpectError(Pending<Found>& found, Code code) {
    ASSERT_TRUE(found.done());
    ASSERT_FALSE(*found);
    EXPECT_EQ(found->error().code, code) << found->error().ToString();
  }
  void ExpectFile(Pending<Found>& found, const std::string& url) {
    ASSERT_TRUE(found.done());
    ASSERT_TRUE(*found) << found->error().ToString();
    EXPECT_EQ((*found)->kind, EntryKind::kFile);
    EXPECT_EQ((*found)->url->ToString(), url);
    EXPECT_NE((*found)->object, nullptr);
  }
  void ExpectDir(Pending<Found>& found, const std::string& key) {
    ASSERT_TRUE(found.done());
    ASSERT_TRUE(*found) << found->error().ToString();
    EXPECT_EQ((*found)->kind, EntryKind::kDirectory);
    EXPECT_EQ((*found)->dir.key, key);
  }

  core::ManualScheduler scheduler_;
  core::SeededRandom random_{7};
  FakeHttpClient http_{&scheduler_};
  core::FakeEngine engine_{http_, scheduler_};
  std::unique_ptr<HttpNamespace> names_;
};

}  // namespace dartfs::fs
