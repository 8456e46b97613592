// The origin policy on the wire; what a rule means is in origin_policy_test.cc.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "http_fixture.h"
#include "raw_server.h"

namespace dartfs::core {
namespace {

using Connection = RawServer::Connection;

void ServeHi(Connection& c) {
  while (c.ReadRequest()) c.Write(Ok("hi"));
}
std::string PortOf(const RawServer& server) {
  return server.Authority().substr(server.Authority().rfind(':') + 1);
}
std::string LocalhostUrl(const RawServer& server) {
  return "http://localhost:" + PortOf(server) + "/x";
}

class CurlPolicyTest : public HttpClientTest {
 protected:
  static OriginPolicy Policy(const std::vector<std::string>& allow,
                             const std::vector<std::string>& deny) {
    OriginPolicy policy;
    for (const auto& text : allow) policy.allow.push_back(*ParseOriginRule(text));
    for (const auto& text : deny) policy.deny.push_back(*ParseOriginRule(text));
    return policy;
  }
  void MakeWith(OriginPolicy policy, bool proxies = false) {
    HttpClientOptions options = Options();
    options.origin_policy = std::move(policy);
    options.use_environment_proxies = proxies;
    Make(std::move(options));
  }
  void ExpectRefused(const std::string& url, const std::string& option) {
    const SinkPtr sink = Fetch(url);
    EXPECT_EQ(sink->code(), Code::kRefused) << url << ": " << sink->error().context;
    EXPECT_NE(sink->error().context.find(option), std::string::npos) << sink->error().context;
  }
};

TEST_F(CurlPolicyTest, HostsAreJudgedBeforeAConnection) {
  RawServer server(ServeHi);
  MakeWith(Policy({}, {"localhost"}));
  ExpectRefused(LocalhostUrl(server),
                "localhost:" + PortOf(server) + " is denied by --origin-deny");
  EXPECT_TRUE(Fetch(server.Url("/x"))->ok());
  MakeWith(Policy({"other.example"}, {}));
  ExpectRefused(LocalhostUrl(server), "--origin-allow");
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(CurlPolicyTest, NamesAreJudgedByTheAddressConnectedTo) {
  RawServer server(ServeHi);
  MakeWith(Policy({}, {"127.0.0.0/8", "::1"}));
  ExpectRefused(LocalhostUrl(server), "--origin-deny");
  MakeWith(Policy({"192.0.2.0/24"}, {}));
  ExpectRefused(LocalhostUrl(server), "--origin-allow");
  EXPECT_EQ(server.connections(), 0U);
  MakeWith(Policy({"127.0.0.0/8:" + PortOf(server), "192.0.2.1"}, {}));
  const SinkPtr sink = Fetch(LocalhostUrl(server));
  EXPECT_TRUE(sink->ok()) << sink->error().context;
}

TEST_F(CurlPolicyTest, EveryRedirectIsJudged) {
  RawServer target(ServeHi);
  RawServer first([&](Connection& c) {
    while (c.ReadRequest()) {
      c.Write("HTTP/1.1 302 x\r\nContent-Length: 0\r\nLocation: " + target.Url("/secret?s") +
              "\r\n\r\n");
    }
  });
  MakeWith(Policy({}, {"127.0.0.1:" + PortOf(target)}));
  ExpectRefused(first.Url("/x"), "--origin-deny");
  EXPECT_EQ(first.connections(), 1U);
  MakeWith(Policy({"127.0.0.1:" + PortOf(first)}, {}));
  ExpectRefused(first.Url("/x"), "--origin-allow");
  EXPECT_EQ(target.connections(), 0U);
}

TEST_F(CurlPolicyTest, ANewPolicyHoldsForKeptConnectionsToo) {
  RawServer server(ServeHi);
  MakeWith({});
  ASSERT_TRUE(Fetch(LocalhostUrl(server))->ok());
  client().SetOriginPolicy(Policy({}, {"127.0.0.0/8", "::1"}));
  ExpectRefused(LocalhostUrl(server), "--origin-deny");
  EXPECT_EQ(server.requests().size(), 1U);
  client().SetOriginPolicy({});
  EXPECT_TRUE(Fetch(LocalhostUrl(server))->ok());
}

TEST_F(CurlPolicyTest, ARuleForAddressesLiftsADefaultRefusal) {
  MakeWith({});
  ExpectRefused("http://169.254.1.1:1/x", "--allow-link-local");
  client().SetOriginPolicy(Policy({"169.254.1.0/24"}, {}));
  HttpRequest request = Get("http://169.254.1.1:1/x");
  request.deadline = RealClock().Now() + std::chrono::milliseconds(300);
  EXPECT_NE(Fetch(request)->code(), Code::kRefused);
}

TEST_F(CurlPolicyTest, ThroughAProxyAnUntrustedUrlMustBeNamed) {
  RawServer proxy(ServeHi);
  setenv("http_proxy", proxy.Authority().c_str(), 1);
  setenv("no_proxy", "127.0.0.1", 1);
  RawServer direct(ServeHi);
  const auto untrusted = [](const std::string& url) {
    HttpRequest request = Get(url);
    request.untrusted_url = true;
    return request;
  };
  MakeWith({}, true);
  const SinkPtr trusted = Fetch("http://origin.invalid/x");
  const SinkPtr refused = Fetch(untrusted("http://origin.invalid/x"));
  const SinkPtr excepted = Fetch(untrusted(direct.Url("/x")));
  client().SetOriginPolicy(Policy({"origin.invalid"}, {}));
  const SinkPtr named = Fetch(untrusted("http://origin.invalid/x"));
  const SinkPtr other = Fetch("http://other.invalid/x");
  unsetenv("http_proxy");
  unsetenv("no_proxy");
  EXPECT_TRUE(trusted->ok()) << "what the operator mounts needs no rule";
  EXPECT_EQ(refused->code(), Code::kRefused);
  for (const char* way : {"--origin-allow", "no_proxy"}) {
    EXPECT_NE(refused->error().context.find(way), std::string::npos) << refused->error().context;
  }
  EXPECT_TRUE(excepted->ok()) << excepted->error().context;
  EXPECT_TRUE(named->ok()) << named->error().context;
  EXPECT_EQ(other->code(), Code::kRefused) << other->error().context;
  EXPECT_EQ(proxy.requests().size(), 2U);
}

}  // namespace
}  // namespace dartfs::core
