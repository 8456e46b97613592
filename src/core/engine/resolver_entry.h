// What the resolver knows of one URL, and who waits for it. Part of the resolver.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/url_record.h"

namespace dartfs::core {

// With which a URL is asked for: its signature may differ from another requester's.
struct Credential {
  Url url;
  std::string authorization;
  bool untrusted_url = false;
  bool operator==(const Credential&) const = default;
};

// Who asks, and what for: an open's options as far as what is known answers it. Views for the call.
struct Asker {
  const Url& url;
  std::string_view authorization;
  bool untrusted_url = false;
  bool verbatim = false;
  bool pass_redirects = false;

  bool Holds(const Credential& other) const {
    return untrusted_url == other.untrusted_url && authorization == other.authorization &&
           url == other.url;
  }
};

// An answer to who asked so, and to nobody else.
inline bool IsOfCredential(Code code) {
  return code == Code::kUnauthorized || code == Code::kForbidden || code == Code::kRefused;
}

struct Waiter {
  uint64_t id = 0;
  OpenDone done;
  Credential credential;
  bool verbatim = false;
  bool pass_redirects = false;
  TimerId timer = kNoTimer;
};

// Of an entry, and of its record in the index: the local ID, and the digest where one names the
// bytes, so that a URL whose digest a catalogue states is not taken for the same URL without.
inline std::string EntryName(const Identity& identity) {
  return identity.digest ? identity.local_id + '\x1F' + identity.digest->ToString()
                         : identity.local_id;
}
// `digest` as in OpenOptions.
inline std::string EntryName(const Url& url, const IdentityOptions& options,
                             std::string_view digest) {
  const auto named = digest.empty() ? DigestOfUrl(url, options) : ParseDigest(digest);
  std::string name = LocalId(url, options);
  if (named) name.append(1, '\x1F').append(named->algorithm).append(1, ':').append(named->hex);
  return name;
}

// All that is known of one EntryName. Guarded by State::mu.
struct Entry {
  Url url;
  Identity identity;
  bool immutable = false;
  Duration ttl{};
  std::shared_ptr<Object> object;
  TimePoint expires{};
  std::optional<Error> error;  // of the last probe or fetch
  TimePoint error_at{};
  TimePoint error_until{};
  Credential error_credential;
  bool error_followed = false;    // of a probe that follows redirects
  bool range_blind = false;       // what verbatim opens are told, whatever the time to live
  std::optional<Error> redirect;  // the URL's own answer, for who passes it on
  TimePoint redirect_until{};
  Credential redirect_credential;
  std::optional<UrlRecord> record;  // from the index
  bool loaded = false;
  bool probing = false;
  int probes = 0;              // of this round
  bool unconditional = false;  // this round: a 304 has named another version
  Credential probe_credential;
  bool probe_passes = false;  // it does not follow redirects
  std::shared_ptr<HttpCall> call;
  TimerId slow_timer = kNoTimer;  // see OnSlow
  std::vector<Waiter> waiters;
  TimePoint used{};

  void BeginRound() {
    probes = 0;
    unconditional = false;
  }
};

// Takes out the waiters for whom `whose` holds; the order of both lots stays.
template <typename Predicate>
std::vector<Waiter> TakeWaiters(Entry& entry, Predicate whose) {
  std::vector<Waiter> taken;
  std::vector<Waiter> rest;
  for (Waiter& waiter : entry.waiters) {
    (whose(waiter) ? taken : rest).push_back(std::move(waiter));
  }
  entry.waiters.swap(rest);
  return taken;
}

using EntryPtr = std::shared_ptr<Entry>;

}  // namespace dartfs::core
