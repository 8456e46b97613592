// Input: JSON from elsewhere: a token service's answer, and a file of registry logins. What is read
// keeps what the headers promise, and no error shows a byte of it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/base/url.h"
#include "httpd/registry_logins.h"
#include "httpd/token_request.h"

namespace dartfs::httpd {
namespace {

void CheckToken(std::string_view text) {
  const auto grant = ReadTokenAnswer(text);
  if (!grant) {
    DARTFS_CHECK(grant.error().code == core::Code::kBadResponse);
    return;
  }
  DARTFS_CHECK(!grant->token.empty() && grant->token.size() <= text.size());
  for (const char c : grant->token) DARTFS_CHECK(c > 0x20 && c < 0x7F);
  DARTFS_CHECK(grant->lifetime >= std::chrono::seconds(1));
  DARTFS_CHECK(grant->lifetime <= std::chrono::hours(1));
}

void CheckLogins(std::string_view text) {
  const auto logins = RegistryLogins::Parse(text, "/logins.json");
  if (!logins) {
    DARTFS_CHECK(!logins.error().context.empty());
    return;
  }
  for (const char* host : {"https://h", "https://h:5000", "https://registry-1.docker.io"}) {
    const std::string found = logins->Find(*core::ParseUrl(host));
    DARTFS_CHECK(found.empty() || found.starts_with("Basic "));
    DARTFS_CHECK(found.find_first_of("\r\n") == std::string::npos);
  }
}

}  // namespace
}  // namespace dartfs::httpd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  dartfs::httpd::CheckToken(text);
  dartfs::httpd::CheckLogins(text);
  return 0;
}
