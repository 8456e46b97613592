#include "httpd/registry_tokens.h"

#include <algorithm>
#include <list>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/text.h"
#include "httpd/auth_challenge.h"
#include "httpd/token_exchange.h"

namespace dartfs::httpd {
namespace {

using core::Code;
using core::Error;
using core::MakeError;
using core::MutexLock;
using core::Result;
using core::TimePoint;

// How long it is remembered that a registry wants Basic.
constexpr core::Duration kBasicLifetime = std::chrono::hours(1);
constexpr size_t kMaxWarned = 64;

bool IsBasic(std::string_view authorization) {
  return core::EqualsIgnoreCase(authorization.substr(0, 6), "basic ");
}

// Any but Basic is the client's own affair.
bool IsOpaque(std::string_view authorization) {
  return !authorization.empty() && !IsBasic(authorization);
}

std::string KeyOf(const RegistryRequest& request, std::string_view credential) {
  std::string key = request.registry.Authority() + '\0' + request.scope + '\0';
  const auto hash = core::Sha256(credential);
  key.append(reinterpret_cast<const char*>(hash.data()), hash.size());
  return key;
}

Error Unauthorized(const core::Url& registry, std::string challenge) {
  Error error = MakeError(Code::kUnauthorized,
                          registry.HostPort() + " wants a login that this node does not have");
  error.http_status = 401;
  error.challenge = std::move(challenge);
  return error;
}

struct Waiter {
  std::string challenge;  // that its request was answered
  Authorized done;
};

struct Entry {
  std::string key;
  std::string value;  // an Authorization; empty: none yet
  TimePoint obtained{};
  TimePoint expires{};
  bool running = false;  // an exchange is under way
  std::vector<Waiter> waiters = {};
  std::optional<Error> failure = {};
  TimePoint failure_until{};
};

}  // namespace

class RegistryTokens::State : public std::enable_shared_from_this<State> {
 public:
  State(core::HttpClient& http, core::Scheduler& scheduler, RegistryLogins logins,
        RegistryTokensOptions options)
      : http_(http),
        scheduler_(scheduler),
        options_(std::move(options)),
        logins_(std::move(logins)) {}

  void SetLogins(RegistryLogins logins) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    logins_ = std::move(logins);
  }

