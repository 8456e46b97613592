#include "core/io/host_port.h"

#include <gtest/gtest.h>

namespace dartfs::core {
namespace {

TEST(HostPort, IsSplitAtTheLastColon) {
  const struct {
    const char* text;
    const char* host;
    uint16_t port;
  } rows[] = {{"127.0.0.1:8145", "127.0.0.1", 8145},
              {"[::1]:80", "::1", 80},
              {":8145", "", 8145},
              {"localhost:0", "localhost", 0},
              {"node-7.example:65535", "node-7.example", 65535}};
  for (const auto& row : rows) {
    const auto parts = SplitHostPort(row.text);
    ASSERT_TRUE(parts) << row.text;
    EXPECT_EQ(parts->host, row.host);
    EXPECT_EQ(parts->port, row.port);
    EXPECT_EQ(parts->ToString(), row.text);
  }
}

TEST(HostPort, AnythingElseIsNone) {
  for (const char* text : {"", "host", "host:", "host:65536", "host:-1", "host:+1", "host:1x",
                           "::1:80", "[::1]", "[::1:80", "[nonsense]:80", "[::1]x:80"}) {
    EXPECT_EQ(SplitHostPort(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace dartfs::core
