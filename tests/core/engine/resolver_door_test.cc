// What the HTTP door asks of the resolver beside the mounts: origins without ranges passed on,
// redirects passed on, URLs that strangers named, and the fields of the last answer.
#include <gtest/gtest.h>

#include "core/engine/resolver.h"
#include "resolver_fixture.h"

namespace dartfs::core {
namespace {

constexpr char kUrl[] = "http://h.example/x";

class ResolverDoorTest : public ResolverTest {
 protected:
  using CallPtr = decltype(std::declval<FakeHttpClient>().WaitTake());

  static OpenOptions Verbatim() {
    OpenOptions options;
    options.verbatim = true;
    return options;
  }
  static OpenOptions Passing(const std::string& authorization = "") {
    OpenOptions options;
    options.pass_redirects = true;
    options.authorization = authorization;
    return options;
  }
  static Code CodeOf(Opened& opened) {
    const auto result = opened.get();
    return result ? Code::kInternal : result.error().code;
  }
  static bool Waits(Opened& opened) {
    return opened.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout;
  }
  static Status Blind(const CallPtr& call, const std::string& length = "") {
    std::vector<HttpHeader> headers = {{"ETag", "\"1\""}};
    if (!length.empty()) headers.push_back({"Content-Length", length});
    return call->Head(200, headers);
  }
  static void Redirect(const CallPtr& call, const std::string& to) {
    if (call->Head(302, {{"Location", to}, {"X-Linked-Size", "5"}, {"Content-Length", "0"}})) {
      call->Done();
    }
  }
  // An answer to bytes=0-0 of "bytes".
  static void Serve(const CallPtr& call, std::vector<HttpHeader> more = {},
                    const std::string& effective_url = "",
                    std::vector<HttpHeader> of_redirects = {}) {
    std::vector<HttpHeader> headers = {{"Content-Range", "bytes 0-0/5"}, {"ETag", "\"1\""}};
    for (auto& header : more) headers.push_back(std::move(header));
    if (call->Head(206, headers, effective_url, std::move(of_redirects))) {
      EXPECT_TRUE(call->Body("b"));
      call->Done();
    }
  }
  void NotModified(OpenOptions options, std::vector<HttpHeader> headers) {
    options.revalidate = true;
    Opened again = Ask(kUrl, options);
    const auto call = fake_.WaitTake();
    EXPECT_EQ(call->Header("if-none-match"), "\"1\"");
    if (call->Head(304, std::move(headers))) call->Done();
    EXPECT_TRUE(again.get());
  }
  std::optional<Code> Cached(const CachedOpen& how) {
    const auto known = asked_->OpenCached(*ParseUrl(kUrl), how);
    if (!known) return std::nullopt;
    return *known ? Code::kInternal : known->error().code;
  }
  static std::string Text(const Object& object) {
    std::string text;
    for (const auto& [name, value] : object.answer()->headers) text += name + "=" + value + ";";
    return text;
  }
};

TEST_F(ResolverDoorTest, ARangeBlindOriginEndsAVerbatimOpenAtItsHead) {
  for (const char* length : {"", "100000000000000"}) {  // beyond any spool limit
    const std::string url = std::string(kUrl) + length;
    Opened opened = Ask(url, Verbatim());
    EXPECT_FALSE(Blind(fake_.WaitTake(), length)) << "no byte is read to count them";
    const auto result = opened.get();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kRangeBlind);
    EXPECT_EQ(result.error().http_status, 200);
    Opened again = Ask(url, Verbatim());
    EXPECT_EQ(CodeOf(again), Code::kRangeBlind) << "without a request";
    OpenOptions anew = Verbatim();
    anew.revalidate = true;
    Opened revalidated = Ask(url, anew);
    EXPECT_EQ(CodeOf(revalidated), Code::kRangeBlind);
  }
  CachedOpen verbatim;
  verbatim.verbatim = true;
  EXPECT_EQ(Cached(verbatim), Code::kRangeBlind);
  EXPECT_EQ(Cached({}), std::nullopt) << "others may still have it spooled";
}

TEST_F(ResolverDoorTest, OthersStillHaveItCountedAndSpooled) {
  Opened first = Ask(kUrl, Verbatim());
  EXPECT_FALSE(Blind(fake_.WaitTake()));
  EXPECT_EQ(CodeOf(first), Code::kRangeBlind);
  Opened spooled = Ask(kUrl);
  const auto call = fake_.WaitTake();
  EXPECT_TRUE(Blind(call));
  EXPECT_TRUE(call->Body("12345"));
  call->Done();
  const auto object = spooled.get();
  ASSERT_TRUE(object) << object.error().ToString();
  EXPECT_EQ((*object)->size(), 5u);
  EXPECT_TRUE((*object)->range_blind());
  Opened later = Ask(kUrl, Verbatim());
  EXPECT_EQ(CodeOf(later), Code::kRangeBlind);
  EXPECT_EQ(Cached({}), Code::kInternal);
}

TEST_F(ResolverDoorTest, OneProbeAnswersBothKinds) {
  Opened spooling = Ask(kUrl);
  Opened verbatim = Ask(kUrl, Verbatim());
  const auto call = fake_.WaitTake();
  EXPECT_TRUE(Blind(call)) << "somebody wants the length";
  EXPECT_EQ(CodeOf(verbatim), Code::kRangeBlind) << "while the other's is still counted";
  Opened late = Ask(kUrl, Verbatim());
  EXPECT_EQ(CodeOf(late), Code::kRangeBlind);
  EXPECT_TRUE(Waits(spooling));
  EXPECT_TRUE(call->Body("123"));
  call->Done();
  const auto object = spooling.get();
  ASSERT_TRUE(object) << object.error().ToString();
  EXPECT_EQ((*object)->size(), 3u);
}

TEST_F(ResolverDoorTest, TooLargeToSpoolIsNoneOfAVerbatimOpensBusiness) {
  Opened spooling = Ask(kUrl);
  Opened verbatim = Ask(kUrl, Verbatim());
  EXPECT_FALSE(Blind(fake_.WaitTake(), "100000000000000"));
  EXPECT_EQ(CodeOf(spooling), Code::kTooLarge);
  EXPECT_EQ(CodeOf(verbatim), Code::kRangeBlind);
  Opened again = Ask(kUrl, Verbatim());
  EXPECT_EQ(CodeOf(again), Code::kRangeBlind) << "though the error is remembered";
}

TEST_F(ResolverDoorTest, AnEmptyObjectIsAnObject) {
  Opened empty = Ask(kUrl, Verbatim());
  const auto call = fake_.WaitTake();
  if (Blind(call, "0")) call->Done();
  const auto object = empty.get();
  ASSERT_TRUE(object) << object.error().ToString();
  EXPECT_EQ((*object)->size(), 0u);
  Opened other = Ask("http://h.example/y", Verbatim());
  const auto second = fake_.WaitTake();
  if (second->Head(416, {{"Content-Range", "bytes */0"}})) second->Done();
  EXPECT_TRUE(other.get());
}

TEST_F(ResolverDoorTest, AnOriginThatLearnsRangesIsAskedByOthersAndServesAll) {
  Opened first = Ask(kUrl, Verbatim());
  EXPECT_FALSE(Blind(fake_.WaitTake()));
  EXPECT_EQ(CodeOf(first), Code::kRangeBlind);
  Opened mount = Ask(kUrl);
  Serve(fake_.WaitTake());
  EXPECT_TRUE(mount.get());
  Opened verbatim = Ask(kUrl, Verbatim());
  EXPECT_TRUE(verbatim.get());
}

TEST_F(ResolverDoorTest, A304OfARangeBlindObjectIsTwoAnswers) {
  Opened spooled = Ask(kUrl);
  const auto call = fake_.WaitTake();
  EXPECT_FALSE(Blind(call, "5"));
  ASSERT_TRUE(spooled.get());
  OpenOptions anew;
  anew.revalidate = true;
  Opened again = Ask(kUrl, anew);
  const auto second = fake_.WaitTake();
  if (second->Head(304, {})) second->Done();
  EXPECT_TRUE(again.get());
  Opened verbatim = Ask(kUrl, Verbatim());
  EXPECT_EQ(CodeOf(verbatim), Code::kRangeBlind);
}

// The version that the cache holds would be shown as the current one although the origin says that
// there is another.
TEST_F(ResolverDoorTest, A304ThatNamesAnotherVersionIsAskedAboutWithoutACondition) {
  Opened first = Ask(kUrl);
  Serve(fake_.WaitTake());
  const auto old = *first.get();
  for (const bool restarted : {false, true}) {
    if (restarted) AskAnew();
    OpenOptions anew;
    anew.revalidate = true;
    Opened again = Ask(kUrl, anew);
    const auto call = fake_.WaitTake();
    EXPECT_NE(call->Header("if-none-match"), "");
    EXPECT_FALSE(call->Head(304, {{"ETag", restarted ? "\"3\"" : "\"2\""}}));
    const auto unconditional = fake_.WaitTake();
    EXPECT_EQ(unconditional->Header("if-none-match"), "");
    const std::string etag = restarted ? "\"3\"" : "\"2\"";
    if (unconditional->Head(206, {{"Content-Range", "bytes 0-0/6"}, {"ETag", etag}})) {
      EXPECT_TRUE(unconditional->Body("b"));
      unconditional->Done();
    }
    const auto object = again.get();
    ASSERT_TRUE(object) << object.error().ToString();
    EXPECT_EQ((*object)->version(), "e:" + etag);
    EXPECT_EQ((*object)->size(), 6u);
    EXPECT_TRUE(old->superseded());
  }
}

TEST_F(ResolverDoorTest, A304WithoutAConditionIsABadAnswer) {
  Opened opened = Ask(kUrl);
  EXPECT_FALSE(fake_.WaitTake()->Head(304, {{"ETag", "\"1\""}}));
  EXPECT_EQ(CodeOf(opened), Code::kBadResponse);
  // Nor does one help that names another version again and again.
  Opened known = Ask(kUrl + std::string("b"));
  Serve(fake_.WaitTake());
  ASSERT_TRUE(known.get());
  OpenOptions anew;
  anew.revalidate = true;
  Opened again = Ask(kUrl + std::string("b"), anew);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(fake_.WaitTake()->Head(304, {{"ETag", "\"2\""}}));
  EXPECT_EQ(CodeOf(again), Code::kBadResponse);
}

TEST_F(ResolverDoorTest, ARedirectIsPassedOnWhole) {
  Opened opened = Ask(kUrl, Passing());
  const auto call = fake_.WaitTake();
  EXPECT_FALSE(call->request().follow_redirects);
  Redirect(call, "https://bucket.example/b?sig=1");
  const auto result = opened.get();
  ASSERT_FALSE(result);
  const Error& error = result.error();
  EXPECT_EQ(error.code, Code::kRedirected);
  EXPECT_EQ(error.http_status, 302);
  ASSERT_NE(error.answer, nullptr);
  EXPECT_EQ(error.answer->status, 302);
  EXPECT_EQ(error.answer->Find("location"), "https://bucket.example/b?sig=1");
  EXPECT_EQ(error.answer->Find("x-linked-size"), "5");
  EXPECT_EQ(error.context.find("sig"), std::string::npos);
  Opened again = Ask(kUrl, Passing());
  EXPECT_EQ(CodeOf(again), Code::kRedirected) << "for a moment without a request";
}

TEST_F(ResolverDoorTest, ARedirectIsNotRememberedBeyondAMoment) {
  options_.error_ttl = std::chrono::milliseconds(1);
  AskAnew();
  Opened opened = Ask(kUrl, Passing());
  Redirect(fake_.WaitTake(), "/b");
  EXPECT_EQ(CodeOf(opened), Code::kRedirected);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  Opened again = Ask(kUrl, Passing());
  Serve(fake_.WaitTake());
  EXPECT_TRUE(again.get());
}

TEST_F(ResolverDoorTest, ARedirectIsShownToItsCredentialAlone) {
  Opened alice = Ask(kUrl, Passing("Bearer a"));
  Opened bob = Ask(kUrl, Passing("Bearer b"));
  const auto first = fake_.WaitTake();
  EXPECT_EQ(first->request().authorization, "Bearer a");
  Redirect(first, "/signed-for-a");
  const auto of_alice = alice.get();
  ASSERT_FALSE(of_alice);
  EXPECT_EQ(of_alice.error().answer->Find("location"), "/signed-for-a");
  const auto second = fake_.WaitTake();
  EXPECT_EQ(second->request().authorization, "Bearer b");
  Redirect(second, "/signed-for-b");
  const auto of_bob = bob.get();
  ASSERT_FALSE(of_bob);
  EXPECT_EQ(of_bob.error().answer->Find("location"), "/signed-for-b");
  CachedOpen how;
  how.pass_redirects = true;
  how.authorization = "Bearer a";
  EXPECT_EQ(Cached(how), std::nullopt);
  how.authorization = "Bearer b";
  EXPECT_EQ(Cached(how), Code::kRedirected);
}

TEST_F(ResolverDoorTest, WhoFollowsAndWhoPassesOnAreBothAnswered) {
  for (const bool follower_first : {true, false}) {
    const std::string url = follower_first ? "http://h.example/f" : "http://h.example/p";
    Opened follower, passing;
    if (follower_first) follower = Ask(url);
    passing = Ask(url, Passing());
    if (!follower_first) follower = Ask(url);
    for (int probe = 0; probe < 2; ++probe) {
      const auto call = fake_.WaitTake();
      if (call->request().follow_redirects) {
        Serve(call, {}, "http://bucket.example/b");
      } else {
        Redirect(call, "http://bucket.example/b");
      }
    }
    EXPECT_TRUE(follower.get());
    EXPECT_EQ(CodeOf(passing), Code::kRedirected);
  }
}

TEST_F(ResolverDoorTest, AnObjectBehindARedirectIsNoneForWhoPassesItOn) {
  Opened follower = Ask(kUrl);
  Serve(fake_.WaitTake(), {}, "http://bucket.example/b");
  ASSERT_TRUE(follower.get());
  CachedOpen how;
  EXPECT_EQ(Cached(how), Code::kInternal);
  how.pass_redirects = true;
  EXPECT_EQ(Cached(how), std::nullopt);
  Opened passing = Ask(kUrl, Passing());
  Redirect(fake_.WaitTake(), "http://bucket.example/b");
  EXPECT_EQ(CodeOf(passing), Code::kRedirected);
  EXPECT_EQ(Cached({}), Code::kInternal) << "others have it on";
}

TEST_F(ResolverDoorTest, AnObjectOfTheUrlItselfServesBoth) {
  Opened passing = Ask(kUrl, Passing());
  Serve(fake_.WaitTake());
  ASSERT_TRUE(passing.get());
  CachedOpen how;
  how.pass_redirects = true;
  EXPECT_EQ(Cached(how), Code::kInternal);
  EXPECT_EQ(Cached({}), Code::kInternal);
}

TEST_F(ResolverDoorTest, AnImmutableObjectBehindARedirectIsRedirectedAfterARestart) {
  OpenOptions fixed;
  fixed.immutable = true;
  Opened follower = Ask(kUrl, fixed);
  Serve(fake_.WaitTake(), {}, "http://bucket.example/b");
  ASSERT_TRUE(follower.get());
  AskAnew();
  OpenOptions passing = Passing();
  passing.immutable = true;
  Opened passed = Ask(kUrl, passing);
  Redirect(fake_.WaitTake(), "http://bucket.example/b");
  EXPECT_EQ(CodeOf(passed), Code::kRedirected);
  Opened again = Ask(kUrl, fixed);
  EXPECT_TRUE(again.get()) << "without a request";
}

TEST_F(ResolverDoorTest, ARefusalByPolicyIsTheAskersAlone) {
  OpenOptions stranger;
  stranger.untrusted_url = true;
  Opened of_stranger = Ask(kUrl, stranger);
  Opened of_mount = Ask(kUrl);
  const auto first = fake_.WaitTake();
  EXPECT_TRUE(first->request().untrusted_url);
  first->Done(MakeError(Code::kRefused, "not named"));
  const auto second = fake_.WaitTake();
  EXPECT_FALSE(second->request().untrusted_url);
  Serve(second);
  EXPECT_EQ(CodeOf(of_stranger), Code::kRefused);
  EXPECT_TRUE(of_mount.get());
}

TEST_F(ResolverDoorTest, AFetchForAStrangerSaysSo) {
  Opened opened = Ask(kUrl);
  Serve(fake_.WaitTake());
  const auto object = opened.get();
  ASSERT_TRUE(object);
  const auto reader = asked_->MakeReader(*object, Requester{*ParseUrl(kUrl), "", true});
  auto bytes = std::async(std::launch::async, [&] { return ReadOn(*reader, 0, 5); });
  const auto call = fake_.WaitTake();
  EXPECT_TRUE(call->request().untrusted_url);
  call->AnswerRange("bytes", "\"1\"");
  EXPECT_EQ(*bytes.get(), "bytes");
}

TEST_F(ResolverDoorTest, ARefusedCredentialIsRememberedForCachedOpensToo) {
  OpenOptions login;
  login.authorization = "Bearer a";
  Opened opened = Ask(kUrl, login);
  const auto call = fake_.WaitTake();
  if (call->Head(401, {{"WWW-Authenticate", "Basic realm=\"r\""}})) call->Done();
  const auto result = opened.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().challenge, "Basic realm=\"r\"");
  CachedOpen how;
  EXPECT_EQ(Cached(how), std::nullopt);
  how.authorization = "Bearer a";
  EXPECT_EQ(Cached(how), Code::kUnauthorized);
}

