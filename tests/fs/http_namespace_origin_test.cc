// Names and listings through the real engine, HTTP client and store, against the scripted origin.
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/engine_fixture.h"
#include "core/engine/object.h"
#include "fs/http_namespace.h"
#include "fs/name_mapping.h"

namespace dartfs::fs {
namespace {

using core::Code;
using core::Result;
using origin::Fault;
using origin::IndexFormat;
using std::chrono::seconds;

const std::vector<std::string>& OddNames() {
  static const std::vector<std::string> kNames{
      "a b",         "a+b",        "a%20b",  "100%",
      "%",           "a?b",        "a#b",    "a:b",
      "a;b",         "a&b",        "a=b",    "a@b",
      "a(1).x",      "a'b",        "a\"b",   "a\\b",
      "a<b>",        "a[b]{c}|^`", "~x",     ".hidden",
      "...",         "-rf",        "a\nb",   "\x01",
      "caf\xC3\xA9", "\xFF\xFE",   "%41",    "%2",
      "%%",          " lead",      "trail ", std::string(255, 'x'),
      "a!$*,b",      "sha256:ab",
  };
  return kNames;
}

class HttpNamespaceOriginTest : public core::EngineTest {
 protected:
  void TearDown() override {
    Unmount();
    EngineTest::TearDown();
  }

  void Mount(const std::string& path, core::Duration ttl = seconds(60)) {
    Unmount();
    worker_ = core::MakeThreadScheduler("names", 1, core::RealClock());
    HttpNamespaceOptions options;
    options.root = UrlOf(path);
    options.ttl = ttl;
    auto made = HttpNamespace::Create(std::move(options), *engine_, *worker_, core::RealRandom());
    ASSERT_TRUE(made) << made.error().ToString();
    names_ = std::move(made).value();
  }
  // As the node does: names, then whatever completes for them, then their worker.
  void Unmount() {
    if (names_ == nullptr) return;
    names_->Stop();
    engine_->Stop();
    http_->Stop();
    names_.reset();
    worker_.reset();
  }
  void Remount(const std::string& path) {
    Unmount();
    Restart();
    Mount(path);
  }
  void SetIndex(IndexFormat format) {
    auto behaviour = origin().behaviour();
    behaviour.index = format;
    origin().SetBehaviour(behaviour);
  }

  Result<std::shared_ptr<const Listing>> List(const DirRef& dir = {}, int within = 20) {
    std::promise<Result<std::shared_ptr<const Listing>>> promise;
    names_->List(dir, Deadline(within), [&](Result<std::shared_ptr<const Listing>> r) {
      promise.set_value(std::move(r));
    });
    return promise.get_future().get();
  }
  Result<Found> Lookup(const std::string& name, const DirRef& dir = {}, int within = 20) {
    std::promise<Result<Found>> promise;
    names_->Lookup(dir, name, Deadline(within),
                   [&](Result<Found> r) { promise.set_value(std::move(r)); });
    return promise.get_future().get();
  }
  Result<Found> Open(const std::string& name) {
    std::promise<Result<Found>> promise;
    names_->Open({}, name, Deadline(20), [&](Result<Found> r) { promise.set_value(std::move(r)); });
    return promise.get_future().get();
  }
  std::set<std::string> Names(const DirRef& dir = {}) {
    const auto listing = List(dir);
    std::set<std::string> names;
    if (!listing) {
      ADD_FAILURE() << listing.error().ToString();
      return names;
    }
    for (const ListedEntry& entry : (*listing)->entries) names.insert(entry.name);
    return names;
  }
  static std::string Encoded(const std::string& name) {
    return core::PercentEncode(name, core::UrlSet::kUnreserved);
  }
  std::set<std::string> Targets() {
    std::set<std::string> targets;
    for (const auto& request : origin().Log()) targets.insert(request.target);
    return targets;
  }

