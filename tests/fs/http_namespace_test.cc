#include "fs/http_namespace.h"

#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "core/base/log.h"
#include "fs/http_namespace_fixture.h"

namespace dartfs::fs {
namespace {

TEST_F(HttpNamespaceTest, MountingAsksNobodyAndRefusesAQuery) {
  EXPECT_EQ(http_.started(), 0U);
  HttpNamespaceOptions options;
  options.root = core::ParseUrl("http://h/d/?token=secret").value();
  const auto refused = HttpNamespace::Create(std::move(options), engine_, scheduler_, random_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_EQ(refused.error().context.find("secret"), std::string::npos);
  Mount("http://user:pw@h/d");
  auto listing = List();
  AnswerIndex("http://h/d/", {});
  EXPECT_TRUE(*listing);
}

TEST_F(HttpNamespaceTest, ListsOnceForAllWhoAskAndWithinTheTtl) {
  auto first = List();
  auto second = List();
  EXPECT_EQ(http_.started(), 1U);
  AnswerIndex("http://h/d/", {"b", "a%281%29", "sub/"});
  ASSERT_TRUE(first.done() && second.done());
  EXPECT_EQ(NamesOf(**first), "a(1) b sub/ ");
  EXPECT_TRUE((**first)->complete);
  EXPECT_EQ(**first, **second);
  scheduler_.Advance(seconds(47));
  auto third = List();
  ASSERT_TRUE(third.done());
  scheduler_.Advance(seconds(26));  // 73 s: beyond the longest jitter
  auto fourth = List();
  EXPECT_FALSE(fourth.done());
  AnswerIndex("http://h/d/", {"c"});
  EXPECT_EQ(NamesOf(**fourth), "c ");
}

TEST_F(HttpNamespaceTest, RevalidatesWithValidators) {
  auto first = List();
  Answer("http://h/d/", 200, {{"Content-Type", "text/html"}, {"ETag", "\"v1\""}}, Index({"a"}));
  scheduler_.Advance(seconds(80));
  auto second = List();
  auto call = http_.Take();
  EXPECT_EQ(call->Header("If-None-Match"), "\"v1\"");
  call->Head(304, {});
  call->Done();
  scheduler_.RunReady();
  ASSERT_TRUE(second.done());
  EXPECT_EQ(NamesOf(**second), "a ");
  EXPECT_TRUE(List().done());
}

TEST_F(HttpNamespaceTest, WhatIsNoListingIsEmptyAndNotComplete) {
  struct Row {
    int status;
    std::string type;
  };
  for (const Row& row : {Row{403, "text/html"}, Row{404, "text/html"}, Row{200, "image/png"},
                         Row{200, "application/json"}, Row{400, ""}}) {
    SCOPED_TRACE(std::to_string(row.status) + row.type);
    scheduler_.Advance(seconds(80));
    auto listing = List();
    auto call = http_.Take();
    if (call->Head(row.status, {{"Content-Type", row.type}}) && call->Body("{}")) call->Done();
    scheduler_.RunReady();
    ASSERT_TRUE(listing.done());
    ASSERT_TRUE(*listing) << listing->error().ToString();
    EXPECT_TRUE((**listing)->entries.empty());
    EXPECT_FALSE((**listing)->complete);
  }
}

TEST_F(HttpNamespaceTest, AnOrdinaryPageIsListedButNotComplete) {
  auto listing = List();
  Answer("http://h/d/", 200, {{"Content-Type", "text/html"}}, "<a href=disk.img>get it</a>");
  EXPECT_EQ(NamesOf(**listing), "disk.img ");
  EXPECT_FALSE((**listing)->complete);
}

TEST_F(HttpNamespaceTest, RedirectedListingsKeepTheirChildrenHere) {
  auto listing = List();
  Answer("http://h/d/", 200, {{"Content-Type", "text/html"}},
         "<title>Index of</title><a href=/mirror/7/a>a</a><a href=/d/b>b</a><a href=c>c</a>",
         "http://other/mirror/7/");
  EXPECT_EQ(NamesOf(**listing), "a c ");
  engine_.AddFile("http://h/d/a", {.size = 1});
  auto found = Lookup("a");
  ExpectFile(found, "http://h/d/a");
}

TEST_F(HttpNamespaceTest, ALoginPageIsNoListing) {
  auto listing = List();
  Answer("http://h/d/", 200, {{"Content-Type", "text/html"}}, "<a href=/signup>x</a>",
         "http://h/login");
  EXPECT_TRUE((**listing)->entries.empty());
}

TEST_F(HttpNamespaceTest, StaleListingsAreServedWhileTheOriginIsGone) {
  ListRoot({"a", "sub/"});
  scheduler_.Advance(seconds(80));
  auto stale = List();
  AnswerFailure();
  EXPECT_EQ(NamesOf(**stale), "a sub/ ");
  // Left alone for a moment, then asked again.
  EXPECT_TRUE(List().done());
  EXPECT_EQ(http_.waiting(), 0U);
  scheduler_.Advance(seconds(6));
  auto again = List();
  AnswerStatus("http://h/d/", 503);
  EXPECT_EQ(NamesOf(**again), "a sub/ ");
}

TEST_F(HttpNamespaceTest, FailuresWithoutAListingAreErrorsAndNotRemembered) {
  auto first = List();
  AnswerFailure();
  ASSERT_TRUE(first.done());
  ASSERT_FALSE(*first);
  EXPECT_EQ(first->error().code, Code::kUnavailable);
  auto second = List();
  EXPECT_FALSE(second.done());
  AnswerStatus("http://h/d/", 500);
  ASSERT_FALSE(*second);
  EXPECT_EQ(second->error().code, Code::kUnavailable);
  auto third = List();
  AnswerIndex("http://h/d/", {"a"});
  EXPECT_TRUE(*third);
}

TEST_F(HttpNamespaceTest, DeadlinesEndTheWaitNotTheFetch) {
  auto impatient = List({}, seconds(1));
  auto patient = List({}, seconds(50));
  scheduler_.Advance(seconds(2));
  ASSERT_TRUE(impatient.done());
  ASSERT_FALSE(*impatient);
  EXPECT_EQ(impatient->error().code, Code::kDeadlineExceeded);
  EXPECT_FALSE(patient.done());
  AnswerIndex("http://h/d/", {"a"});
  EXPECT_TRUE(*patient);
}

TEST_F(HttpNamespaceTest, ListingsOutliveARestart) {
  ListRoot({"a%281%29", "sub/"});
  Mount("http://h/d/");
  auto listing = List();
  AnswerFailure();
  ASSERT_TRUE(*listing);
  EXPECT_EQ(NamesOf(**listing), "a(1) sub/ ");
  EXPECT_EQ(names_->UrlOf({}, "a(1)")->ToString(), "http://h/d/a%281%29");
  auto sub = Lookup("sub");
  ExpectDir(sub, "sub/");
}

TEST_F(HttpNamespaceTest, UnchangedListingsAreWrittenOnce) {
  ListRoot({"a"});
  EXPECT_EQ(engine_.store().puts(), 1U);
  scheduler_.Advance(seconds(80));
  ListRoot({"a"});
  EXPECT_EQ(engine_.store().puts(), 1U);
  scheduler_.Advance(seconds(80));
  ListRoot({"b"});
  EXPECT_EQ(engine_.store().puts(), 2U);
  scheduler_.Advance(seconds(80));
  auto gone = List();
  AnswerStatus("http://h/d/", 404);
  EXPECT_EQ(engine_.store().names(), 0U);
}

TEST_F(HttpNamespaceTest, ARefusalDoesNotEraseWhatTheIndexRemembers) {
  ListRoot({"a"});
  scheduler_.Advance(seconds(80));
  auto refused = List();
  AnswerStatus("http://h/d/", 403);
  EXPECT_TRUE((**refused)->entries.empty());
  EXPECT_EQ(engine_.store().names(), 1U);
}

TEST_F(HttpNamespaceTest, LookupOfAListedDirectoryCostsNothing) {
  ListRoot({"sub/", "a"});
  auto found = Lookup("sub");
  ExpectDir(found, "sub/");
  EXPECT_EQ((*found)->url->ToString(), "http://h/d/sub/");
  EXPECT_EQ(engine_.opens(), 0U);
  EXPECT_EQ(http_.waiting(), 0U);
}

TEST_F(HttpNamespaceTest, LookupInAStaleListingRenewsIt) {
  ListRoot({"sub/", "x/"});
  engine_.AddFile("http://h/d/x", {.size = 1});
  scheduler_.Advance(seconds(80));
  auto sub = Lookup("sub");
  auto x = Lookup("x");
  EXPECT_FALSE(sub.done());
  AnswerIndex("http://h/d/", {"sub/", "x"});
  ExpectDir(sub, "sub/");
  ExpectFile(x, "http://h/d/x");
}

TEST_F(HttpNamespaceTest, LookupOfFilesGoesThroughTheEngine) {
  engine_.AddFile("http://h/d/a%20b", {.size = 5, .last_modified = 77});
  auto found = Lookup("a b");
  ExpectFile(found, "http://h/d/a%20b");
  EXPECT_EQ((*found)->mtime, 77);
  EXPECT_EQ(http_.started(), 0U);
  EXPECT_EQ(engine_.last_options().authorization, "Basic abc");
  EXPECT_EQ(engine_.last_options().ttl, seconds(60));
}

TEST_F(HttpNamespaceTest, TheListingsSpellingIsWhatIsAskedFor) {
  ListRoot({"a%2bb", "c%2Bd/"});
  engine_.AddFile("http://h/d/a%2bb", {.size = 5});
  auto found = Lookup("a+b");
  ExpectFile(found, "http://h/d/a%2bb");
  auto dir = Lookup("c+d");
  ExpectDir(dir, "c%2Bd/");
}

TEST_F(HttpNamespaceTest, ARedirectToTheNamePlusSlashIsADirectory) {
  engine_.Fail("http://h/d/sub", Code::kIsDirectory);
  auto found = Lookup("sub");
  ExpectDir(found, "sub/");
  EXPECT_EQ(http_.started(), 0U);
  // Remembered for the time to live, and in the index.
  auto again = Lookup("sub");
  ExpectDir(again, "sub/");
  EXPECT_EQ(engine_.Opens("http://h/d/sub"), 1U);
  Mount("http://h/d/");
  engine_.Fail("http://h/d/sub", Code::kUnavailable);
  auto offline = Lookup("sub");
  ExpectDir(offline, "sub/");
}

TEST_F(HttpNamespaceTest, After404TheNamePlusSlashIsTriedOnce) {
  auto dir = Lookup("sub");
  AnswerIndex("http://h/d/sub/", {"x"});
  ExpectDir(dir, "sub/");
  // Its listing has come with it.
  EXPECT_TRUE(List({"sub/"}).done());

  auto absent = Lookup("nope");
  AnswerStatus("http://h/d/nope/", 404);
  ExpectError(absent, Code::kNotFound);
  auto refused = Lookup("dir403");
  AnswerStatus("http://h/d/dir403/", 403);
  ExpectError(refused, Code::kNotFound);
  auto unreachable = Lookup("later");
  AnswerFailure();
  ExpectError(unreachable, Code::kUnavailable);
}

TEST_F(HttpNamespaceTest, ACompleteFreshListingSettlesA404) {
  ListRoot({"a"});
  auto absent = Lookup("nope");
  ExpectError(absent, Code::kNotFound);
  EXPECT_EQ(engine_.Opens("http://h/d/nope"), 1U);
  EXPECT_EQ(http_.waiting(), 0U);
  // What it does not list may still be there.
  engine_.AddFile("http://h/d/.hidden", {.size = 1});
  auto hidden = Lookup(".hidden");
  ExpectFile(hidden, "http://h/d/.hidden");
}

TEST_F(HttpNamespaceTest, AbsenceIsAskedAgainAfterASecond) {
  auto absent = Lookup("nope");
  AnswerStatus("http://h/d/nope/", 404);
  auto at_once = Lookup("nope");
  ExpectError(at_once, Code::kNotFound);
  scheduler_.Advance(std::chrono::milliseconds(1100));
  auto later = Lookup("nope");
  AnswerIndex("http://h/d/nope/", {});
  ExpectDir(later, "nope/");
}

TEST_F(HttpNamespaceTest, ErrorsPassAsTheyAre) {
  for (const Code code : {Code::kForbidden, Code::kUnauthorized, Code::kUnavailable,
                          Code::kDeadlineExceeded, Code::kBadResponse, Code::kTooLarge}) {
    engine_.Fail("http://h/d/x", code);
    auto found = Lookup("x");
    ExpectError(found, code);
  }
  EXPECT_EQ(http_.started(), 0U);
}

TEST_F(HttpNamespaceTest, UnreachableIsNotAbsent) {
  ListRoot({"sub/", "a"});
  scheduler_.Advance(seconds(80));
  engine_.FailOthers(Code::kUnavailable);
  auto sub = Lookup("sub");
  AnswerFailure();
  ExpectDir(sub, "sub/");
  auto file = Lookup("a");
  ExpectError(file, Code::kUnavailable);
}

TEST_F(HttpNamespaceTest, LongNamesAreFilesAlways) {
  engine_.AddFile("http://h/d/sub/x?v=1", {.size = 1});
  auto found = Lookup("sub%2Fx%3Fv=1");
  ExpectFile(found, "http://h/d/sub/x?v=1");
  engine_.Fail("http://h/d/sub/y", Code::kIsDirectory);
  auto dir = Lookup("sub%2Fy");
  ExpectError(dir, Code::kIsDirectory);
  auto absent = Lookup("sub%2Fz");
  ExpectError(absent, Code::kNotFound);
  EXPECT_EQ(http_.started(), 0U);
}

TEST_F(HttpNamespaceTest, NamesAskedByHabitCostNothingUnlessListed) {
  engine_.AddFile("http://h/d/.git", {.size = 1});
  auto unlisted = Lookup(".git");
  ExpectError(unlisted, Code::kNotFound);
  EXPECT_EQ(engine_.opens(), 0U);
  EXPECT_EQ(http_.started(), 0U);
  ListRoot({".git", "autorun.inf/"});
  auto file = Lookup(".git");
  ExpectFile(file, "http://h/d/.git");
  auto dir = Lookup("autorun.inf");
  ExpectDir(dir, "autorun.inf/");
}

TEST_F(HttpNamespaceTest, NamesThatAreNoneAreNotFound) {
  for (const char* name : {"..", "%=..", "..%2F..%2Fsecret", "%=abc", "a/b", ""}) {
    auto found = Lookup(name);
    ExpectError(found, Code::kNotFound);
  }
  EXPECT_EQ(engine_.opens(), 0U);
  auto badly = Lookup("x", {"../"});
  ExpectError(badly, Code::kInvalidArgument);
  auto long_dir = Lookup(std::string(255, 'x'), {std::string(16300, 'y') + "/"});
  ExpectError(long_dir, Code::kNotFound);
}

TEST_F(HttpNamespaceTest, DigestedNamesNeedTheListing) {
  const std::string segment = std::string(300, 'x') + ".img";
  ListRoot({segment});
  engine_.AddFile("http://h/d/" + segment, {.size = 1});
  std::string name;
  {
    auto listing = List();
    name = (**listing)->entries.at(0).name;
  }
  auto found = Lookup(name);
  ExpectFile(found, "http://h/d/" + segment);
  // Without it, it is fetched first.
  Mount("http://h/e/");
  engine_.AddFile("http://h/e/" + segment, {.size = 1});
  auto fresh = Lookup(name);
  AnswerIndex("http://h/e/", {segment});
  ExpectFile(fresh, "http://h/e/" + segment);
  auto wrong = Lookup("%~00112233445566778899aabbccddeeff.img");
  ExpectError(wrong, Code::kNotFound);
}

TEST_F(HttpNamespaceTest, UrlsAndDirectoriesWithoutAsking) {
  ListRoot({"a%2bb", "sub/"});
  EXPECT_EQ(names_->UrlOf({}, "a+b")->ToString(), "http://h/d/a%2bb");
  EXPECT_EQ(names_->UrlOf({"sub/"}, "x y")->ToString(), "http://h/d/sub/x%20y");
  EXPECT_EQ(names_->UrlOf({}, "x%3Fq")->ToString(), "http://h/d/x?q");
  EXPECT_EQ(names_->DirOf({}, "sub")->key, "sub/");
  EXPECT_EQ(names_->DirOf({"sub/"}, "x y")->key, "sub/x%20y/");
  EXPECT_EQ(names_->DirOf({}, "a+b").error().code, Code::kNotFound);
  EXPECT_EQ(names_->DirOf({}, "x%2Fy").error().code, Code::kNotFound);
  EXPECT_EQ(http_.waiting(), 0U);
}

TEST_F(HttpNamespaceTest, ProbesAheadSixteenAtOnceOncePerListing) {
  std::vector<std::string> hrefs{"sub/"};
  for (int i = 0; i < 40; ++i) hrefs.push_back("f" + std::to_string(100 + i));
  ListRoot(hrefs);
  engine_.AddFile("http://h/d/f100", {.size = 1, .cached = true});
  engine_.Hold();
  names_->ProbeAhead({});
  EXPECT_EQ(engine_.opens(), 16U);
  EXPECT_EQ(engine_.Opens("http://h/d/f100"), 0U);
  names_->ProbeAhead({});
  EXPECT_EQ(engine_.opens(), 16U);
  engine_.Release();
  EXPECT_EQ(engine_.opens(), 39U);
  EXPECT_EQ(engine_.Opens("http://h/d/sub"), 0U);
  names_->ProbeAhead({});
  EXPECT_EQ(engine_.opens(), 39U);
}

TEST_F(HttpNamespaceTest, ProbingEndsWhenTheOriginIsOutOfReach) {
  std::vector<std::string> hrefs;
  for (int i = 0; i < 40; ++i) hrefs.push_back("f" + std::to_string(100 + i));
  ListRoot(hrefs);
  engine_.FailOthers(Code::kUnavailable);
  names_->ProbeAhead({});
  EXPECT_EQ(engine_.opens(), 3U);
}

TEST_F(HttpNamespaceTest, ProbingIsBoundedPerListing) {
  std::vector<std::string> hrefs;
  for (int i = 0; i < 5000; ++i) hrefs.push_back("f" + std::to_string(i));
  ListRoot(hrefs);
  names_->ProbeAhead({});
  EXPECT_EQ(engine_.opens(), 4096U);
}

TEST_F(HttpNamespaceTest, StopAnswersEveryone) {
  auto listing = List();
  auto found = Lookup("x");  // waits for "x/"
  EXPECT_EQ(http_.started(), 2U);
  names_->Stop();
  names_->Stop();
  ASSERT_TRUE(listing.done() && found.done());
  EXPECT_EQ(listing->error().code, Code::kCancelled);
  ExpectError(found, Code::kCancelled);
  scheduler_.RunReady();
  for (const auto& call : http_.all()) EXPECT_TRUE(call->done());
  auto after = List();
  ASSERT_TRUE(after.done());
  EXPECT_EQ(after->error().code, Code::kCancelled);
}

TEST_F(HttpNamespaceTest, AListingLargerThanTheLimitIsCut) {
  auto listing = List();
  auto call = http_.Take();
  ASSERT_TRUE(call->Head(200, {{"Content-Type", "text/html"}}));
  ASSERT_TRUE(call->Body(Index({"a"})));
  const std::string filler(size_t{1} << 20, ' ');
  int pieces = 0;
  while (!call->done()) {
    ASSERT_LT(++pieces, 20);
    (void)call->Body(filler);
  }
  scheduler_.RunReady();
  ASSERT_TRUE(*listing);
  EXPECT_EQ(NamesOf(**listing), "a ");
  EXPECT_FALSE((**listing)->complete);
}

// Keeps what is logged, for the length of a test.
class Logged {
 public:
  Logged() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", std::move(sink)));
  }
  ~Logged() { spdlog::set_default_logger(before_); }
  size_t Count(const std::string& word) const {
    const std::string text = text_.str();
    size_t count = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      ++count;
    }
    return count;
  }

