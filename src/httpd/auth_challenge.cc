#include "httpd/auth_challenge.h"

#include <algorithm>

#include "core/base/text.h"

namespace dartfs::httpd {
namespace {

constexpr size_t kMaxChallenges = 16;
constexpr size_t kMaxParameters = 32;

bool IsLetterOrNumber(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// RFC 9110 section 5.6.2.
bool IsTokenByte(char c) {
  return IsLetterOrNumber(c) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken68Byte(char c) {
  return IsLetterOrNumber(c) || std::string_view("-._~+/").find(c) != std::string_view::npos;
}

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

class ChallengeReader {
 public:
  explicit ChallengeReader(std::string_view field) : rest_(field) {}

  std::vector<AuthChallenge> Read() {
    std::vector<AuthChallenge> challenges;
    while (challenges.size() < kMaxChallenges) {
      SkipCommas();
      AuthChallenge challenge;
      challenge.scheme = core::ToLowerAscii(Take(IsTokenByte));
      repeated_ = false;
      if (challenge.scheme.empty() || !ReadDetails(&challenge)) break;
      if (!repeated_) challenges.push_back(std::move(challenge));
    }
    return challenges;
  }

 private:
  template <typename Predicate>
  std::string_view Take(Predicate is_part) {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_part);
    const auto taken = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  bool TakeByte(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // The end of an element of the list; stays before the comma.
  bool AtEnd() {
    Take(IsSpace);
    return rest_.empty() || rest_.front() == ',';
  }
  void SkipCommas() {
    Take([](char c) { return IsSpace(c) || c == ','; });
  }

  // What follows a scheme. False: it can't be meant.
  bool ReadDetails(AuthChallenge* challenge) {
    const bool spaced = !Take(IsSpace).empty();
    if (AtEnd()) return true;
    if (!spaced) return false;
    if (ReadToken68(challenge)) return true;
    if (!ReadParameter(challenge)) return false;
    while (true) {
      if (!AtEnd()) return false;
      const std::string_view before = rest_;
      SkipCommas();
      if (!IsParameterNext()) {
        rest_ = before;
        return true;
      }
      if (!ReadParameter(challenge)) return false;
    }
  }

  bool ReadToken68(AuthChallenge* challenge) {
    const std::string_view before = rest_;
    const std::string_view body = Take(IsToken68Byte);
    const size_t length = body.size() + Take([](char c) { return c == '='; }).size();
    if (!body.empty() && AtEnd()) {
      challenge->token68 = before.substr(0, length);
      return true;
    }
    rest_ = before;
    return false;
  }

  // A name and '=': else it is the next challenge's scheme.
  bool IsParameterNext() {
    const std::string_view before = rest_;
    const bool named = !Take(IsTokenByte).empty();
    Take(IsSpace);
    const bool is = named && rest_.starts_with('=');
    rest_ = before;
    return is;
  }

  bool ReadParameter(AuthChallenge* challenge) {
    std::string name = core::ToLowerAscii(Take(IsTokenByte));
    Take(IsSpace);
    if (name.empty() || !TakeByte('=')) return false;
    Take(IsSpace);
    std::string value;
    if (TakeByte('"')) {
      if (!ReadQuoted(&value)) return false;
    } else {
      value = Take(IsTokenByte);
      if (value.empty()) return false;
    }
    if (challenge->Find(name)) repeated_ = true;
    challenge->parameters.emplace_back(std::move(name), std::move(value));
    return challenge->parameters.size() <= kMaxParameters;
  }

  // Behind the opening quote, to behind the closing one.
  bool ReadQuoted(std::string* value) {
    while (!rest_.empty()) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\') {
        if (rest_.empty()) return false;
        c = rest_.front();
        rest_.remove_prefix(1);
      }
      const auto byte = static_cast<unsigned char>(c);
      if ((byte < 0x20 && c != '\t') || byte == 0x7F) return false;
      *value += c;
    }
    return false;
  }

  std::string_view rest_;
  bool repeated_ = false;  // a parameter of the challenge being read
};

}  // namespace

std::optional<std::string_view> AuthChallenge::Find(std::string_view lower_name) const {
  for (const auto& [name, value] : parameters) {
    if (name == lower_name) return value;
  }
  return std::nullopt;
}

std::vector<AuthChallenge> ParseChallenges(std::string_view field) {
  if (field.size() > kMaxChallengeBytes) return {};
  return ChallengeReader(field).Read();
}

std::optional<RegistryChallenge> ChooseChallenge(const std::vector<AuthChallenge>& challenges) {
  const auto text = [](std::optional<std::string_view> value) {
    return std::string(value.value_or(""));
  };
  for (const AuthChallenge& challenge : challenges) {
    const auto realm = challenge.Find("realm");
    if (challenge.scheme != "bearer" || !realm || realm->empty()) continue;
    return RegistryChallenge{true, std::string(*realm), text(challenge.Find("service")),
                             text(challenge.Find("error"))};
  }
  for (const AuthChallenge& challenge : challenges) {
    if (challenge.scheme == "basic") return RegistryChallenge{};
  }
  return std::nullopt;
}

}  // namespace dartfs::httpd