  std::unique_ptr<core::Scheduler> worker_;
  std::unique_ptr<HttpNamespace> names_;
};

TEST_F(HttpNamespaceOriginTest, EveryIndexShowsAndFindsOddNames) {
  for (const std::string& name : OddNames()) {
    origin().AddFile("/d/" + Encoded(name), "bytes of " + name);
  }
  origin().AddFile("/d/sub%20dir/x", "x");
  std::set<std::string> want(OddNames().begin(), OddNames().end());
  want.insert("sub dir");
  for (const IndexFormat format : {IndexFormat::kNginx, IndexFormat::kApache, IndexFormat::kPython,
                                   IndexFormat::kJson, IndexFormat::kS3}) {
    SCOPED_TRACE(origin::NameOf(format));
    SetIndex(format);
    Remount("/d/");
    EXPECT_EQ(Names(), want);
    for (const std::string& name : OddNames()) {
      const auto found = Lookup(name);
      ASSERT_TRUE(found) << name << found.error().ToString();
      ASSERT_EQ(found->kind, EntryKind::kFile) << name;
      const auto opened = Open(name);
      ASSERT_TRUE(opened) << name << opened.error().ToString();
      EXPECT_EQ(opened->object->size(), std::string("bytes of " + name).size()) << name;
    }
    const auto sub = Lookup("sub dir");
    ASSERT_TRUE(sub);
    EXPECT_EQ(sub->kind, EntryKind::kDirectory);
    EXPECT_EQ(Names(sub->dir), std::set<std::string>{"x"});
  }
}

TEST_F(HttpNamespaceOriginTest, TheBytesOfTheLinkGoOverTheWire) {
  origin().AddFile("/d/caf%C3%A9%20(1)", "x");
  SetIndex(IndexFormat::kApache);
  Mount("/d/");
  Names();
  ASSERT_TRUE(Lookup("caf\xC3\xA9 (1)"));
  EXPECT_TRUE(Targets().contains("/d/caf%C3%A9%20(1)"));
  origin().ResetStats();
  SetIndex(IndexFormat::kNginx);
  Remount("/d/");
  Names();
  ASSERT_TRUE(Lookup("caf\xC3\xA9 (1)"));
  EXPECT_TRUE(Targets().contains("/d/caf%C3%A9%20%281%29"));
}

TEST_F(HttpNamespaceOriginTest, RequestsAreFew) {
  origin().AddFile("/d/a", "x");
  origin().AddFile("/d/sub/b", "x");
  Mount("/d/");
  EXPECT_EQ(origin().GetStats().total.requests, 0U);
  Names();
  Names();
  const auto sub = Lookup("sub");
  EXPECT_EQ(origin().GetStats().total.requests, 1U);
  EXPECT_EQ(Lookup("nope").error().code, Code::kNotFound);
  EXPECT_EQ(origin().GetStats().total.requests, 2U);
  ASSERT_TRUE(Lookup("a"));
  ASSERT_TRUE(Lookup("a"));
  EXPECT_EQ(origin().GetStats().total.requests, 3U);
}

TEST_F(HttpNamespaceOriginTest, DirectoriesNobodyListed) {
  origin().AddFile("/d/sub/b", "x");
  // With a redirect: one request, and what it was redirected to.
  Mount("/d/");
  const auto by_redirect = Lookup("sub");
  ASSERT_TRUE(by_redirect) << by_redirect.error().ToString();
  EXPECT_EQ(by_redirect->dir.key, "sub/");
  // Without: the name plus slash is tried.
  SetIndex(IndexFormat::kS3);
  Remount("/");
  const auto by_trial = Lookup("d");
  ASSERT_TRUE(by_trial) << by_trial.error().ToString();
  EXPECT_EQ(by_trial->dir.key, "d/");
  EXPECT_EQ(Names({"d/"}), std::set<std::string>{"sub"});
}

TEST_F(HttpNamespaceOriginTest, WithTheOriginGoneAfterARestart) {
  origin().AddFile("/d/a", "bytes");
  origin().AddFile("/d/sub/b", "x");
  Mount("/d/");
  Names();
  Names({"sub/"});
  ASSERT_TRUE(Lookup("a"));
  ASSERT_TRUE(store_->Flush());
  origin().GoAway();
  Remount("/d/");
  EXPECT_EQ(Names(), (std::set<std::string>{"a", "sub"}));
  EXPECT_EQ(Names({"sub/"}), std::set<std::string>{"b"});
  const auto a = Lookup("a");
  ASSERT_TRUE(a) << a.error().ToString();
  EXPECT_EQ(a->object->size(), 5U);
  const auto sub = Lookup("sub");
  ASSERT_TRUE(sub);
  EXPECT_EQ(sub->kind, EntryKind::kDirectory);
  const auto unknown = Lookup("b", {"sub/"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kUnavailable) << unknown.error().ToString();
  EXPECT_FALSE(List({"never/"}));
}

TEST_F(HttpNamespaceOriginTest, OneFailureAtTheFirstLook) {
  origin().AddFile("/d/a", "x");
  origin().AddFault({.fault = Fault::kStatus, .path = "/d/", .times = 1, .status = 500});
  Mount("/d/");
  const auto first = List();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, Code::kUnavailable);
  EXPECT_EQ(Names(), std::set<std::string>{"a"});
}

TEST_F(HttpNamespaceOriginTest, AListingThatStallsEndsByItsDeadlineAndFilesDoNotNotice) {
  origin().AddFile("/d/a", "x");
  origin().AddFault({.fault = Fault::kStallHead, .path = "/d/"});
  Mount("/d/");
  const auto listing = List({}, 1);
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code, Code::kDeadlineExceeded);
  EXPECT_TRUE(Lookup("a"));
}

TEST_F(HttpNamespaceOriginTest, ListingsThatMustNotBeBelieved) {
  origin().AddFile("/d/", "<title>Index of /</title><a href=a>a</a>",
                   {.content_type = "text/html"});
  for (const Fault fault : {Fault::kRedirectLoop, Fault::kShortBody, Fault::kHangUp}) {
    SCOPED_TRACE(origin::NameOf(fault));
    origin().SetFaults({{.fault = fault, .path = "/d/"}});
    Remount("/d/");
    EXPECT_FALSE(List());
  }
  for (const Fault fault : {Fault::kGzipLabel, Fault::kGzip}) {
    SCOPED_TRACE(origin::NameOf(fault));
    origin().SetFaults({{.fault = fault, .path = "/d/"}});
    Remount("/d/");
    const auto listing = List();
    ASSERT_TRUE(listing) << listing.error().ToString();
    EXPECT_TRUE((*listing)->entries.empty());
    EXPECT_FALSE((*listing)->complete);
  }
  origin().ClearFaults();
  Remount("/d/");
  EXPECT_EQ(Names(), std::set<std::string>{"a"});
}

TEST_F(HttpNamespaceOriginTest, AFileInTheDirectorysPlaceIsNotRead) {
  origin().AddGenerated("/d/", 1 << 30, 1);
  Mount("/d/");
  const auto listing = List();
  ASSERT_TRUE(listing) << listing.error().ToString();
  EXPECT_TRUE((*listing)->entries.empty());
  EXPECT_LT(origin().GetStats().total.body_bytes, uint64_t{64} << 20);
}

TEST_F(HttpNamespaceOriginTest, RefusalsAreForbidden) {
  origin().AddFile("/d/a", "x");
  origin().SetFaults({{.fault = Fault::kStatus, .path = "/d/*", .status = 403}});
  Mount("/d/");
  EXPECT_TRUE(Names().empty());
  EXPECT_EQ(Lookup("a").error().code, Code::kForbidden);
}

TEST_F(HttpNamespaceOriginTest, ManyAtOnceShareOneListing) {
  for (int i = 0; i < 200; ++i) origin().AddFile("/d/f" + std::to_string(i), "x");
  Mount("/d/");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      EXPECT_EQ(Names().size(), 200U);
      names_->ProbeAhead({});
      for (int i = t; i < 200; i += 20) {
        EXPECT_TRUE(Lookup("f" + std::to_string(i)));
        EXPECT_EQ(Lookup("n" + std::to_string(i)).error().code, Code::kNotFound);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(origin().StatsOf("/d/").requests, 1U);
  ASSERT_TRUE(origin().WaitForRequests("/d/f*", 200));
  EXPECT_EQ(origin().StatsOf("/d/f*").requests, 200U);
}

TEST_F(HttpNamespaceOriginTest, StoppedInTheMiddle) {
  origin().AddFile("/d/a", "x");
  origin().AddFault({.fault = Fault::kStallHead});
  Mount("/d/");
  auto listed = std::make_shared<std::promise<Code>>();
  auto found = std::make_shared<std::promise<Code>>();
  names_->List({}, Deadline(60),
               [listed](auto r) { listed->set_value(r ? Code::kInternal : r.error().code); });
  names_->Lookup({}, "a", Deadline(60),
                 [found](auto r) { found->set_value(r ? Code::kInternal : r.error().code); });
  ASSERT_TRUE(origin().WaitForRequests("*", 2));
  Unmount();
  EXPECT_EQ(listed->get_future().get(), Code::kCancelled);
  EXPECT_EQ(found->get_future().get(), Code::kCancelled);
}

}  // namespace
}  // namespace dartfs::fs
