#include "httpd/registry_tokens.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/credentials.h"
#include "fake/fake_http_client.h"
#include "fake/manual_scheduler.h"

namespace dartfs::httpd {
namespace {

using core::BasicAuthorization;
using core::Code;
using core::FakeHttpClient;
using core::MakeError;
using core::ManualScheduler;
using core::Result;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kChallenge =
    R"(Bearer realm="https://auth.docker.io/token",service="registry.docker.io",)"
    R"(scope="repository:other/secret:pull,push")";

using Outcome = std::shared_ptr<std::optional<Result<std::string>>>;

class RegistryTokensTest : public testing::Test {
 protected:
  void SetUp() override { Make({}); }
  void TearDown() override { http_.Stop(); }

  void Make(RegistryTokensOptions options, const std::string& logins = "{}") {
    tokens_ = std::make_unique<RegistryTokens>(
        http_, scheduler_, RegistryLogins::Parse(logins, "logins").value(), std::move(options));
  }
  static RegistryRequest To(const std::string& registry, const std::string& name,
                            const std::string& client = "") {
    return {core::ParseUrl(registry).value(), "repository:" + name + ":pull", client};
  }
  static RegistryRequest Hub(const std::string& name, const std::string& client = "") {
    return To("https://registry-1.docker.io", name, client);
  }
  Outcome Ask(const RegistryRequest& request, const std::string& challenge = kChallenge,
              const std::string& refused = "") {
    auto outcome = std::make_shared<std::optional<Result<std::string>>>();
    tokens_->Authorize(request, challenge, refused, [outcome](Result<std::string> result) {
      ASSERT_FALSE(outcome->has_value());
      *outcome = std::move(result);
    });
    EXPECT_FALSE(outcome->has_value()) << "answered on the caller's stack";
    return outcome;
  }
  void Grant(const std::string& token, int lifetime_s = 300) {
    auto call = http_.Take();
    call->Head(200, {{"Content-Type", "application/json"}});
    call->Body(R"({"token": ")" + token + R"(", "expires_in": )" + std::to_string(lifetime_s) +
               "}");
    call->Done();
    scheduler_.RunReady();
  }
  std::string Value(const Outcome& outcome) {
    scheduler_.RunReady();
    if (!outcome->has_value()) return "pending";
    return (*outcome)->has_value() ? ***outcome : "error";
  }
  core::Error Failure(const Outcome& outcome) {
    scheduler_.RunReady();
    if (!outcome->has_value() || (*outcome)->has_value()) return MakeError(Code::kInternal, "none");
    return (*outcome)->error();
  }

