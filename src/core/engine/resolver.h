// Resolver: URLs to Objects. Keeps, by local ID and digest, the current version and its time to
// live, probes the origin once for all who ask (one GET of bytes=0-0, conditional after the TTL),
// remembers errors for a moment, and falls back on what the index knows when the origin can't be
// reached (DESIGN.md section 7).
//
// Thread-safe. Completions as Engine::Open's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/engine/admission.h"
#include "core/engine/engine.h"
#include "core/engine/flight_env.h"
#include "core/engine/url_record.h"

namespace dartfs::core {

class DigestCheck;

class Resolver {
 public:
  Resolver(FlightEnv& env, HttpClient& http);
  ~Resolver();

  void Open(const Url& url, const OpenOptions& options, OpenDone done);
  std::optional<Result<std::shared_ptr<Object>>> OpenCached(const Url& url, const CachedOpen& how);
  Duration TtlLeft(const Url& url);
  UrlReport Explain(const Url& url, std::string_view digest);
  // The object's URL has another version: the next Open asks the origin.
  void Expire(const Object& object);
  // The origin ignores ranges for it: remembered with the URL.
  void RememberRangeBlind(const Object& object);
  void RememberError(const Object& object, const Error& error);
  // Forgets the objects of that digest's check; their URLs are left alone for a while.
  void Refuse(const DigestCheck& check, const Error& error);
  // Answers everyone who waits.
  void Stop();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dartfs::core
