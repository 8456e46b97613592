// What the resolver knows of one URL, and who waits for it. Part of the resolver.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/engine.h"
#include "core/engine/url_record.h"

namespace dartfs::core {

// With which a URL is asked for: its signature may differ from another requester's.
struct Credential {
  Url url;
  std::string authorization;
  bool operator==(const Credential&) const = default;
};

struct Waiter {
  uint64_t id = 0;
  OpenDone done;
  Credential credential;
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
  const std::string local_id = LocalId(url, options);
  return named ? local_id + '\x1F' + named->ToString() : local_id;
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
  std::optional<UrlRecord> record;  // from the index
  bool loaded = false;
  bool probing = false;
  int probes = 0;  // of this round
  Credential probe_credential;
  std::shared_ptr<HttpCall> call;
  TimerId slow_timer = kNoTimer;  // see OnSlow
  std::vector<Waiter> waiters;
  TimePoint used{};
};

using EntryPtr = std::shared_ptr<Entry>;

}  // namespace dartfs::core