  ManualScheduler scheduler_;
  FakeHttpClient http_{&scheduler_};
  std::unique_ptr<RegistryTokens> tokens_;
};

TEST_F(RegistryTokensTest, OneExchangeForManyWhoWait) {
  std::vector<Outcome> outcomes;
  for (int i = 0; i < 100; ++i) outcomes.push_back(Ask(Hub("library/a")));
  ASSERT_EQ(http_.started(), 1U);
  EXPECT_EQ(http_.all()[0]->request().url,
            "https://auth.docker.io/token?service=registry.docker.io&scope="
            "repository%3Alibrary%2Fa%3Apull");
  EXPECT_EQ(http_.all()[0]->request().authorization, "");
  Grant("t");
  for (const Outcome& outcome : outcomes) EXPECT_EQ(Value(outcome), "Bearer t");
  EXPECT_EQ(Value(Ask(Hub("library/a"))), "Bearer t");
  EXPECT_EQ(tokens_->Known(Hub("library/a")), "Bearer t");
  EXPECT_EQ(http_.started(), 1U);
  EXPECT_EQ(tokens_->Stats().exchanges, 1U);
  EXPECT_EQ(tokens_->Stats().joined, 99U);
  EXPECT_EQ(tokens_->Stats().tokens, 1U);
}

TEST_F(RegistryTokensTest, ATokenIsForOneRepositoryOfOneRegistry) {
  Ask(Hub("a"));
  Grant("t");
  EXPECT_EQ(tokens_->Known(Hub("a")), "Bearer t");
  EXPECT_EQ(tokens_->Known(Hub("b")), "");
  EXPECT_EQ(tokens_->Known(To("https://h", "a")), "");
  EXPECT_EQ(tokens_->Known(To("http://registry-1.docker.io:443", "a")), "");
  const Outcome other = Ask(Hub("b"));
  EXPECT_EQ(http_.started(), 2U);
  Grant("u");
  EXPECT_EQ(Value(other), "Bearer u");
  EXPECT_EQ(tokens_->Known(Hub("a")), "Bearer t");
}

TEST_F(RegistryTokensTest, RenewedBeforeItsEnd) {
  Ask(Hub("a"));
  auto call = http_.Take();
  scheduler_.Advance(seconds(4));  // of the exchange: they count
  call->Head(200, {});
  call->Body(R"({"token": "t", "expires_in": 300})");
  call->Done();
  scheduler_.RunReady();
  scheduler_.Advance(seconds(265));
  EXPECT_EQ(tokens_->Known(Hub("a")), "Bearer t");
  scheduler_.Advance(seconds(1));
  EXPECT_EQ(tokens_->Known(Hub("a")), "");
  const Outcome renewed = Ask(Hub("a"));
  Grant("u");
  EXPECT_EQ(Value(renewed), "Bearer u");
}

TEST_F(RegistryTokensTest, AShortLifeIsUsedByHalf) {
  Ask(Hub("a"));
  Grant("t", 20);
  scheduler_.Advance(milliseconds(9999));
  EXPECT_EQ(tokens_->Known(Hub("a")), "Bearer t");
  scheduler_.Advance(milliseconds(1));
  EXPECT_EQ(tokens_->Known(Hub("a")), "");
}

TEST_F(RegistryTokensTest, ARefusedTokenIsRenewedOnce) {
  Ask(Hub("a"));
  Grant("t");
  scheduler_.Advance(seconds(10));
  std::vector<Outcome> outcomes;
  for (int i = 0; i < 3; ++i) outcomes.push_back(Ask(Hub("a"), kChallenge, "Bearer t"));
  EXPECT_EQ(http_.started(), 2U);
  Grant("u");
  for (const Outcome& outcome : outcomes) EXPECT_EQ(Value(outcome), "Bearer u");
  // Who had the old one gets the new one; the new one is no worse than another would be.
  EXPECT_EQ(Value(Ask(Hub("a"), kChallenge, "Bearer t")), "Bearer u");
  const core::Error refused = Failure(Ask(Hub("a"), kChallenge, "Bearer u"));
  EXPECT_EQ(refused.code, Code::kUnauthorized);
  EXPECT_EQ(refused.challenge, kChallenge);
  EXPECT_EQ(refused.http_status, 401);
  EXPECT_EQ(http_.started(), 2U);
}

TEST_F(RegistryTokensTest, TwoClientsCredentialsAreKeptApart) {
  const std::string one = BasicAuthorization("one", "p"), two = BasicAuthorization("two", "p");
  const Outcome for_one = Ask(Hub("a", one), kChallenge, one);
  const Outcome for_two = Ask(Hub("a", two), kChallenge, two);
  const Outcome for_none = Ask(Hub("a"));
  ASSERT_EQ(http_.started(), 3U);
  EXPECT_EQ(http_.all()[0]->request().authorization, one);
  EXPECT_EQ(http_.all()[1]->request().authorization, two);
  EXPECT_EQ(http_.all()[2]->request().authorization, "");
  Grant("t1");
  Grant("t2");
  Grant("t0");
  EXPECT_EQ(Value(for_one), "Bearer t1");
  EXPECT_EQ(Value(for_two), "Bearer t2");
  EXPECT_EQ(Value(for_none), "Bearer t0");
  EXPECT_EQ(tokens_->Known(Hub("a", one)), "Bearer t1");
  EXPECT_EQ(tokens_->Known(Hub("a", two)), "Bearer t2");
  EXPECT_EQ(tokens_->Known(Hub("a")), "Bearer t0");
  const std::string three = BasicAuthorization("three", "p");
  EXPECT_EQ(tokens_->Known(Hub("a", three)), three);
}

TEST_F(RegistryTokensTest, AClientsTokenIsItsOwnAffair) {
  Make({}, R"({"docker.io": {"username": "me", "password": "pw"}})");
  const RegistryRequest request = Hub("a", "Bearer own");
  EXPECT_EQ(tokens_->Known(request), "Bearer own");
  const core::Error error = Failure(Ask(request, kChallenge, "Bearer own"));
  EXPECT_EQ(error.code, Code::kUnauthorized);
  EXPECT_EQ(error.challenge, kChallenge);
  EXPECT_EQ(http_.started(), 0U);
}

TEST_F(RegistryTokensTest, TheOperatorsLoginWhereTheClientHasNone) {
  Make({}, R"({"docker.io": {"username": "me", "password": "pw"}})");
  EXPECT_TRUE(tokens_->HasLogin(Hub("a").registry));
  EXPECT_FALSE(tokens_->HasLogin(To("https://h", "a").registry));
  const std::string client = BasicAuthorization("one", "p");
  Ask(Hub("a"));
  Ask(Hub("a", client), kChallenge, client);
  Ask(To("https://h", "a"));
  ASSERT_EQ(http_.started(), 3U);
  EXPECT_EQ(http_.all()[0]->request().authorization, BasicAuthorization("me", "pw"));
  EXPECT_EQ(http_.all()[1]->request().authorization, client);
  EXPECT_EQ(http_.all()[2]->request().authorization, "");
}

TEST_F(RegistryTokensTest, AForeignRealmGetsNoCredential) {
  const std::string foreign = R"(Bearer realm="https://evil.example/token",service="s")";
  const std::string client = BasicAuthorization("one", "p");
  Make({}, R"({"h": {"username": "me", "password": "pw"}})");
  Ask(To("https://h", "a"), foreign);
  Ask(To("https://h", "a", client), foreign, client);
  ASSERT_EQ(http_.started(), 2U);
  for (const auto& call : http_.all()) {
    EXPECT_EQ(call->request().authorization, "");
    for (const auto& header : call->request().headers) EXPECT_EQ(header.name, "Accept");
    EXPECT_EQ(call->request().url.find("me"), std::string::npos);
  }
}

TEST_F(RegistryTokensTest, ARealmThatTheOperatorTrustsGetsIt) {
  RegistryTokensOptions options;
  options.trusted_realms = {ParseTrustedRealm("h=sso.example").value()};
  Make(std::move(options), R"({"h": {"username": "me", "password": "pw"}})");
  Ask(To("https://h", "a"), R"(Bearer realm="https://sso.example/token")");
  EXPECT_EQ(http_.Take()->request().authorization, BasicAuthorization("me", "pw"));
}

TEST_F(RegistryTokensTest, ARealmWithoutTlsIsNotAsked) {
  const Outcome outcome = Ask(To("https://h", "a"), R"(Bearer realm="http://h/token")");
  EXPECT_EQ(Failure(outcome).code, Code::kRefused);
  EXPECT_EQ(http_.started(), 0U);
  Ask(To("http://h", "a"), R"(Bearer realm="http://h/token")");
  EXPECT_EQ(http_.started(), 1U);
}

TEST_F(RegistryTokensTest, BasicIsAnsweredWithTheLoginAndRemembered) {
  Make({}, R"({"h": {"username": "me", "password": "pw"}})");
  const std::string login = BasicAuthorization("me", "pw");
  const std::string challenge = R"(Basic realm="x")";
  EXPECT_EQ(tokens_->Known(To("https://h", "a")), "");
  EXPECT_EQ(Value(Ask(To("https://h", "a"), challenge)), login);
  EXPECT_EQ(tokens_->Known(To("https://h", "a")), login);
  EXPECT_EQ(Failure(Ask(To("https://h", "a"), challenge, login)).challenge, challenge);
  EXPECT_EQ(Failure(Ask(To("https://i", "a"), challenge)).code, Code::kUnauthorized);
  const std::string client = BasicAuthorization("one", "p");
  EXPECT_EQ(Failure(Ask(To("https://h", "a", client), challenge, client)).code,
            Code::kUnauthorized);
  EXPECT_EQ(http_.started(), 0U);
}

TEST_F(RegistryTokensTest, AChangedLoginHasItsOwnTokens) {
  Make({}, R"({"docker.io": {"username": "me", "password": "pw"}})");
  Ask(Hub("a"));
  Grant("t");
  EXPECT_EQ(tokens_->Known(Hub("a")), "Bearer t");
  tokens_->SetLogins(RegistryLogins());
  EXPECT_EQ(tokens_->Known(Hub("a")), "");
}

TEST_F(RegistryTokensTest, AChallengeThatNobodyCanMeet) {
  for (const char* challenge : {"", "Negotiate", "Bearer service=\"x\"", "Bearer realm=\"x"}) {
    const core::Error error = Failure(Ask(Hub("a"), challenge));
    EXPECT_EQ(error.code, Code::kUnauthorized) << challenge;
    EXPECT_EQ(error.challenge, challenge);
  }
  EXPECT_EQ(http_.started(), 0U);
}

TEST_F(RegistryTokensTest, AFailureIsRememberedForASecond) {
  const Outcome outcome = Ask(Hub("a"));
  http_.Take()->Done(MakeError(Code::kUnavailable, "reset"));
  EXPECT_EQ(Failure(outcome).code, Code::kUnavailable);
  scheduler_.Advance(milliseconds(999));
  EXPECT_EQ(Failure(Ask(Hub("a"))).code, Code::kUnavailable);
  EXPECT_EQ(http_.started(), 1U);
  scheduler_.Advance(milliseconds(1));
  const Outcome again = Ask(Hub("a"));
  EXPECT_EQ(http_.started(), 2U);
  Grant("t");
  EXPECT_EQ(Value(again), "Bearer t");
  EXPECT_EQ(tokens_->Stats().failures, 1U);
}

TEST_F(RegistryTokensTest, TheExchangeHasADeadline) {
  const Outcome outcome = Ask(Hub("a"));
  auto call = http_.Take();
  EXPECT_EQ(call->request().deadline, scheduler_.clock().Now() + seconds(15));
  call->Done(MakeError(Code::kDeadlineExceeded, "too slow"));
  EXPECT_EQ(Failure(outcome).code, Code::kDeadlineExceeded);
}

TEST_F(RegistryTokensTest, WhatTheServiceAnswers) {
  struct Row {
    int status;
    Code code;
  };
  const Row rows[] = {{401, Code::kUnauthorized},    {403, Code::kUnauthorized},
                      {404, Code::kBadResponse},     {410, Code::kBadResponse},
                      {400, Code::kBadResponse},     {204, Code::kBadResponse},
                      {429, Code::kTooManyRequests}, {500, Code::kUnavailable}};
  for (const Row& row : rows) {
    const Outcome outcome = Ask(Hub("a"));
    http_.Take()->Head(row.status, {{"WWW-Authenticate", "Basic realm=\"of the service\""}});
    const core::Error error = Failure(outcome);
    EXPECT_EQ(error.code, row.code) << row.status;
    EXPECT_EQ(error.challenge, row.code == Code::kUnauthorized ? kChallenge : "") << row.status;
    EXPECT_NE(error.context.find("auth.docker.io"), std::string::npos);
    EXPECT_EQ(error.context.find("scope"), std::string::npos);
    scheduler_.Advance(seconds(2));
  }
}

TEST_F(RegistryTokensTest, AnswersThatAreNoTokens) {
  for (const std::string& body : {std::string("{}"), std::string("<html>"),
                                  std::string(R"({"token": "a\nb"})"), std::string()}) {
    const Outcome outcome = Ask(Hub("a"));
    auto call = http_.Take();
    call->Head(200, {});
    if (!body.empty()) call->Body(body);
    call->Done();
    EXPECT_EQ(Failure(outcome).code, Code::kBadResponse) << body;
    scheduler_.Advance(seconds(2));
  }
}

TEST_F(RegistryTokensTest, AnAnswerWithoutEndIsCutOff) {
  const Outcome outcome = Ask(Hub("a"));
  auto call = http_.Take();
  call->Head(200, {});
  for (int i = 0; i < 16; ++i) call->Body(std::string(4096, ' '));
  EXPECT_FALSE(call->done());
  call->Body(" ");
  EXPECT_TRUE(call->done());
  EXPECT_EQ(Failure(outcome).code, Code::kBadResponse);
}

TEST_F(RegistryTokensTest, TheTableIsBounded) {
  RegistryTokensOptions options;
  options.max_tokens = 2;
  options.max_waiters = 2;
  Make(std::move(options));
  Ask(Hub("a"));
  Ask(Hub("b"));
  EXPECT_EQ(Failure(Ask(Hub("c"))).code, Code::kBusy);
  Ask(Hub("a"));
  EXPECT_EQ(Failure(Ask(Hub("a"))).code, Code::kBusy);
  EXPECT_EQ(tokens_->Stats().refused, 2U);
  Grant("ta");
  Grant("tb");
  // The one that was used less recently makes room.
  EXPECT_EQ(tokens_->Known(Hub("a")), "Bearer ta");
  Ask(Hub("c"));
  Grant("tc");
  EXPECT_EQ(tokens_->Known(Hub("a")), "Bearer ta");
  EXPECT_EQ(tokens_->Known(Hub("b")), "");
  EXPECT_EQ(tokens_->Known(Hub("c")), "Bearer tc");
  EXPECT_EQ(tokens_->Stats().tokens, 2U);
}

TEST_F(RegistryTokensTest, OutlivedByItsExchanges) {
  const Outcome outcome = Ask(Hub("a"));
  tokens_.reset();
  Grant("t");
  EXPECT_EQ(Value(outcome), "Bearer t");
}

TEST_F(RegistryTokensTest, AStoppedClientAnswersAll) {
  const Outcome outcome = Ask(Hub("a"));
  http_.Stop();
  EXPECT_EQ(Failure(outcome).code, Code::kCancelled);
}

}  // namespace
}  // namespace dartfs::httpd
