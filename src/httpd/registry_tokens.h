// RegistryTokens: which Authorization a request to a registry needs, beyond what its client has
// sent. Answers a registry's 401: with a token of its token service, or with the login itself where
// it asks for Basic; and remembers both.
//
// Whose credential it is: the client's own Authorization first; a Basic one may be exchanged for a
// token, any other passes as it is and is never exchanged. Then the operator's login for the
// registry, then none. A token is kept by registry, scope and that credential, and given out for
// nothing else; one exchange serves all who wait for the same. A credential goes to a token service
// only where token_request.h trusts it with that; others are asked without.
//
// Thread-safe. Blocks nowhere. Both given outlive its use; exchanges under way outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"
#include "core/base/url.h"
#include "core/io/http_client.h"
#include "httpd/registry_logins.h"
#include "httpd/token_request.h"

namespace dartfs::httpd {

struct RegistryRequest {
  core::Url registry;                // base of it, as FindRegistry gives it
  std::string scope;                 // as RegistryPath::Scope
  std::string client_authorization;  // the client's, or empty
};

struct RegistryTokensOptions {
  std::vector<TrustedRealm> trusted_realms = {};
  core::Duration exchange_timeout = std::chrono::seconds(15);
  // A token is given out until so long before its end; half its life where that is shorter.
  core::Duration leeway = std::chrono::seconds(30);
  // A token refused so soon after it came is refused for what it is: another would be no better.
  core::Duration fresh = std::chrono::seconds(5);
  core::Duration failure_ttl = std::chrono::seconds(1);  // how long a failed exchange is remembered
  size_t max_tokens = 1024;                              // least recently used ones go first
  size_t max_waiters = 4096;                             // of one exchange
};

struct RegistryTokensStats {
  uint64_t tokens = 0;     // held now, Basic logins in use with them
  uint64_t exchanges = 0;  // begun
  uint64_t failures = 0;   // of those
  uint64_t joined = 0;     // requests that waited for another one's exchange
  uint64_t refused = 0;    // for want of room
};

// An Authorization value to try with. kUnauthorized: there is nothing better than what was refused;
// its `challenge` is the registry's, for the client. Else why no token could be had.
using Authorized = core::UniqueFunction<void(core::Result<std::string>)>;

class RegistryTokens {
 public:
  RegistryTokens(core::HttpClient& http, core::Scheduler& scheduler, RegistryLogins logins,
                 RegistryTokensOptions options = {});
  ~RegistryTokens();

  // In place of the ones before (a reload). Tokens got with those are not given out any more.
  void SetLogins(RegistryLogins logins);
  bool HasLogin(const core::Url& registry) const;

  // What to send at first: the client's own, a token in hand for it, or a token or login of ours.
  // Empty: nothing, as far as is known.
  std::string Known(const RegistryRequest& request);

  // After a 401. `challenge`: its WWW-Authenticate. `refused`: the Authorization that was sent,
  // empty where there was none. `done` runs once on a scheduler thread, never on the caller's
  // stack.
  void Authorize(RegistryRequest request, std::string challenge, std::string refused,
                 Authorized done);

  RegistryTokensStats Stats() const;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace dartfs::httpd
