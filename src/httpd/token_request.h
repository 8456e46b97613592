// Asking a registry's token service for a token (the distribution project's token protocol): whom,
// with or without a credential, and what its answer is worth. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/url.h"
#include "httpd/auth_challenge.h"

namespace dartfs::httpd {

// A token service on another host than its registry that may see the registry's credentials.
// "host" or "host:port", lower case, without the scheme's default port.
struct TrustedRealm {
  std::string registry;  // empty: any
  std::string realm;
};
// "<realm host>" or "<registry host>=<realm host>". kInvalidArgument with the offending value.
core::Result<TrustedRealm> ParseTrustedRealm(std::string_view text);

struct TokenRequest {
  std::string url;
  // The service is on the registry's own host, is known to serve it, or is one of the trusted ones:
  // else no credential may go there.
  bool trusted = false;
};
// kRefused for a realm that is no https URL, unless the registry itself is asked over http. The
// scope is the caller's: what the challenge says of it is not looked at.
core::Result<TokenRequest> MakeTokenRequest(const core::Url& registry,
                                            const RegistryChallenge& challenge,
                                            std::string_view scope,
                                            const std::vector<TrustedRealm>& trusted);

inline constexpr size_t kMaxTokenAnswerBytes = 64 * 1024;

struct TokenGrant {
  std::string token;        // fit for a header
  core::Duration lifetime;  // from the request on; at least a second, at most an hour
};
// kBadResponse, without a byte of the answer in it.
core::Result<TokenGrant> ReadTokenAnswer(std::string_view body);

}  // namespace dartfs::httpd
