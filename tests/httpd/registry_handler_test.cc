#include "httpd/registry_handler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/credentials.h"
#include "fake/captured_exchange.h"
#include "fake/fake_engine.h"
#include "fake/fake_http_client.h"
#include "fake/manual_scheduler.h"

namespace dartfs::httpd {
namespace {

using core::BasicAuthorization;
using core::Code;
using core::Error;
using core::MakeError;
using std::chrono::seconds;

const std::string kDigest =
    "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kBlob = "/v2/team/app/blobs/" + kDigest;
const std::string kBlobUrl = "https://r.example" + kBlob;
const std::string kManifest = "/v2/team/app/manifests/latest";
const std::string kChallenge = R"(Bearer realm="https://r.example/token",service="r")";
const std::string kLogin = R"({"r.example": {"username": "me", "password": "pw"}})";

Error Refusal(const std::string& challenge = kChallenge) {
  Error error = MakeError(Code::kUnauthorized, "GET https://r.example/x: the origin answered 401");
  error.http_status = 401;
  error.challenge = challenge;
  return error;
}

class RegistryHandlerTest : public testing::Test {
 protected:
  struct Served {
    ExchangePtr exchange;
    std::shared_ptr<core::Object> object;
    std::shared_ptr<const core::Requester> requester;
    Reauthorize reauthorize;
  };

  void SetUp() override { Make("{}"); }
  void TearDown() override {
    http_.Stop();
    scheduler_.RunReady();
  }

  void Make(const std::string& logins) {
    handler_.reset();
    tokens_ = std::make_unique<RegistryTokens>(http_, scheduler_,
                                               RegistryLogins::Parse(logins, "logins").value());
    RegistryWays ways;
    ways.serve = [this](ExchangePtr exchange, std::shared_ptr<core::Object> object,
                        std::shared_ptr<const core::Requester> requester, Reauthorize again) {
      served_ = {std::move(exchange), std::move(object), std::move(requester), std::move(again)};
      ResponseHead head;
      head.Add("X-Served", "yes");
      served_.exchange->Respond(std::move(head));
    };
    ways.relay = [this](ExchangePtr exchange, core::HttpRequest request, RelayOptions options) {
      RelayCall(http_, std::move(exchange), std::move(request), std::move(options));
    };
    RegistryHandlerOptions options;
    options.upstreams.registry = ParseRegistryUrl("https://r.example").value();
    options.upstreams.allowed = {ParseRegistryPattern("docker.io").value()};
    handler_ = std::make_unique<RegistryHandler>(engine_, *tokens_, std::move(ways), options);
  }
  void Handle(CapturedExchange& client) {
    handler_->Handle(client.Take());
    scheduler_.RunReady();
  }
  // The next call must be one for a token; answers it.
  std::string Grant(const std::string& token) {
    auto call = http_.Take();
    EXPECT_TRUE(call->request().url.starts_with("https://r.example/token?")) << call->request().url;
    call->Head(200, {});
    call->Body(R"({"token": ")" + token + "\"}");
    call->Done();
    scheduler_.RunReady();
    return call->request().authorization;
  }
  void Refuse(core::FakeHttpClient::Call& call, const std::string& challenge = kChallenge) {
    call.Head(401, {{"WWW-Authenticate", challenge}, {"Content-Length", "3"}});
    call.Body("no!");
    call.Done();
    scheduler_.RunReady();
  }

