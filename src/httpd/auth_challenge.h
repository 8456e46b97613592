// What a 401 asks for: the challenges of WWW-Authenticate (RFC 9110 section 11.6.1). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dartfs::httpd {

struct AuthChallenge {
  std::string scheme;   // lower case
  std::string token68;  // where that stands instead of parameters
  // Names in lower case, each once; values without their quotes and escapes.
  std::vector<std::pair<std::string, std::string>> parameters = {};

  std::optional<std::string_view> Find(std::string_view lower_name) const;
  bool operator==(const AuthChallenge&) const = default;
};

inline constexpr size_t kMaxChallengeBytes = 4096;

// The challenges of one field, or of several joined by ", ". A challenge that names a parameter
// twice is left out; where the grammar is left, the challenge at that place and all behind it are.
// A field of more than kMaxChallengeBytes has none.
std::vector<AuthChallenge> ParseChallenges(std::string_view field);

// The one of them that a registry's client answers.
struct RegistryChallenge {
  bool bearer = false;  // else Basic
  // Of Bearer alone: where a token is asked for, for which service, and what was wrong with the one
  // that was sent ("invalid_token", "insufficient_scope"). All foreign.
  std::string realm;
  std::string service;
  std::string error;
};
// Bearer with a realm where it is offered, else Basic, else nullopt.
std::optional<RegistryChallenge> ChooseChallenge(const std::vector<AuthChallenge>& challenges);

}  // namespace dartfs::httpd
