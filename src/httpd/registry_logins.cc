#include "httpd/registry_logins.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/base/credentials.h"
#include "core/base/text.h"
#include "core/base/unique_fd.h"
#include "httpd/base64.h"
#include "httpd/json_fields.h"
#include "httpd/registry_upstreams.h"

namespace dartfs::httpd {

using core::Code;
using core::Error;
using core::EscapeForeign;
using core::MakeError;
using core::Result;
using core::Status;
using nlohmann::json;

namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kMaxLoginBytes = 8 * 1024;

std::string Shown(const std::string& path) { return "--registry-auth " + EscapeForeign(path); }

struct File {
  std::string text;
  mode_t mode = 0;
};

Result<File> ReadFile(const std::string& path) {
  // Not to wait for the other end of a pipe.
  const core::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return core::ErrnoError(errno, Shown(path));
  struct stat stat {};
  if (fstat(fd.get(), &stat) != 0) return core::ErrnoError(errno, Shown(path));
  if (!S_ISREG(stat.st_mode)) {
    return MakeError(Code::kInvalidArgument, Shown(path) + " is not a regular file");
  }
  File file{std::string(kMaxFileBytes + 1, '\0'), stat.st_mode};
  size_t held = 0;
  while (held < file.text.size()) {
    const ssize_t got = read(fd.get(), file.text.data() + held, file.text.size() - held);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return core::ErrnoError(errno, Shown(path));
    if (got == 0) break;
    held += static_cast<size_t>(got);
  }
  if (held > kMaxFileBytes) {
    return MakeError(Code::kTooLarge,
                     Shown(path) + " is larger than " + core::FormatSize(kMaxFileBytes));
  }
  file.text.resize(held);
  return file;
}

// A key of the file, told apart as docker and podman do.
struct Place {
  std::string host;      // "host" or "host:port", canonical; empty: it is none
  bool partial = false;  // a part of a registry, or something else of Docker Hub's
};

Place PlaceOf(std::string_view key) {
  const bool plain = key.starts_with("http://");
  if (const size_t scheme = key.find("://"); scheme != std::string_view::npos) {
    if (!plain && !key.starts_with("https://")) return {};
    key.remove_prefix(scheme + 3);
  }
  const std::string_view host = key.substr(0, key.find('/'));
  const std::string_view path = key.substr(host.size());
  const auto url = core::ParseUrl((plain ? "http://" : "https://") + std::string(host));
  if (!url || !url->userinfo.empty() || url->path != "/" || url->query) return {};
  constexpr std::array<std::string_view, 6> kWhole = {"", "/", "/v1", "/v1/", "/v2", "/v2/"};
  core::Url canonical = *url;
  canonical.host = CanonicalRegistryHost(url->host);
  return {canonical.HostPort(), std::find(kWhole.begin(), kWhole.end(), path) == kWhole.end()};
}

// What stands before an '@' may be a password.
std::string ShownKey(std::string_view key) {
  return "'" + EscapeForeign(key.substr(key.rfind('@') + 1), 300) + "'";
}

bool IsClean(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

}  // namespace

class LoginReader {
 public:
  explicit LoginReader(std::string path) : shown_(Shown(path)) {}

  Result<RegistryLogins> Read(std::string_view text) {
    const json file = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (file.is_discarded()) return Wrong("is not JSON");
    if (!file.is_object()) return Wrong("is no JSON object");
    const json* auths = JsonMember(file, "auths");
    const bool helper =
        JsonMember(file, "credsStore") != nullptr || JsonMember(file, "credHelpers") != nullptr;
    docker_ = auths != nullptr || helper;
    if (helper) {
      Note("names a credential helper, which is not asked: only logins in the file itself count");
    }
    if (auths != nullptr && !auths->is_object()) return Wrong("has an \"auths\" that is no object");
    if (!docker_ || auths != nullptr) {
      for (const auto& [key, entry] : (docker_ ? *auths : file).items()) TRY(ReadEntry(key, entry));
    }
    return std::move(logins_);
  }

