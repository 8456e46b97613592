// Engine: URLs to Objects (size, version, time to live), Objects to bytes (store, flights,
// sources). Thread-safe. Never blocks on the network; completions run on engine threads, or on the
// caller's stack when nothing has to be waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/grid.h"
#include "core/base/identity.h"
#include "core/base/latency_histogram.h"
#include "core/base/random.h"
#include "core/base/result.h"
#include "core/base/scheduler.h"
#include "core/engine/filler.h"
#include "core/engine/object.h"
#include "core/engine/object_reader.h"
#include "core/io/http_client.h"
#include "core/store/store.h"

namespace dartfs::core {

struct EngineOptions {
  Grid grid;
  IdentityOptions identity;
  uint64_t inflight_bytes = uint64_t{256} << 20;       // memory of all flights together
  uint64_t max_readahead_bytes = uint64_t{128} << 20;  // window of one stream
  uint64_t spool_limit_bytes = uint64_t{16} << 30;     // largest range-blind object that is spooled
  Duration error_ttl = std::chrono::seconds(1);        // how long a failed lookup is remembered
  Duration unreachable_ttl =
      std::chrono::seconds(5);  // how long an unreachable origin is left alone
  // How long a revalidation may take before what is cached is served without it.
  Duration slow_revalidation = std::chrono::seconds(2);
  Duration first_byte_timeout = std::chrono::seconds(15);
  Duration stall_timeout = std::chrono::seconds(10);
  int max_attempts = 8;  // per block, of failures that a retry may mend: ten seconds or so
};

struct OpenOptions {
  std::string authorization;
  Duration ttl = std::chrono::seconds(60);  // jittered by 20 %
  bool immutable = false;
  TimePoint deadline = kNoDeadline;
  bool revalidate = false;  // as if the TTL had run out
  // "sha256:<hex>" or "sha512:<hex>", stated by the operator: the object is content-addressed by
  // it, whatever the URL looks like (IDENTITY.md). Empty: none.
  std::string digest = {};
  // The caller passes on what the origin answers where it ignores ranges (spec/engine.md 3.9), and
  // wants nothing of it spooled: such an open ends with kRangeBlind as soon as that is known, and
  // from then on, as long as the process remembers, without a request. Others' opens of the URL are
  // as ever. The empty object is an object.
  bool verbatim = false;
  // A redirect that the URL itself answers with is not followed: kRedirected, with the redirect in
  // Error::answer; remembered for error_ttl, for the same credential alone. An origin that can't be
  // reached: what the cache knows, as ever.
  bool pass_redirects = false;
  bool untrusted_url = false;  // as HttpRequest's
};

// What OpenCached must know of the OpenOptions that Open would be given. Views for the call.
struct CachedOpen {
  std::string_view digest = {};
  std::string_view authorization = {};
  bool verbatim = false;
  bool pass_redirects = false;
  bool untrusted_url = false;
};

using OpenDone = UniqueFunction<void(Result<std::shared_ptr<Object>>)>;
using LendDone = UniqueFunction<void(Result<FileLoan>)>;

// What the engine knows of a URL without asking anybody (for `explain`).
struct UrlReport {
  Identity identity;
  std::shared_ptr<Object> object;  // null when never opened
  int64_t ttl_left_ms = 0;
  std::optional<Error> last_error;
  int64_t last_error_age_ms = -1;
};

struct FlightReport {
  std::string url;  // redacted
  uint64_t block = 0;
  uint64_t received = 0, length = 0;  // bytes
  int64_t age_ms = 0;
  uint32_t waiters = 0;
  std::string source;  // "origin", "peer", "waiting"
  std::string priority;
  uint32_t attempt = 0;
};

struct EngineStats {
  uint64_t origin_bytes = 0;  // wire bytes of bodies received
  uint64_t peer_bytes = 0;
  uint64_t cache_reads = 0, peer_reads = 0, origin_reads = 0;  // block reads by source
  uint64_t cache_bytes = 0;   // bytes given to readers from the store
  uint64_t memory_bytes = 0;  // bytes given to readers out of flights
  uint64_t flights_started = 0, flights_failed = 0, retries = 0;
  uint64_t inflight_bytes = 0, inflight_limit_bytes = 0;
  uint64_t refetched_corrupt = 0;
  uint64_t wrong_digests = 0;                  // content-addressed objects refused and dropped
  LatencyCounts origin_fetches, peer_fetches;  // of whole blocks, by who gave the last byte
  uint64_t flights_under_way = 0;
  std::vector<FlightReport> flights;  // at most 256, oldest first
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Everything given outlives the engine, which in turn is destroyed only when the store and the
  // client have stopped: blocks that are still being stored tell it.
  static std::unique_ptr<Engine> Create(EngineOptions options, Store& store, HttpClient& http,
                                        Scheduler& scheduler, Random& random);

  // The current version of the URL. Within its TTL without any request; after it one conditional
  // request, shared by all who ask. An origin that can't be reached: the version the cache knows,
  // if any. Errors: the origin's status as Code, kUnavailable, kDeadlineExceeded, kBadResponse,
  // kTooLarge (range-blind beyond the spool limit), kRefused, kInvalidArgument (no digest); and
  // kRangeBlind, kRedirected as OpenOptions says.
  virtual void Open(const Url& url, OpenOptions options, OpenDone done) = 0;
  // The same without any request: what is known within its TTL, else nullopt (an error is
  // remembered as one). Does not block.
  virtual std::optional<Result<std::shared_ptr<Object>>> OpenCached(const Url& url,
                                                                    const CachedOpen& how) = 0;
  std::optional<Result<std::shared_ptr<Object>>> OpenCached(const Url& url,
                                                            std::string_view digest = {}) {
    CachedOpen how;
    how.digest = digest;
    return OpenCached(url, how);
  }

  virtual std::unique_ptr<ObjectReader> MakeReader(std::shared_ptr<Object> object,
                                                   Requester requester) = 0;

  // Completes the object in the background (Filler). Drop the job before the engine.
  virtual std::unique_ptr<Fill> StartFill(std::shared_ptr<Object> object, Requester requester,
                                          FillDone done) = 0;

  // Whether the object's whole file may be lent now: complete, checked in this run, and, where it
  // is content-addressed, of the right digest. Where only the check is missing, it begins in the
  // background. Counts as a use of the object. No I/O.
  virtual bool MayLend(const std::shared_ptr<Object>& object) = 0;
  // Store::Lend; kBusy while many wait. `done` runs on a thread that may block, or on the caller's
  // stack; destroyed uncalled when the engine stops first.
  virtual void Lend(const std::shared_ptr<Object>& object, LendDone done) = 0;

  // How long what is known of the URL holds without asking anybody; zero when nothing is. Does not
  // block.
  virtual Duration TtlLeft(const Url& url) = 0;
  // Blocking (the index). `digest` as in OpenOptions.
  virtual UrlReport Explain(const Url& url, std::string_view digest = {}) = 0;
  virtual EngineStats Stats() = 0;
  virtual Store& store() = 0;
  virtual HttpClient& http() = 0;
  virtual Scheduler& scheduler() = 0;

  // Cancels flights and reads, answers everyone. Twice is fine.
  virtual void Stop() = 0;
};

}  // namespace dartfs::core
