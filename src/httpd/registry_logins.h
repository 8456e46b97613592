// RegistryLogins: the operator's logins at registries, out of the file of --registry-auth. Constant
// after construction.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/url.h"

namespace dartfs::httpd {

class RegistryLogins {
 public:
  RegistryLogins() = default;  // none

  // Two forms: {"host[:port]": {"username": "...", "password": "..."}}, and docker's config.json
  // ({"auths": {"host or URL": {"auth": base64 of user:password}}}, or username and password there
  // too). Blocking; a regular file of at most 1 MiB. Errors name the file, the host and what is
  // wrong, never a secret.
  static core::Result<RegistryLogins> Load(const std::string& path);
  // The same of a file's text.
  static core::Result<RegistryLogins> Parse(std::string_view text, const std::string& path);

  // What the operator should know: that others can read the file, or what of it is of no use here.
  const std::vector<std::string>& notes() const { return notes_; }
  size_t size() const { return logins_.size(); }

  // The Authorization value ("Basic ...") for that registry; empty: there is no login for it.
  std::string Find(const core::Url& registry) const;

 private:
  friend class LoginReader;
  std::map<std::string, std::string, std::less<>> logins_;  // host[:port] -> Authorization
  std::vector<std::string> notes_;
};

}  // namespace dartfs::httpd
