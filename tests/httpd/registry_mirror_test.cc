// The mirror before a whole engine, with a registry that wants a login.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "httpd/door_fixture.h"
#include "httpd/registry_handler.h"

namespace dartfs::httpd {
namespace {

using core::Pattern;
using origin::Fault;
using origin::Fetch;

class RegistryMirrorTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    bytes_ = Pattern(9 * kBlock + 5, 1);
    path_ = "/v2/team/app/blobs/sha256:" + core::HexDigestOf("sha256", bytes_);
    origin().AddFile(path_, bytes_);
    service_options_.doors.registry = true;
  }
  void TearDown() override {
    DoorTest::TearDown();
    handler_.reset();
    tokens_.reset();
  }

  void Mirror(const std::string& password = "pw") {
    const std::string logins =
        "{\"" + origin().authority() + R"(": {"username": "me", "password": ")" + password + "\"}}";
    tokens_ = std::make_unique<RegistryTokens>(*http_, *scheduler_,
                                               RegistryLogins::Parse(logins, "logins").value());
    RegistryHandlerOptions options;
    options.upstreams.registry = ParseRegistryUrl(origin().Url()).value();
    handler_ = std::make_unique<RegistryHandler>(*engine_, *tokens_, WaysOf(*engine_), options);
    registry_ = handler_.get();
  }
  // Blocks from there on are for those alone who have the login.
  void Guard(uint64_t min_offset) {
    origin().AddFault(
        {.fault = Fault::kAuth, .path = "/v2/*", .min_offset = min_offset, .credential = "me:pw"});
  }

  std::string bytes_, path_;
  std::unique_ptr<RegistryTokens> tokens_;
  std::unique_ptr<RegistryHandler> handler_;
};

TEST_F(RegistryMirrorTest, TheOperatorsLoginOpensABlob) {
  Guard(0);
  Mirror();
  const RawResponse answer = Fetch(port(), "GET", path_);
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body == bytes_);
  const RawResponse head = Fetch(port(), "HEAD", path_);
  EXPECT_EQ(head.Header("Content-Length"), std::to_string(bytes_.size()));
}

TEST_F(RegistryMirrorTest, AWrongLoginIsARefusal) {
  Guard(0);
  Mirror("wrong");
  const RawResponse answer = Fetch(port(), "GET", path_);
  EXPECT_EQ(answer.status, 401);
  EXPECT_TRUE(answer.Header("WWW-Authenticate").starts_with("Basic "));
  EXPECT_NE(answer.body.find("UNAUTHORIZED"), std::string::npos);
}

TEST_F(RegistryMirrorTest, ALoginThatIsNeededInTheMiddleOfABlob) {
  Guard(5 * kBlock);
  Mirror();
  const RawResponse answer = Fetch(port(), "GET", path_);
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body == bytes_);
}

TEST_F(RegistryMirrorTest, ALoginThatIsNeededForTheFirstByteOfAKnownBlob) {
  Mirror();
  EXPECT_EQ(Fetch(port(), "HEAD", path_).status, 200);
  Guard(0);
  const RawResponse answer = Fetch(port(), "GET", path_, "Range: bytes=70000-200000\r\n");
  EXPECT_EQ(answer.status, 206);
  EXPECT_TRUE(answer.body == bytes_.substr(70000, 130001));
}

TEST_F(RegistryMirrorTest, ABlobsFirstErrorHasTheRegistriesForm) {
  Mirror("wrong");
  EXPECT_EQ(Fetch(port(), "HEAD", path_).status, 200);
  Guard(0);
  const RawResponse answer = Fetch(port(), "GET", path_);
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.Header("Content-Type"), "application/json");
  EXPECT_NE(answer.body.find("\"UNAUTHORIZED\""), std::string::npos) << answer.body;
}

TEST_F(RegistryMirrorTest, WithoutALoginABodyEndsWhereItIsRefused) {
  Guard(5 * kBlock);
  Mirror("wrong");
  const RawResponse answer = Fetch(port(), "GET", path_);
  EXPECT_EQ(answer.status, 200);
  EXPECT_LT(answer.body.size(), bytes_.size());
  EXPECT_TRUE(answer.body == bytes_.substr(0, answer.body.size()));
}

TEST_F(RegistryMirrorTest, SeveralPartsGoOnAfterARefusal) {
  Guard(5 * kBlock);
  Mirror();
  const RawResponse answer = Fetch(port(), "GET", path_,
                                   "Range: bytes=0-9," + std::to_string(6 * kBlock) + "-" +
                                       std::to_string(6 * kBlock + 9) + "\r\n");
  EXPECT_EQ(answer.status, 206);
  EXPECT_NE(answer.body.find(bytes_.substr(0, 10)), std::string::npos);
  EXPECT_NE(answer.body.find(bytes_.substr(6 * kBlock, 10)), std::string::npos);
}

TEST_F(RegistryMirrorTest, ManifestsAreAskedForEachTime) {
  origin().AddFile("/v2/team/app/manifests/latest", "{}");
  Guard(0);
  Mirror();
  for (int i = 0; i < 2; ++i) {
    const RawResponse answer = Fetch(port(), "GET", "/v2/team/app/manifests/latest");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "{}");
    EXPECT_EQ(answer.Header("X-Cache"), "PASS");
  }
  // One refusal: then it is known what the registry wants.
  EXPECT_EQ(origin().StatsOf("/v2/team/app/manifests/latest").requests, 3u);
}

}  // namespace
}  // namespace dartfs::httpd
