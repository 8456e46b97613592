// Input: what a registry or a registry's client may send: a WWW-Authenticate field, and a target
// below /v2/. Both parsers keep what their headers promise.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/base/check.h"
#include "core/base/url.h"
#include "httpd/auth_challenge.h"
#include "httpd/registry_path.h"
#include "httpd/registry_upstreams.h"

namespace dartfs::httpd {
namespace {

// Writing a challenge down and reading it again changes nothing.
std::string Write(const AuthChallenge& challenge) {
  std::string out = challenge.scheme + " " + challenge.token68;
  bool first = true;
  for (const auto& [name, value] : challenge.parameters) {
    if (!first) out += ',';
    first = false;
    out += name;
    out += "=\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out;
}

void CheckChallenge(std::string_view field) {
  const auto challenges = ParseChallenges(field);
  for (const AuthChallenge& challenge : challenges) {
    const std::string written = Write(challenge);
    if (written.size() > kMaxChallengeBytes) continue;
    const auto again = ParseChallenges(written);
    DARTFS_CHECK(again.size() == 1 && again.front() == challenge);
  }
  const auto chosen = ChooseChallenge(challenges);
  DARTFS_CHECK(!chosen || chosen->bearer == !chosen->realm.empty());
}

void CheckPath(std::string_view target) {
  for (const char c : target) {
    if (c < 0x21 || c > 0x7E) return;
  }
  const auto parsed = ParseRegistryPath(target);
  const auto* path = std::get_if<RegistryPath>(&parsed);
  if (path == nullptr) {
    DARTFS_CHECK(!std::get<RegistryFault>(parsed).code.empty());
    return;
  }
  DARTFS_CHECK(path->target.starts_with("/v2/") && path->target.size() <= target.size() + 1);
  DARTFS_CHECK(path->name.empty() || IsRepositoryName(path->name));
  if (path->ns) DARTFS_CHECK(core::ParseUrl("https://" + *path->ns + "/").has_value());
  const auto again = ParseRegistryPath(path->target);
  DARTFS_CHECK(std::get<RegistryPath>(again).target == path->target);
  DARTFS_CHECK(!std::get<RegistryPath>(again).ns);
  const auto registry = ParseRegistryUrl("https://h");
  const auto url = RegistryTarget(*registry, path->target);
  DARTFS_CHECK(!url || url->RequestTarget() == path->target);
}

}  // namespace
}  // namespace dartfs::httpd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  dartfs::httpd::CheckChallenge(text);
  dartfs::httpd::CheckPath(text);
  return 0;
}