 private:
  Error Wrong(const std::string& what) const {
    return MakeError(Code::kInvalidArgument, shown_ + " " + what);
  }
  void Note(const std::string& what) { logins_.notes_.push_back(shown_ + " " + what); }
  Error Of(std::string_view key, const std::string& what) const {
    return Wrong("has a login for " + ShownKey(key) + " " + what);
  }

  Status ReadEntry(const std::string& key, const json& entry) {
    const Place place = PlaceOf(key);
    if (place.host.empty()) return Of(key, "which is no registry; write host or host:port");
    if (!entry.is_object()) return Of(key, "that is no JSON object");
    if (place.partial) {
      Note("has a login for " + ShownKey(key) + ", which is not a whole registry: left out");
      return {};
    }
    if (docker_ && IsElsewhere(key, entry)) return {};
    TRY_ASSIGN(const std::string authorization, AuthorizationOf(key, entry));
    const auto [held, added] = logins_.logins_.emplace(place.host, authorization);
    if (!added && held->second != authorization) {
      return Of(key, "beside another one for the same registry");
    }
    return {};
  }

  // Whether docker keeps the login where it can't be used from, or has none.
  bool IsElsewhere(const std::string& key, const json& entry) {
    const bool token = !JsonText(entry, "identitytoken").value_or("").empty() ||
                       !JsonText(entry, "registrytoken").value_or("").empty();
    if (token) {
      Note("has an identity token for " + ShownKey(key) +
           ": that kind is not supported, give username and password (or an access token as "
           "password)");
      return true;
    }
    const bool empty =
        JsonText(entry, "auth").value_or("").empty() && JsonMember(entry, "username") == nullptr;
    if (empty) Note("has no login for " + ShownKey(key) + " in itself");
    return empty;
  }

  Result<std::string> AuthorizationOf(const std::string& key, const json& entry) const {
    std::string user, password;
    const std::string auth = JsonText(entry, "auth").value_or("");
    if (docker_ && !auth.empty()) {
      const auto decoded = Base64Decode(auth);
      const size_t colon = decoded ? decoded->find(':') : std::string::npos;
      if (colon == std::string::npos) {
        return Of(key, "whose \"auth\" is not base64 of user:password");
      }
      user = decoded->substr(0, colon);
      password = decoded->substr(colon + 1);
      // Docker has written some with zero bytes behind.
      password.resize(password.find_last_not_of('\0') + 1);
    } else {
      const auto has_user = JsonText(entry, "username");
      const auto has_password = JsonText(entry, "password");
      if (!has_user) return Of(key, "without a \"username\" that is text");
      if (!has_password) return Of(key, "without a \"password\" that is text");
      user = *has_user;
      password = *has_password;
    }
    if (user.empty() || user.find(':') != std::string::npos || !IsClean(user)) {
      return Of(key, "whose user name is empty or has a colon or control characters");
    }
    if (!IsClean(password)) return Of(key, "whose password has control characters");
    if (user.size() + password.size() > kMaxLoginBytes) {
      return Of(key, "that is longer than " + core::FormatSize(kMaxLoginBytes));
    }
    return core::BasicAuthorization(user, password);
  }

  const std::string shown_;
  bool docker_ = false;
  RegistryLogins logins_;
};

Result<RegistryLogins> RegistryLogins::Parse(std::string_view text, const std::string& path) {
  return LoginReader(path).Read(text);
}

Result<RegistryLogins> RegistryLogins::Load(const std::string& path) {
  TRY_ASSIGN(const File file, ReadFile(path));
  TRY_ASSIGN(RegistryLogins logins, Parse(file.text, path));
  if ((file.mode & 077) != 0) {
    logins.notes_.push_back(
        Shown(path) + fmt::format(" can be read or changed by others (mode {:04o}): chmod 600",
                                  file.mode & 07777));
  }
  return logins;
}

std::string RegistryLogins::Find(const core::Url& registry) const {
  core::Url canonical = registry;
  canonical.host = CanonicalRegistryHost(registry.host);
  auto found = logins_.find(canonical.HostPort());
  if (found == logins_.end()) {
    found = logins_.find(canonical.host + ":" + std::to_string(canonical.EffectivePort()));
  }
  return found == logins_.end() ? "" : found->second;
}

}  // namespace dartfs::httpd
