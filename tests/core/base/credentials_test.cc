#include "core/base/credentials.h"

#include <gtest/gtest.h>

namespace dartfs::core {
namespace {

TEST(Credentials, LoginBecomesBasic) {
  const std::pair<const char*, const char*> rows[] = {
      {"http://h/", ""},
      {"http://Aladdin:open%20sesame@h/", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},  // RFC 7617
      {"http://user@h/", "Basic dXNlcjo="},
      {"http://a:b%3Ac@h/", "Basic YTpiOmM="},
      {"http://a:%C3%BC@h/", "Basic YTrDvA=="},
  };
  for (const auto& [url, header] : rows) {
    const auto parsed = ParseUrl(url);
    ASSERT_TRUE(parsed) << url;
    EXPECT_EQ(AuthorizationOf(*parsed), header) << url;
  }
}

}  // namespace
}  // namespace dartfs::core
