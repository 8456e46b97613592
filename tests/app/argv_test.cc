#include "app/argv.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace dartfs::app {
namespace {

TEST(Argv, SecretsGoAndTheRestStays) {
  const std::pair<const char*, const char*> rows[] = {
      {"dartfs", "dartfs"},
      {"http://h/dir/", "http://h/dir/"},
      {"http://user:secret@h/dir/", "http://h/dir/"},
      {"https://h/x?X-Amz-Signature=secret", "https://h/x"},
      {"-o", "-o"},
      {"user@host", "user@host"},
  };
  for (const auto& [given, shown] : rows) {
    std::string text = given;
    char* argv[] = {text.data()};
    HideSecretArguments(1, argv);
    EXPECT_STREQ(text.c_str(), shown);
    // Nothing of the secret may be left behind the shorter text either.
    EXPECT_EQ(text.find("secret"), std::string::npos) << given;
  }
}

}  // namespace
}  // namespace dartfs::app