  core::ManualScheduler scheduler_;
  core::FakeHttpClient http_{&scheduler_};
  core::FakeEngine engine_{http_, scheduler_};
  std::unique_ptr<RegistryTokens> tokens_;
  std::unique_ptr<RegistryHandler> handler_;
  Served served_;
};

TEST_F(RegistryHandlerTest, ABlobIsServedFromTheCache) {
  engine_.AddFile(kBlobUrl, {.size = 7});
  CapturedExchange client("GET", kBlob);
  Handle(client);
  EXPECT_EQ(client.Header("X-Served"), "yes");
  EXPECT_EQ(served_.object->size(), 7U);
  EXPECT_EQ(served_.requester->url.ToString(), kBlobUrl);
  EXPECT_EQ(served_.requester->authorization, "");
  EXPECT_EQ(engine_.last_options().deadline, scheduler_.clock().Now() + seconds(60));
  EXPECT_EQ(http_.started(), 0U);
}

TEST_F(RegistryHandlerTest, AKnownBlobIsServedAtOnce) {
  engine_.AddFile(kBlobUrl, {.size = 7, .cached = true});
  CapturedExchange client("GET", kBlob);
  handler_->Handle(client.Take());
  EXPECT_EQ(client.Header("X-Served"), "yes");
  EXPECT_EQ(engine_.opens(), 0U);
}

TEST_F(RegistryHandlerTest, TheRegistryThatTheClientNames) {
  engine_.AddFile("https://registry-1.docker.io" + kBlob + "?x=%2f", {.size = 7});
  CapturedExchange client("HEAD", kBlob + "?ns=docker.io&x=%2f");
  Handle(client);
  EXPECT_EQ(client.Header("X-Served"), "yes");
  CapturedExchange other("GET", kBlob + "?ns=quay.io");
  Handle(other);
  EXPECT_EQ(other.status(), 403);
  EXPECT_NE(other.ReadBody().find("\"DENIED\""), std::string::npos);
}

TEST_F(RegistryHandlerTest, ABlobOpensWithATokenAfterTheChallenge) {
  Make(kLogin);
  engine_.Fail(kBlobUrl, Refusal());
  CapturedExchange client("GET", kBlob);
  Handle(client);
  EXPECT_FALSE(client.answered());
  engine_.AddFile(kBlobUrl, {.size = 7});
  EXPECT_EQ(Grant("t"), BasicAuthorization("me", "pw"));
  EXPECT_EQ(client.Header("X-Served"), "yes");
  EXPECT_EQ(engine_.last_options().authorization, "Bearer t");
  EXPECT_EQ(served_.requester->authorization, "Bearer t");
  EXPECT_EQ(engine_.Opens(kBlobUrl), 2U);
  // The next one has it at once.
  CapturedExchange next("GET", kBlob);
  Handle(next);
  EXPECT_EQ(served_.requester->authorization, "Bearer t");
  EXPECT_EQ(engine_.Opens(kBlobUrl), 3U);
}

TEST_F(RegistryHandlerTest, ABlobThatStaysRefusedIsTheClientsAffair) {
  engine_.Fail(kBlobUrl, Refusal());
  CapturedExchange client("GET", kBlob);
  Handle(client);
  Grant("t");
  EXPECT_EQ(client.status(), 401);
  EXPECT_EQ(client.Header("WWW-Authenticate"), kChallenge);
  EXPECT_EQ(client.Header("Content-Type"), "application/json");
  EXPECT_NE(client.ReadBody().find("\"UNAUTHORIZED\""), std::string::npos);
  EXPECT_EQ(engine_.Opens(kBlobUrl), 2U);
}

TEST_F(RegistryHandlerTest, ARefusedTokenIsRenewedOnceForABlob) {
  engine_.Fail(kBlobUrl, Refusal());
  CapturedExchange first("GET", kBlob);
  Handle(first);
  Grant("t");
  scheduler_.Advance(seconds(10));
  CapturedExchange client("GET", kBlob);
  Handle(client);
  EXPECT_EQ(engine_.last_options().authorization, "Bearer t");
  Grant("u");
  EXPECT_EQ(engine_.last_options().authorization, "Bearer u");
  EXPECT_EQ(client.status(), 401);
  EXPECT_EQ(http_.started(), 2U);
}

TEST_F(RegistryHandlerTest, BlocksThatNeedAnotherTokenGetOne) {
  engine_.AddFile(kBlobUrl, {.size = 7});
  CapturedExchange client("GET", kBlob);
  Handle(client);
  std::optional<core::Result<std::string>> renewed;
  served_.reauthorize(Refusal(), "", [&](core::Result<std::string> value) { renewed = value; });
  EXPECT_FALSE(renewed.has_value());
  Grant("t");
  ASSERT_TRUE(renewed.has_value());
  EXPECT_EQ(**renewed, "Bearer t");
}

TEST_F(RegistryHandlerTest, ErrorsOfBlobs) {
  struct Row {
    Code code;
    int status;
    const char* says;
  };
  const Row rows[] = {
      {Code::kNotFound, 404, "BLOB_UNKNOWN"}, {Code::kGone, 410, "BLOB_UNKNOWN"},
      {Code::kForbidden, 403, "DENIED"},      {Code::kTooManyRequests, 429, "TOOMANYREQUESTS"},
      {Code::kUnavailable, 502, "UNKNOWN"},   {Code::kDeadlineExceeded, 504, "UNKNOWN"}};
  for (const Row& row : rows) {
    engine_.Fail(kBlobUrl, row.code);
    CapturedExchange client("GET", kBlob);
    Handle(client);
    EXPECT_EQ(client.status(), row.status);
    EXPECT_EQ(client.Header("Content-Type"), "application/json");
    EXPECT_EQ(client.Header("Retry-After"), row.status == 429 ? "1" : "");
    EXPECT_EQ(client.ReadBody(), std::string(R"({"errors":[{"code":")") + row.says +
                                     R"(","message":"scripted: )" + kBlobUrl + "\"}]}\n");
  }
}

TEST_F(RegistryHandlerTest, ABlobThatTheCacheCannotHoldIsHandedOn) {
  engine_.Fail(kBlobUrl, Code::kTooLarge);
  CapturedExchange client("GET", kBlob);
  client.AddHeader("Range", "bytes=1-2");
  Handle(client);
  auto call = http_.Take();
  EXPECT_EQ(call->request().url, kBlobUrl);
  EXPECT_EQ(call->Header("Range"), "bytes=1-2");
  EXPECT_EQ(call->request().deadline, core::kNoDeadline);
  call->Head(200, {{"Content-Length", "4"}});
  call->Body("blob");
  call->Done();
  EXPECT_EQ(client.status(), 200);
  EXPECT_EQ(client.ReadBody(), "blob");
}

TEST_F(RegistryHandlerTest, ABlobOfAnUnknownAlgorithmIsHandedOn) {
  CapturedExchange client("GET", "/v2/a/blobs/blake3:abc");
  Handle(client);
  EXPECT_EQ(http_.Take()->request().url, "https://r.example/v2/a/blobs/blake3:abc");
  EXPECT_EQ(engine_.opens(), 0U);
}

TEST_F(RegistryHandlerTest, AManifestIsAskedForEachTime) {
  for (const char* method : {"GET", "HEAD"}) {
    CapturedExchange client(method, kManifest + "?ns=r.example");
    client.AddHeader("Accept", "application/vnd.oci.image.index.v1+json");
    client.AddHeader("Accept", "*/*");
    client.AddHeader("Cookie", "secret");
    client.AddHeader("X-Custom", "secret");
    client.AddHeader("Accept-Encoding", "gzip");
    client.AddHeader("If-None-Match", "\"e\"");
    Handle(client);
    auto call = http_.Take();
    EXPECT_EQ(call->request().url, "https://r.example" + kManifest);
    EXPECT_EQ(call->request().method, method);
    EXPECT_EQ(call->Header("Accept"), "application/vnd.oci.image.index.v1+json, */*");
    EXPECT_EQ(call->Header("If-None-Match"), "\"e\"");
    for (const char* name : {"Cookie", "X-Custom", "Accept-Encoding", "Authorization"}) {
      EXPECT_EQ(call->Header(name), "") << name;
    }
    EXPECT_EQ(call->request().deadline, scheduler_.clock().Now() + seconds(60));
    call->Head(200, {{"Content-Type", "application/vnd.oci.image.index.v1+json"},
                     {"Docker-Content-Digest", kDigest},
                     {"Content-Length", "2"},
                     {"Set-Cookie", "secret"}});
    if (std::string_view(method) == "GET") {
      call->Body("{}");
      call->Done();
    }
    EXPECT_EQ(client.status(), 200);
    EXPECT_EQ(client.Header("Content-Type"), "application/vnd.oci.image.index.v1+json");
    EXPECT_EQ(client.Header("Docker-Content-Digest"), kDigest);
    EXPECT_EQ(client.head().content_length, 2U);
    EXPECT_EQ(client.head().framing, Framing::kLength);
    EXPECT_EQ(client.Header("X-Cache"), "PASS");
    EXPECT_EQ(client.Header("Via"), "1.1 dartfs");
    EXPECT_EQ(client.Header("Set-Cookie"), "");
    EXPECT_EQ(client.ReadBody(), std::string_view(method) == "GET" ? "{}" : "");
  }
  EXPECT_EQ(engine_.opens(), 0U);
}

TEST_F(RegistryHandlerTest, AManifestAfterTheChallenge) {
  CapturedExchange client("HEAD", kManifest);
  Handle(client);
  auto call = http_.Take();
  Refuse(*call);
  EXPECT_FALSE(client.answered());
  EXPECT_EQ(Grant("t"), "");
  auto again = http_.Take();
  EXPECT_EQ(again->request().authorization, "Bearer t");
  EXPECT_EQ(again->request().method, "HEAD");
  again->Head(200, {{"Content-Length", "9"}});
  EXPECT_EQ(client.status(), 200);
  EXPECT_EQ(client.head().content_length, 9U);
}

TEST_F(RegistryHandlerTest, AManifestThatStaysRefused) {
  CapturedExchange client("GET", kManifest);
  Handle(client);
  Refuse(*http_.Take());
  Grant("t");
  Refuse(*http_.Take());
  EXPECT_EQ(client.status(), 401);
  EXPECT_EQ(client.Header("WWW-Authenticate"), kChallenge);
  EXPECT_EQ(http_.waiting(), 0U);
}

TEST_F(RegistryHandlerTest, RefusalsEndHoweverManyTokensThereAre) {
  CapturedExchange client("GET", kManifest);
  Handle(client);
  for (int i = 0; i < 2; ++i) {
    Refuse(*http_.Take());
    Grant("t" + std::to_string(i));
    scheduler_.Advance(seconds(6));
  }
  Refuse(*http_.Take());
  EXPECT_EQ(client.status(), 401);
  EXPECT_EQ(http_.waiting(), 0U);
}

TEST_F(RegistryHandlerTest, TheClientsOwnTokenPasses) {
  Make(kLogin);
  CapturedExchange client("GET", kManifest);
  client.AddHeader("Authorization", "Bearer own");
  Handle(client);
  auto call = http_.Take();
  EXPECT_EQ(call->request().authorization, "Bearer own");
  Refuse(*call);
  EXPECT_EQ(client.status(), 401);
  EXPECT_EQ(client.Header("WWW-Authenticate"), kChallenge);
  EXPECT_EQ(http_.waiting(), 0U);
}

TEST_F(RegistryHandlerTest, ATokenServiceThatFails) {
  CapturedExchange client("GET", kManifest);
  Handle(client);
  Refuse(*http_.Take());
  http_.Take()->Done(MakeError(Code::kUnavailable, "token service https://r.example/token: reset"));
  scheduler_.RunReady();
  EXPECT_EQ(client.status(), 502);
  EXPECT_NE(client.ReadBody().find("token service"), std::string::npos);
}

TEST_F(RegistryHandlerTest, ARegistryThatFails) {
  CapturedExchange client("GET", kManifest);
  Handle(client);
  http_.Take()->Done(MakeError(Code::kDeadlineExceeded, "r.example \"says\" nothing"));
  EXPECT_EQ(client.status(), 504);
  EXPECT_EQ(client.ReadBody(),
            R"({"errors":[{"code":"UNKNOWN","message":"r.example \"says\" nothing"}]})"
            "\n");
}

