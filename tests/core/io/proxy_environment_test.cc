#include "core/io/proxy_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace dartfs::core {
namespace {

std::string For(const ProxyEnvironment& environment, const std::string& url) {
  return environment.For(*ParseUrl(url));
}

TEST(ProxyEnvironment, ByScheme) {
  ProxyEnvironment environment;
  EXPECT_EQ(For(environment, "http://h/"), "");
  environment.all = "all";
  EXPECT_EQ(For(environment, "http://h/"), "all");
  environment.http = "plain";
  environment.https = "tls";
  EXPECT_EQ(For(environment, "http://h/"), "plain");
  EXPECT_EQ(For(environment, "https://h/"), "tls");
}

TEST(ProxyEnvironment, Exceptions) {
  struct Row {
    const char* no_proxy;
    const char* host;
    bool direct;
  };
  const Row rows[] = {
      {"", "h.example", false},
      {"*", "h.example", true},
      {"h.example", "h.example", true},
      {"H.Example.", "h.example", true},
      {"h.example", "h.example.", true},
      {"example", "h.example", true},
      {".example", "h.example", true},
      {".example", "example", true},
      {"xample", "h.example", false},
      {"sub.h.example", "h.example", false},
      {"a.b, ,h.example", "h.example", true},
      {"a.b h.example", "h.example", true},
      {"a,b,*", "h.example", false},  // alone, or an ordinary name
      {".", "h.example", false},
      {"127.0.0.1", "127.0.0.1", true},
      {"127.0.0.0/8,x", "127.1.2.3", true},
      {"127.0.0.0/8", "128.1.2.3", false},
      {"0.0.1", "127.0.0.1", false},  // no domain of an address
      {"fd00::/8", "[fd00::1]", true},
      {"::1", "[::1]", true},
      {"::1", "[::2]", false},
  };
  for (const Row& row : rows) {
    ProxyEnvironment environment;
    environment.http = "p";
    environment.no_proxy = row.no_proxy;
    EXPECT_EQ(For(environment, std::string("http://") + row.host + ":81/"), row.direct ? "" : "p")
        << row.no_proxy << " " << row.host;
  }
}

TEST(ProxyEnvironment, ReadsTheEnvironment) {
  setenv("HTTP_PROXY", "a-client's", 1);
  setenv("http_proxy", "", 1);
  setenv("HTTPS_PROXY", "upper", 1);
  setenv("NO_PROXY", "x.example", 1);
  const ProxyEnvironment upper = ProxyEnvironment::Read();
  setenv("https_proxy", "lower", 1);
  setenv("http_proxy", "http", 1);
  setenv("no_proxy", "y.example", 1);
  const ProxyEnvironment lower = ProxyEnvironment::Read();
  for (const char* name :
       {"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"}) {
    unsetenv(name);
  }
  EXPECT_EQ(upper.http, "");
  EXPECT_EQ(upper.https, "upper");
  EXPECT_EQ(upper.no_proxy, "x.example");
  EXPECT_EQ(lower.http, "http");
  EXPECT_EQ(lower.https, "lower");
  EXPECT_EQ(lower.no_proxy, "y.example");
}

}  // namespace
}  // namespace dartfs::core