 private:
  const std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;
};

TEST_F(HttpNamespaceTest, ADirectoryThatWantsALoginIsNotEmpty) {
  for (const int status : {401, 407}) {
    Mount("http://h/d/");
    Logged logged;
    auto listing = List();
    AnswerStatus("http://h/d/", status);
    ASSERT_TRUE(listing.done());
    ASSERT_FALSE(*listing);
    EXPECT_EQ(listing->error().code, Code::kUnauthorized);
    EXPECT_EQ(logged.Count("login"), 1U);
  }
}

TEST_F(HttpNamespaceTest, ADirectoryWithoutAListingIsSaidOnceForACause) {
  Logged logged;
  for (const int status : {403, 403, 404, 404}) {
    auto listing = List();
    AnswerStatus("http://h/d/", status);
    ASSERT_TRUE(listing.done() && *listing);
    EXPECT_TRUE((**listing)->entries.empty());
    scheduler_.Advance(seconds(2));
  }
  auto listing = List();
  Answer("http://h/d/", 200, {{"Content-Type", "application/octet-stream"}}, "a disk image");
  ASSERT_TRUE(listing.done() && *listing);
  EXPECT_EQ(logged.Count("names there can only be looked up"), 3U);
  EXPECT_EQ(logged.Count("http://h/d/: the origin answered 200 (application/octet-stream)"), 1U);
}

TEST_F(HttpNamespaceTest, NamesThatAreNotThereAreNoNews) {
  Logged logged;
  auto found = Lookup("nope");
  AnswerStatus("http://h/d/nope/", 404);
  ExpectError(found, Code::kNotFound);
  EXPECT_EQ(logged.Count("looked up"), 0U);
}

TEST_F(HttpNamespaceTest, ManyDirectoriesWithoutAListingDoNotFloodTheLog) {
  Logged logged;
  for (int i = 0; i < 100; ++i) {
    const std::string key = std::to_string(i) + "/";
    auto listing = List({key});
    AnswerStatus("http://h/d/" + key, 403);
  }
  EXPECT_EQ(logged.Count("can only be looked up"), 20U);
  EXPECT_EQ(logged.Count("not logged for a minute"), 1U);
}

class ExactSizesTest : public HttpNamespaceTest {
 protected:
  // The listing says ten bytes and a time.
  void ListExactly() {
    auto listing = List();
    Answer("http://h/d/", 200, {{"Content-Type", "application/json"}},
           R"([{"name":"a","type":"file","size":10,"mtime":"Tue, 02 Jan 2024 03:04:05 GMT"},)"
           R"({"name":"sub","type":"directory"}])");
    ASSERT_TRUE(listing.done() && *listing);
  }
  Pending<Found> Open(const std::string& name) {
    Pending<Found> pending;
    names_->Open({}, name, In(seconds(30)),
                 [result = pending.result](Result<Found> found) { *result = std::move(found); });
    scheduler_.RunReady();
    return pending;
  }
  const std::string url_ = "http://h/d/a";
};

TEST_F(ExactSizesTest, ALookupCostsNoRequestUntilTheListingIsOld) {
  ListExactly();
  engine_.AddFile(url_, {.size = 10});
  auto found = Lookup("a");
  EXPECT_EQ((*found)->object, nullptr);
  EXPECT_EQ((*found)->promise->size, 10U);
  EXPECT_EQ((*found)->mtime, 1704164645);
  EXPECT_EQ((*found)->url->ToString(), url_);
  EXPECT_EQ(engine_.opens(), 0U);
  auto opened = Open("a");
  EXPECT_EQ((*opened)->object->size(), 10U);
  EXPECT_EQ((*opened)->promise, (*found)->promise);
  scheduler_.Advance(seconds(120));
  EXPECT_NE((*Lookup("a"))->object, nullptr);
  EXPECT_FALSE((*Lookup("a"))->promise);
}

TEST_F(ExactSizesTest, TheOriginsWordWins) {
  Logged logged;
  ListExactly();
  engine_.AddFile(url_, {.size = 11});
  EXPECT_EQ((*Lookup("a"))->promise->size, 10U);
  EXPECT_FALSE((*Open("a"))->promise);
  auto again = Lookup("a");
  EXPECT_EQ((*again)->object->size(), 11U);
  EXPECT_FALSE((*again)->promise);
  ASSERT_TRUE(*Open("a"));
  EXPECT_EQ(logged.Count("listed with 10 bytes, but the origin serves 11"), 1U);
}

TEST_F(ExactSizesTest, NothingIsProbedAhead) {
  ListExactly();
  names_->ProbeAhead({});
  EXPECT_EQ(engine_.opens(), 0U);
}

TEST_F(ExactSizesTest, EntriesOfAListingAreKnown) {
  ListExactly();
  const auto listing = *List();
  ASSERT_EQ((*listing)->entries.size(), 2U);
  EXPECT_EQ(names_->Known({}, (*listing)->entries[0])->promise->size, 10U);
  const auto sub = names_->Known({}, (*listing)->entries[1]);
  EXPECT_EQ(sub->kind, EntryKind::kDirectory);
  EXPECT_EQ(sub->dir.key, "sub/");
  EXPECT_EQ(engine_.opens(), 0U);
}

TEST_F(HttpNamespaceTest, UrlsOfDirectories) {
  const std::pair<const char*, std::optional<std::string>> rows[] = {
      {"http://h/d/", ""},         {"http://u:p@h/d/a/", "a/"},   {"http://h/d/a", std::nullopt},
      {"http://h/", std::nullopt}, {"http://x/d/", std::nullopt}, {"http://h/d/?q", std::nullopt},
  };
  for (const auto& [url, key] : rows) {
    const auto dir = names_->DirOfUrl(core::ParseUrl(url).value());
    EXPECT_EQ(dir ? std::optional(dir->key) : std::nullopt, key) << url;
  }
}

}  // namespace
}  // namespace dartfs::fs