TEST_F(RegistryHandlerTest, TheRegistrysOwnErrorsComeAsTheyAre) {
  CapturedExchange client("GET", kManifest);
  Handle(client);
  auto call = http_.Take();
  call->Head(429, {{"Retry-After", "7"}, {"Content-Length", "1"}});
  call->Body("x");
  call->Done();
  EXPECT_EQ(client.status(), 429);
  EXPECT_EQ(client.Header("Retry-After"), "7");
  EXPECT_EQ(client.ReadBody(), "x");
}

TEST_F(RegistryHandlerTest, WhoAsksWhetherALoginIsNeeded) {
  // Without one here the client learns of the challenge: it may have a login of its own.
  CapturedExchange stranger("GET", "/v2/");
  Handle(stranger);
  Refuse(*http_.Take());
  EXPECT_EQ(stranger.status(), 401);
  EXPECT_EQ(stranger.Header("WWW-Authenticate"), kChallenge);
  EXPECT_EQ(http_.waiting(), 0U);

  Make(kLogin);
  CapturedExchange guest("GET", "/v2/");
  Handle(guest);
  Refuse(*http_.Take());
  EXPECT_EQ(Grant("t"), BasicAuthorization("me", "pw"));
  auto call = http_.Take();
  EXPECT_EQ(call->request().authorization, "Bearer t");
  call->Head(200, {{"Docker-Distribution-Api-Version", "registry/2.0"}, {"Content-Length", "2"}});
  call->Body("{}");
  call->Done();
  EXPECT_EQ(guest.status(), 200);
  EXPECT_EQ(guest.Header("Docker-Distribution-Api-Version"), "registry/2.0");
  EXPECT_EQ(guest.ReadBody(), "{}");
}

