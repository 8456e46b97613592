#include "core/io/address_policy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <string>

namespace dartfs::core {
namespace {

IpAddress Ip(const std::string& text) {
  const auto address = ParseIpLiteral(text);
  EXPECT_TRUE(address.has_value()) << text;
  return address.value_or(IpAddress{});
}

TEST(AddressPolicy, RefusedByDefault) {
  const AddressPolicy policy;
  for (const char* text :
       {"169.254.169.254", "169.254.0.0", "169.254.255.255", "100.100.100.200", "168.63.129.16",
        "fe80::1", "febf:ffff::1", "[fe80::1%eth0]", "fd00:ec2::254", "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe", "::169.254.169.254", "64:ff9b::169.254.169.254", "64:ff9b::a83f:8110",
        "64:ff9b::6464:64c8", "64:ff9b:1::a9fe:a9fe", "::ffff:0:169.254.1.1", "2002:a9fe:a9fe::1",
        // The older forms that resolvers read as addresses.
        "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "169.254.169.254."}) {
    const Status verdict = policy.Check(Ip(text));
    ASSERT_FALSE(verdict) << text;
    EXPECT_EQ(verdict.error().code, Code::kRefused) << text;
    EXPECT_NE(verdict.error().context.find("--allow-link-local"), std::string::npos);
  }
  EXPECT_NE(policy.Check(Ip("::ffff:169.254.0.9")).error().context.find("169.254.0.9"),
            std::string::npos);
}

TEST(AddressPolicy, AllowedByDefault) {
  const AddressPolicy policy;
  for (const char* text :
       {"127.0.0.1", "10.0.0.1", "192.168.1.1", "169.253.255.255", "169.255.0.0", "100.100.100.199",
        "168.63.129.17", "::1", "fec0::1", "fd00:ec2::253", "fd00::1", "2001:db8::1",
        "::ffff:10.0.0.1", "64:ff9b::808:808", "2002:a00:1::1"}) {
    EXPECT_TRUE(policy.Check(Ip(text))) << text;
  }
}

TEST(AddressPolicy, OptionsLiftAndAdd) {
  AddressPolicyOptions lifted;
  lifted.allow_link_local = true;
  EXPECT_TRUE(AddressPolicy(lifted).Check(Ip("169.254.169.254")));

  AddressPolicyOptions lists;
  lists.allow = {*ParseCidr("169.254.10.0/24")};
  lists.deny = {*ParseCidr("10.0.0.0/8"), *ParseCidr("169.254.10.7")};
  const AddressPolicy policy(lists);
  EXPECT_TRUE(policy.Check(Ip("169.254.10.1")));
  EXPECT_FALSE(policy.Check(Ip("169.254.10.7"))) << "deny goes first";
  EXPECT_FALSE(policy.Check(Ip("169.254.11.1")));
  EXPECT_FALSE(policy.Check(Ip("10.255.0.1")));
  EXPECT_FALSE(policy.Check(Ip("64:ff9b::10.1.2.3"))) << "also inside another form";
  EXPECT_TRUE(policy.Check(Ip("11.0.0.1")));
}

TEST(AddressPolicy, Literals) {
  for (const char* text : {"example.org", "", "1.2.3.4.5", "256.1.1.1", "a.b", "1.2.3.4 x", "[::1",
                           "::g", "0x", "fe80"}) {
    EXPECT_FALSE(ParseIpLiteral(text).has_value()) << text;
  }
  EXPECT_EQ(Ip("[::1]").ToString(), "::1");
  EXPECT_EQ(Ip("127.1").ToString(), "127.0.0.1");
  EXPECT_EQ(Ip("::ffff:1.2.3.4"), Ip("1.2.3.4"));
}

TEST(AddressPolicy, Cidrs) {
  EXPECT_TRUE(ParseCidr("0.0.0.0/0")->Contains(Ip("255.1.2.3")));
  EXPECT_FALSE(ParseCidr("0.0.0.0/0")->Contains(Ip("::1")));
  EXPECT_TRUE(ParseCidr("::/0")->Contains(Ip("1.2.3.4")));
  EXPECT_TRUE(ParseCidr("fe80::/10")->Contains(Ip("febf::1")));
  EXPECT_FALSE(ParseCidr("fe80::/10")->Contains(Ip("fec0::1")));
  for (const char* text : {"1.2.3.4/33", "::/129", "1.2.3/8", "x/8", "1.2.3.4/", "1.2.3.4/-1"}) {
    EXPECT_FALSE(ParseCidr(text).has_value()) << text;
  }
}

TEST(AddressPolicy, FromSockets) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  inet_pton(AF_INET, "10.1.2.3", &v4.sin_addr);
  EXPECT_EQ(FromSockaddr(reinterpret_cast<const sockaddr&>(v4)), Ip("10.1.2.3"));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  inet_pton(AF_INET6, "fe80::2", &v6.sin6_addr);
  EXPECT_EQ(FromSockaddr(reinterpret_cast<const sockaddr&>(v6)), Ip("fe80::2"));
  sockaddr other{};
  other.sa_family = AF_UNIX;
  EXPECT_FALSE(FromSockaddr(other).has_value());
}

}  // namespace
}  // namespace dartfs::core
