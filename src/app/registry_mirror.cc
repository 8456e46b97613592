#include "app/registry_mirror.h"

#include <utility>

#include "core/base/log.h"

namespace dartfs::app {

using core::Result;
using core::Status;

namespace {

Result<httpd::RegistryLogins> LoadLogins(const Options& options) {
  if (options.registry_auth.empty()) return httpd::RegistryLogins();
  TRY_ASSIGN(auto logins, httpd::RegistryLogins::Load(options.registry_auth));
  for (const std::string& note : logins.notes()) LOG_WARN("{}", note);
  return logins;
}

Result<httpd::RegistryUpstreams> UpstreamsOf(const Options& options) {
  httpd::RegistryUpstreams upstreams;
  if (!options.registry.empty()) {
    TRY_ASSIGN(upstreams.registry, httpd::ParseRegistryUrl(options.registry));
  }
  for (const std::string& pattern : options.registry_allow) {
    TRY_ASSIGN(auto parsed, httpd::ParseRegistryPattern(pattern));
    upstreams.allowed.push_back(std::move(parsed));
  }
  return upstreams;
}

}  // namespace

RegistryMirror::RegistryMirror(NodeCore& core, httpd::RegistryLogins logins,
                               httpd::RegistryTokensOptions token_options,
                               httpd::RegistryHandlerOptions handler_options)
    : tokens(core.engine().http(), core.engine().scheduler(), std::move(logins),
             std::move(token_options)),
      handler(core.engine(), tokens, httpd::WaysOf(core.engine()), std::move(handler_options)) {}

Result<std::unique_ptr<RegistryMirror>> RegistryMirror::Make(const Options& options,
                                                             NodeCore& core) {
  if (options.registry.empty() && options.registry_allow.empty()) {
    return std::unique_ptr<RegistryMirror>();
  }
  TRY_ASSIGN(auto logins, LoadLogins(options));
  httpd::RegistryHandlerOptions handler;
  TRY_ASSIGN(handler.upstreams, UpstreamsOf(options));
  if (options.timeout) handler.timeout = *options.timeout;
  httpd::RegistryTokensOptions tokens;
  for (const std::string& realm : options.registry_realm) {
    TRY_ASSIGN(auto parsed, httpd::ParseTrustedRealm(realm));
    tokens.trusted_realms.push_back(std::move(parsed));
  }
  return std::make_unique<RegistryMirror>(core, std::move(logins), std::move(tokens),
                                          std::move(handler));
}

Status RegistryMirror::Reload(const Options& options) {
  TRY_ASSIGN(auto logins, LoadLogins(options));
  tokens.SetLogins(std::move(logins));
  return {};
}

}  // namespace dartfs::app