TEST_F(RegistryHandlerTest, NothingIsWritten) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    CapturedExchange client(method, "/v2/team/app/blobs/uploads/");
    Handle(client);
    EXPECT_EQ(client.status(), 405);
    EXPECT_EQ(client.Header("Allow"), "GET, HEAD");
    EXPECT_NE(client.ReadBody().find("\"UNSUPPORTED\""), std::string::npos);
  }
  EXPECT_EQ(http_.started(), 0U);
}

TEST_F(RegistryHandlerTest, WhatCannotBeMeant) {
  struct Row {
    std::string target;
    const char* code;
  };
  const Row rows[] = {{"/v2/A/manifests/x", "NAME_INVALID"},
                      {"/v2/a/blobs/sha256:1", "DIGEST_INVALID"},
                      {"/v2/a/../b", "NAME_INVALID"},
                      {"/v2/?ns=a/b", "UNSUPPORTED"}};
  for (const Row& row : rows) {
    CapturedExchange client("GET", row.target);
    Handle(client);
    EXPECT_EQ(client.status(), 400);
    EXPECT_NE(client.ReadBody().find(row.code), std::string::npos) << row.target;
  }
  EXPECT_EQ(http_.started(), 0U);
}

}  // namespace
}  // namespace dartfs::httpd