// The caller's patience ends before the origin's.
TEST_F(ResolverDoorTest, AThrottledOpenEndsWithTheOriginsWord) {
  OpenOptions hurried;
  hurried.deadline = RealClock().Now() + std::chrono::seconds(1);
  Opened opened = Ask(kUrl, hurried);
  const auto call = fake_.WaitTake();
  if (call->Head(429, {{"Retry-After", "60"}})) call->Done();
  const auto result = opened.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kTooManyRequests);
  EXPECT_EQ(result.error().http_status, 429);
  EXPECT_EQ(result.error().retry_after_ms, 60000);
}

TEST_F(ResolverDoorTest, AnObjectTellsWhatItsAnswerSaid) {
  Opened opened = Ask(kUrl);
  Serve(fake_.WaitTake(), {{"Cache-Control", "max-age=1"}, {"Expires", "soon"}}, "",
        {{"X-Repo-Commit", "c0ffee"}});
  const auto object = *opened.get();
  EXPECT_EQ(Text(*object), "Cache-Control=max-age=1;Expires=soon;X-Repo-Commit=c0ffee;");
  EXPECT_TRUE(object->answer()->shared_cacheable);

  NotModified({}, {{"Cache-Control", "private"}});
  EXPECT_EQ(Text(*object), "Cache-Control=private;Expires=soon;X-Repo-Commit=c0ffee;");
  EXPECT_FALSE(object->answer()->shared_cacheable);

  OpenOptions anew;
  anew.revalidate = true;
  Opened whole = Ask(kUrl, anew);
  Serve(fake_.WaitTake(), {{"Cache-Control", "public"}});
  EXPECT_EQ(*whole.get(), object) << "the same version";
  EXPECT_EQ(Text(*object), "Cache-Control=public;");
  EXPECT_TRUE(object->answer()->shared_cacheable);
}

TEST_F(ResolverDoorTest, WhatTheAnswerSaidOutlivesARestart) {
  Opened opened = Ask(kUrl);
  Serve(fake_.WaitTake(), {{"X-Linked-Etag", "\"l\""}, {"Set-Cookie", "a=b"}});
  ASSERT_TRUE(opened.get());
  NotModified({}, {{"Expires", "0"}});
  AskAnew();
  Opened again = Ask(kUrl);
  const auto call = fake_.WaitTake();
  if (call->Head(304, {{"Cache-Control", "max-age=9"}})) call->Done();
  const auto object = *again.get();
  EXPECT_EQ(Text(*object), "Cache-Control=max-age=9;Expires=0;X-Linked-Etag=\"l\";");
  EXPECT_FALSE(object->answer()->shared_cacheable);
}

}  // namespace
}  // namespace dartfs::core