  bool HasLogin(const core::Url& registry) const EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return !logins_.Find(registry).empty();
  }

  std::string Known(const RegistryRequest& request) EXCLUDES(mu_) {
    if (IsOpaque(request.client_authorization)) return request.client_authorization;
    const std::string key = KeyOf(request, CredentialOf(request));
    MutexLock lock(mu_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end() || found->second->expires <= Now()) {
      return request.client_authorization;
    }
    Touch(found->second);
    return found->second->value;
  }

  void Authorize(const RegistryRequest& request, std::string challenge, const std::string& refused,
                 Authorized done) EXCLUDES(mu_) {
    const auto asked = ChooseChallenge(ParseChallenges(challenge));
    if (!asked || IsOpaque(request.client_authorization)) {
      return Refuse(request, {std::move(challenge), std::move(done)});
    }
    const std::string credential = CredentialOf(request);
    if (asked->bearer) {
      return Exchange(request, *asked, credential, refused,
                      {std::move(challenge), std::move(done)});
    }
    if (credential.empty() || credential == refused) {
      return Refuse(request, {std::move(challenge), std::move(done)});
    }
    Remember(KeyOf(request, credential), credential);
    Answer(std::move(done), credential);
  }

  RegistryTokensStats Stats() const EXCLUDES(mu_) {
    MutexLock lock(mu_);
    RegistryTokensStats stats = stats_;
    stats.tokens = static_cast<uint64_t>(std::count_if(
        entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.value.empty(); }));
    return stats;
  }

 private:
  using Place = std::list<Entry>::iterator;

  TimePoint Now() const { return scheduler_.clock().Now(); }

  std::string CredentialOf(const RegistryRequest& request) const EXCLUDES(mu_) {
    if (!request.client_authorization.empty()) return request.client_authorization;
    MutexLock lock(mu_);
    return logins_.Find(request.registry);
  }

  void Answer(Authorized done, Result<std::string> result) {
    scheduler_.Post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }

  void Refuse(const RegistryRequest& request, Waiter waiter) {
    Answer(std::move(waiter.done), Unauthorized(request.registry, std::move(waiter.challenge)));
  }

  void Touch(Place place) REQUIRES(mu_) { entries_.splice(entries_.begin(), entries_, place); }

  // The entry of that key, made where there was none; end() when every one is in use.
  Place Find(const std::string& key) REQUIRES(mu_) {
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) {
      Touch(found->second);
      return found->second;
    }
    if (entries_.size() >= options_.max_tokens && !DropOldest()) {
      ++stats_.refused;
      return entries_.end();
    }
    entries_.push_front({});
    entries_.front().key = key;
    by_key_.emplace(key, entries_.begin());
    return entries_.begin();
  }

  bool DropOldest() REQUIRES(mu_) {
    const auto idle = std::find_if(entries_.rbegin(), entries_.rend(),
                                   [](const Entry& entry) { return !entry.running; });
    if (idle == entries_.rend()) return false;
    by_key_.erase(idle->key);
    entries_.erase(std::next(idle).base());
    return true;
  }

  void Remember(const std::string& key, const std::string& value) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    const Place entry = Find(key);
    if (entry == entries_.end() || entry->running) return;
    entry->value = value;
    entry->obtained = Now();
    entry->expires = Now() + kBasicLifetime;
  }

  Error Busy() const {
    return MakeError(Code::kBusy, "too many requests wait for tokens of registries");
  }

  // Answers out of what is at hand, or joins or begins the exchange.
  void Exchange(const RegistryRequest& request, const RegistryChallenge& asked,
                const std::string& credential, const std::string& refused, Waiter waiter)
      EXCLUDES(mu_) {
    const std::string key = KeyOf(request, credential);
    {
      MutexLock lock(mu_);
      const Place entry = Find(key);
      if (entry == entries_.end()) return Answer(std::move(waiter.done), Busy());
      if (entry->running) return Join(*entry, std::move(waiter));
      if (auto held = Held(*entry, request, refused, waiter.challenge)) {
        return Answer(std::move(waiter.done), *std::move(held));
      }
      entry->running = true;
      entry->waiters.push_back(std::move(waiter));
      ++stats_.exchanges;
    }
    auto wanted = MakeTokenRequest(request.registry, asked, request.scope, options_.trusted_realms);
    if (!wanted) return Finish(key, std::move(wanted).error(), Now());
    Begin(request, *wanted, key, credential);
  }

  void Join(Entry& entry, Waiter waiter) REQUIRES(mu_) {
    if (entry.waiters.size() >= options_.max_waiters) {
      ++stats_.refused;
      return Answer(std::move(waiter.done), Busy());
    }
    ++stats_.joined;
    entry.waiters.push_back(std::move(waiter));
  }

  // What is known already; nullopt: an exchange is due.
  std::optional<Result<std::string>> Held(const Entry& entry, const RegistryRequest& request,
                                          const std::string& refused,
                                          const std::string& challenge) const REQUIRES(mu_) {
    const TimePoint now = Now();
    if (!entry.value.empty() && entry.value == refused) {
      if (now >= entry.obtained + options_.fresh) return std::nullopt;
      return Result<std::string>(Unauthorized(request.registry, challenge));
    }
    if (!entry.value.empty() && now < entry.expires) return Result<std::string>(entry.value);
    if (!entry.failure || now >= entry.failure_until) return std::nullopt;
    return Result<std::string>(For(*entry.failure, challenge));
  }

  // A refusal of the token service is one of the registry's to the client: it may have a login.
  static Error For(Error failure, const std::string& challenge) {
    if (failure.code == Code::kUnauthorized) failure.challenge = challenge;
    return failure;
  }

  void Begin(const RegistryRequest& request, const TokenRequest& wanted, const std::string& key,
             const std::string& credential) EXCLUDES(mu_) {
    core::HttpRequest http;
    http.url = wanted.url;
    http.headers = {{"Accept", "application/json"}};
    if (wanted.trusted) http.authorization = credential;
    http.untrusted_url = !wanted.trusted;
    if (!wanted.trusted && !credential.empty()) WarnWithheld(request.registry, wanted.url);
    const TimePoint asked_at = Now();
    http.deadline = asked_at + options_.exchange_timeout;
    StartTokenExchange(http_, scheduler_, std::move(http),
                       [self = shared_from_this(), key, asked_at](Result<TokenGrant> grant) {
                         self->Finish(key, std::move(grant), asked_at);
                       });
  }

  void WarnWithheld(const core::Url& registry, const std::string& realm) EXCLUDES(mu_) {
    {
      MutexLock lock(mu_);
      if (warned_.size() >= kMaxWarned || !warned_.insert(registry.Authority()).second) return;
    }
    LOG_WARN(
        "registry {} asks for tokens of {}, which is another host: it is asked without the login; "
        "name it with --registry-realm if it may see that",
        registry.HostPort(), core::RedactUrl(realm));
  }

  void Finish(const std::string& key, Result<TokenGrant> grant, TimePoint asked_at) EXCLUDES(mu_) {
    std::vector<Waiter> waiters;
    std::string value;
    {
      MutexLock lock(mu_);
      const Place entry = by_key_.at(key);  // one that runs stays
      entry->running = false;
      waiters.swap(entry->waiters);
      if (grant) {
        value = "Bearer " + grant->token;
        entry->value = value;
        entry->obtained = Now();
        entry->expires =
            asked_at + grant->lifetime - std::min(options_.leeway, grant->lifetime / 2);
        entry->failure.reset();
      } else {
        ++stats_.failures;
        entry->value.clear();
        entry->failure = grant.error();
        entry->failure_until = Now() + options_.failure_ttl;
      }
    }
    for (Waiter& waiter : waiters) {
      if (grant) {
        Answer(std::move(waiter.done), value);
      } else {
        Answer(std::move(waiter.done), For(grant.error(), waiter.challenge));
      }
    }
  }

  core::HttpClient& http_;
  core::Scheduler& scheduler_;
  const RegistryTokensOptions options_;

  mutable core::Mutex mu_;  // before the scheduler's own
  RegistryLogins logins_ GUARDED_BY(mu_);
  std::list<Entry> entries_ GUARDED_BY(mu_);  // most recently used first
  std::unordered_map<std::string, Place> by_key_ GUARDED_BY(mu_);
  std::set<std::string> warned_ GUARDED_BY(mu_);
  RegistryTokensStats stats_ GUARDED_BY(mu_);
};

RegistryTokens::RegistryTokens(core::HttpClient& http, core::Scheduler& scheduler,
                               RegistryLogins logins, RegistryTokensOptions options)
    : state_(std::make_shared<State>(http, scheduler, std::move(logins), std::move(options))) {}

RegistryTokens::~RegistryTokens() = default;

void RegistryTokens::SetLogins(RegistryLogins logins) { state_->SetLogins(std::move(logins)); }

bool RegistryTokens::HasLogin(const core::Url& registry) const {
  return state_->HasLogin(registry);
}

std::string RegistryTokens::Known(const RegistryRequest& request) { return state_->Known(request); }

void RegistryTokens::Authorize(RegistryRequest request, std::string challenge, std::string refused,
                               Authorized done) {
  state_->Authorize(request, std::move(challenge), refused, std::move(done));
}

RegistryTokensStats RegistryTokens::Stats() const { return state_->Stats(); }

}  // namespace dartfs::httpd
