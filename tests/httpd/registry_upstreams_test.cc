#include "httpd/registry_upstreams.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace dartfs::httpd {
namespace {

using core::Code;

RegistryUpstreams Upstreams(const char* registry, std::initializer_list<const char*> allowed) {
  RegistryUpstreams upstreams;
  if (registry != nullptr) upstreams.registry = ParseRegistryUrl(registry).value();
  for (const char* text : allowed) {
    upstreams.allowed.push_back(ParseRegistryPattern(text).value());
  }
  return upstreams;
}

TEST(RegistryUpstreams, ByNamespace) {
  const RegistryUpstreams upstreams =
      Upstreams("http://own.example:5000",
                {"docker.io", "quay.io", "*.corp.example", "*.dev.example:8443", "h:5000",
                 "localhost:5001", "localhost:443", "[::1]:5001", "127.0.0.1:5002", "127.h.example",
                 "http://plain.example", "http://*.lan:81", "Mixed.Example"});
  struct Row {
    const char* ns;
    const char* url;  // nullptr: refused
  };
  const Row rows[] = {
      {"docker.io", "https://registry-1.docker.io/"},
      {"index.docker.io", "https://registry-1.docker.io/"},
      {"registry-1.docker.io", "https://registry-1.docker.io/"},
      {"docker.io:443", "https://registry-1.docker.io:443/"},
      {"docker.io:444", nullptr},
      {"quay.io", "https://quay.io/"},
      {"xquay.io", nullptr},
      {"a.quay.io", nullptr},
      {"a.corp.example", "https://a.corp.example/"},
      {"a.b.corp.example", "https://a.b.corp.example/"},
      {"corp.example", nullptr},
      {".corp.example", nullptr},
      {"acorp.example", nullptr},
      {"a.corp.example:5000", nullptr},
      {"a.dev.example:8443", "https://a.dev.example:8443/"},
      {"a.dev.example", nullptr},
      {"h:5000", "https://h:5000/"},
      {"h", nullptr},
      {"localhost:5001", "http://localhost:5001/"},
      {"localhost:443", "https://localhost:443/"},
      {"localhost", nullptr},
      {"[::1]:5001", "http://[::1]:5001/"},
      {"127.0.0.1:5002", "http://127.0.0.1:5002/"},
      {"127.0.0.2:5002", nullptr},
      {"127.h.example", "https://127.h.example/"},
      {"plain.example", "http://plain.example/"},
      {"plain.example:80", "http://plain.example:80/"},
      {"plain.example:443", nullptr},
      {"x.lan:81", "http://x.lan:81/"},
      {"mixed.example", "https://mixed.example/"},
      {"own.example:5000", "http://own.example:5000/"},
      {"own.example", nullptr},
  };
  for (const Row& row : rows) {
    const auto url = FindRegistry(upstreams, row.ns);
    ASSERT_EQ(url.has_value(), row.url != nullptr) << row.ns;
    if (url) {
      EXPECT_EQ(url->ToString(), row.url);
    } else {
      EXPECT_EQ(url.error().code, Code::kRefused);
    }
  }
}

TEST(RegistryUpstreams, WithoutNamespace) {
  const auto fixed = FindRegistry(Upstreams("https://docker.io", {}), std::nullopt);
  EXPECT_EQ(fixed->ToString(), "https://registry-1.docker.io/");
  const auto none = FindRegistry(Upstreams(nullptr, {"docker.io"}), std::nullopt);
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kNotFound);
}

TEST(RegistryUpstreams, PatternsThatAreNone) {
  for (const char* text : {"", "*", "*.", "http://", "https://h", "h/", "h/x", "h:", "h:0", "u@h",
                           "a*b", "*.*.h", "h?x", "h#x", "http://https://h", "h h"}) {
    const auto pattern = ParseRegistryPattern(text);
    ASSERT_FALSE(pattern.has_value()) << text;
    EXPECT_EQ(pattern.error().code, Code::kInvalidArgument);
  }
}

TEST(RegistryUpstreams, UrlsThatAreNone) {
  for (const char* text : {"", "h", "ftp://h", "https://h/v2", "https://h/?x", "https://h/?"}) {
    EXPECT_FALSE(ParseRegistryUrl(text).has_value()) << text;
  }
  const auto login = ParseRegistryUrl("https://me:hunter2@h/");
  ASSERT_FALSE(login.has_value());
  EXPECT_EQ(login.error().context.find("hunter2"), std::string::npos);
  EXPECT_NE(login.error().context.find("--registry-auth"), std::string::npos);
}

TEST(RegistryUpstreams, TargetsKeepTheirBytes) {
  const auto registry = ParseRegistryUrl("https://h:5000").value();
  const auto url = RegistryTarget(registry, "/v2/a/tags/list?last=%2f&&x");
  ASSERT_TRUE(url.has_value());
  EXPECT_EQ(url->ToString(), "https://h:5000/v2/a/tags/list?last=%2f&&x");
  EXPECT_FALSE(RegistryTarget(registry, "/v2/?" + std::string(core::kMaxUrlBytes, 'x')));
}

}  // namespace
}  // namespace dartfs::httpd
