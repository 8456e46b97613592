#include "core/io/origin_policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dartfs::core {
namespace {

std::vector<OriginRule> Rules(const std::vector<std::string>& texts) {
  std::vector<OriginRule> rules;
  for (const std::string& text : texts) {
    auto rule = ParseOriginRule(text);
    EXPECT_TRUE(rule) << text;
    if (rule) rules.push_back(std::move(*rule));
  }
  return rules;
}
OriginPolicy Policy(const std::vector<std::string>& allow, const std::vector<std::string>& deny) {
  OriginPolicy policy;
  policy.allow = Rules(allow);
  policy.deny = Rules(deny);
  return policy;
}
Url U(const std::string& host_port) { return *ParseUrl("http://" + host_port + "/"); }
IpAddress Ip(const std::string& text) { return *ParseIpLiteral(text); }
bool Ok(const Status& status) {
  if (!status) {
    EXPECT_EQ(status.error().code, Code::kRefused);
  }
  return status.has_value();
}

TEST(OriginRule, Forms) {
  struct Row {
    const char* text;
    const char* host;
    int prefix_bits;  // 0: a host
    int port;         // 0: any
  };
  const Row rows[] = {
      {"h.example", "h.example", 0, 0},
      {"H.Example.", "h.example", 0, 0},
      {"*.example", "*.example", 0, 0},
      {"localhost:8080", "localhost", 0, 8080},
      {"*.example:443", "*.example", 0, 443},
      {"*:22", "", 0, 22},
      {"10.0.0.0/8", "", 104, 0},
      {"10.1.2.3", "", 128, 0},
      {"10.1.2.3:80", "", 128, 80},
      {"10.0.0.0/8:80", "", 104, 80},
      {"fd00::/8", "", 8, 0},
      {"::1", "", 128, 0},
      {"[fd00::/8]", "", 8, 0},
      {"[fd00::/8]:443", "", 8, 443},
      {"[::1]:443", "", 128, 443},
      {"0x7f.1", "", 128, 0},
  };
  for (const Row& row : rows) {
    const auto rule = ParseOriginRule(row.text);
    ASSERT_TRUE(rule) << row.text << ": " << rule.error().context;
    EXPECT_EQ(rule->host, row.host) << row.text;
    EXPECT_EQ(rule->addresses ? rule->addresses->prefix_bits : 0, row.prefix_bits) << row.text;
    EXPECT_EQ(rule->port.value_or(0), row.port) << row.text;
  }
}

TEST(OriginRule, WhatIsNone) {
  for (const char* text :
       {"",        "*",        "*.",     "*.*.example", "a.*",  "h:",     "h:0",    "h:65536",
        "h:80:90", "http://h", "h/path", "10.0.0.0/33", "[::1", "[::1]x", "[::1]:", "[h]:80",
        "a b",     "-..x",     "h:8o",   "fd00::/129",  "a\nb", ":80",    "user@h", "fd00::/8:80",
        "."}) {
    const auto rule = ParseOriginRule(text);
    ASSERT_FALSE(rule) << text;
    EXPECT_EQ(rule.error().code, Code::kInvalidArgument);
  }
  EXPECT_FALSE(ParseOriginRule(std::string(600, 'a')));
}

TEST(OriginPolicy, WithoutRulesOnlyTheDefaults) {
  const OriginPolicy policy;
  EXPECT_TRUE(Ok(policy.CheckUrl(U("h.example"))));
  EXPECT_TRUE(Ok(policy.CheckAddress(U("h.example"), Ip("10.0.0.1"))));
  EXPECT_FALSE(Ok(policy.CheckAddress(U("h.example"), Ip("169.254.169.254"))));
  EXPECT_FALSE(Ok(policy.CheckUrl(U("169.254.169.254"))));
  EXPECT_FALSE(Ok(policy.CheckUrl(U("2852039166"))));
  EXPECT_TRUE(Ok(policy.CheckUrlByProxy(U("h.example"), false)));
  EXPECT_FALSE(Ok(policy.CheckProxyAddress(Ip("169.254.169.254"))));
}

TEST(OriginPolicy, DenyGoesFirst) {
  const OriginPolicy policy = Policy({"*.example", "10.0.0.0/8", "*:81"},
                                     {"bad.example", "*:22", "x.example:81", "10.9.0.0/16"});
  EXPECT_TRUE(Ok(policy.CheckUrl(U("h.example"))));
  EXPECT_FALSE(Ok(policy.CheckUrl(U("bad.example"))));
  EXPECT_FALSE(Ok(policy.CheckUrl(U("bad.example.:80"))));
  EXPECT_TRUE(Ok(policy.CheckUrl(U("x.bad.example"))));
  EXPECT_FALSE(Ok(policy.CheckUrl(U("h.example:22"))));
  EXPECT_FALSE(Ok(policy.CheckUrl(U("10.0.0.1:22"))));
  EXPECT_FALSE(Ok(policy.CheckUrl(U("x.example:81"))));
  EXPECT_TRUE(Ok(policy.CheckUrl(U("x.example:82"))));
  EXPECT_FALSE(Ok(policy.CheckAddress(U("h.example"), Ip("10.9.1.1"))));
  EXPECT_FALSE(Ok(policy.CheckAddress(U("h.example"), Ip("64:ff9b::10.9.1.1"))));
  EXPECT_FALSE(Ok(policy.CheckUrl(U("10.9.1.1"))));
  const Error error = policy.CheckUrl(U("bad.example")).error();
  EXPECT_EQ(error.context, "bad.example:80 is denied by --origin-deny");
  EXPECT_NE(policy.CheckUrl(U("10.9.1.1")).error().context.find("10.9.1.1"), std::string::npos);
  EXPECT_NE(policy.CheckUrl(U("10.9.1.1")).error().context.find("--origin-deny"),
            std::string::npos);
}

TEST(OriginPolicy, WhatIsAllowedIsAllowedByHostOrAddress) {
  const OriginPolicy policy = Policy({"h.example", "*.sub.example:81", "10.0.0.0/8"}, {});
  EXPECT_TRUE(Ok(policy.CheckAddress(U("h.example"), Ip("192.0.2.1"))));
  EXPECT_TRUE(Ok(policy.CheckAddress(U("a.sub.example:81"), Ip("192.0.2.1"))));
  EXPECT_FALSE(Ok(policy.CheckAddress(U("a.sub.example:82"), Ip("192.0.2.1"))));
  EXPECT_FALSE(Ok(policy.CheckAddress(U("sub.example:81"), Ip("192.0.2.1"))));
  EXPECT_TRUE(Ok(policy.CheckUrl(U("other.example")))) << "its address may be one of 10/8";
  EXPECT_TRUE(Ok(policy.CheckAddress(U("other.example"), Ip("10.1.1.1"))));
  EXPECT_FALSE(Ok(policy.CheckAddress(U("other.example"), Ip("192.0.2.1"))));
  EXPECT_TRUE(Ok(policy.CheckUrl(U("10.1.1.1"))));
  EXPECT_FALSE(Ok(policy.CheckUrl(U("192.0.2.1"))));
  const Error error = policy.CheckAddress(U("other.example"), Ip("192.0.2.1")).error();
  EXPECT_EQ(error.context,
            "other.example:80 (address 192.0.2.1) is not among the origins of --origin-allow");

  const OriginPolicy hosts = Policy({"h.example", "10.0.0.0/8:81"}, {});
  EXPECT_FALSE(Ok(hosts.CheckUrl(U("other.example"))));
  EXPECT_TRUE(Ok(hosts.CheckUrl(U("other.example:81"))));
  EXPECT_EQ(hosts.CheckUrl(U("other.example")).error().context,
            "other.example:80 is not among the origins of --origin-allow");
}

TEST(OriginPolicy, OnlyARuleForAddressesLiftsADefaultRefusal) {
  const OriginPolicy policy = Policy({"meta.example", "169.254.10.0/24:81"}, {});
  EXPECT_FALSE(Ok(policy.CheckAddress(U("meta.example"), Ip("169.254.169.254"))));
  EXPECT_FALSE(Ok(policy.CheckAddress(U("meta.example"), Ip("169.254.10.1"))));
  EXPECT_TRUE(Ok(policy.CheckAddress(U("meta.example:81"), Ip("169.254.10.1"))));
  EXPECT_TRUE(Ok(policy.CheckUrl(U("169.254.10.1:81"))));
  OriginPolicy lifted;
  lifted.allow_link_local = true;
  EXPECT_TRUE(Ok(lifted.CheckUrl(U("169.254.169.254"))));
}

TEST(OriginPolicy, ThroughAProxyHostsAlone) {
  const OriginPolicy open;
  EXPECT_FALSE(Ok(open.CheckUrlByProxy(U("h.example"), true)));
  EXPECT_NE(open.CheckUrlByProxy(U("h.example"), true).error().context.find("no_proxy"),
            std::string::npos);
  const OriginPolicy policy = Policy({"h.example", "*:81", "192.0.2.0/24"}, {"bad.example"});
  for (const bool untrusted : {false, true}) {
    EXPECT_TRUE(Ok(policy.CheckUrlByProxy(U("h.example"), untrusted)));
    EXPECT_FALSE(Ok(policy.CheckUrlByProxy(U("other.example"), untrusted)))
        << "which address it has is the proxy's affair";
    EXPECT_FALSE(Ok(policy.CheckUrlByProxy(U("bad.example:81"), untrusted)));
    EXPECT_TRUE(Ok(policy.CheckUrlByProxy(U("192.0.2.1"), untrusted)));
    EXPECT_FALSE(Ok(policy.CheckUrlByProxy(U("169.254.169.254:81"), untrusted)));
  }
  EXPECT_TRUE(Ok(policy.CheckUrlByProxy(U("other.example:81"), false)));
  EXPECT_FALSE(Ok(policy.CheckUrlByProxy(U("other.example:81"), true))) << "no rule names it";
}

}  // namespace
}  // namespace dartfs::core
