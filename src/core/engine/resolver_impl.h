// The resolver's state and steps. Part of resolver*.cc.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/mutex.h"
#include "core/engine/object_maker.h"
#include "core/engine/outages.h"
#include "core/engine/probe.h"
#include "core/engine/resolver.h"
#include "core/engine/resolver_entry.h"

namespace dartfs::core {

// What a verbatim open is told.
inline Error RangeBlindError(const Identity& identity) {
  Error error = MakeError(Code::kRangeBlind, identity.redacted_url +
                                                 ": the origin ignores ranges; its answers are "
                                                 "passed on as they are");
  error.http_status = 200;
  return error;
}

// A time to live of what never changes.
inline constexpr Duration kForEver(kNoDeadline.time_since_epoch() / 4);

struct Resolver::State : std::enable_shared_from_this<Resolver::State> {
  State(FlightEnv& e, HttpClient& h)
      : env(e), http(h), maker(e), outages({e.options.unreachable_ttl, e.options.error_ttl}) {}

  FlightEnv& env;
  HttpClient& http;
  ObjectMaker maker;

  Mutex mu;  // before the scheduler's; never held over a call to store, client or waiter
  std::unordered_map<std::string, EntryPtr> entries GUARDED_BY(mu);
  Outages outages GUARDED_BY(mu);
  uint64_t next_waiter GUARDED_BY(mu) = 1;
  bool stopped GUARDED_BY(mu) = false;

  TimePoint Now() { return env.scheduler.clock().Now(); }
  Duration Jittered(Duration ttl) {
    return std::chrono::duration_cast<Duration>(ttl * (0.8 + 0.4 * env.random.NextDouble()));
  }

  EntryPtr FindOrMake(const Url& url, std::optional<Digest> declared) REQUIRES(mu);
  void Sweep() REQUIRES(mu);
  std::optional<Result<std::shared_ptr<Object>>> Known(const Entry& entry, const Asker& asker)
      REQUIRES(mu);
  void ExpireWaiter(const EntryPtr& entry, uint64_t id);

  void Begin(const EntryPtr& entry);
  void SendProbe(const EntryPtr& entry);
  void OnProbe(const EntryPtr& entry, Result<ProbeFacts> answer);
  void OnFacts(const EntryPtr& entry, const ProbeFacts& facts);
  void RefreshFields(const EntryPtr& entry, Object& object, const ProbeFacts& facts);
  void OnProbeError(const EntryPtr& entry, Error error);
  std::optional<Result<std::shared_ptr<Object>>> Stale(const EntryPtr& entry);
  bool ServeStale(const EntryPtr& entry);
  void OnSlow(const EntryPtr& entry);
  void AwaitSlow(const EntryPtr& entry) REQUIRES(mu);
  bool TellThrottled(const EntryPtr& entry, const Error& error);
  bool RetryProbe(const EntryPtr& entry, const Error& error);
  void RefuseCredential(const EntryPtr& entry, Error error);
  void OnRedirected(const EntryPtr& entry, Error error);
  void ForgetRedirect(const EntryPtr& entry);
  bool OnRangeBlind(const EntryPtr& entry);
  Result<std::shared_ptr<Object>> MakeCurrent(const EntryPtr& entry, UrlRecord record, Duration ttl,
                                              bool stale = false);
  // A result that came by a redirect is none for who passes redirects on: he is asked for again.
  enum class ForWhom : uint8_t { kAll, kFollowers };
  void Finish(const EntryPtr& entry, const Result<std::shared_ptr<Object>>& result,
              ForWhom whom = ForWhom::kAll);
  void Answer(std::vector<Waiter> waiters, const Result<std::shared_ptr<Object>>& result);
};

}  // namespace dartfs::core
