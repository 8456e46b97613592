#include <algorithm>
#include <utility>

#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/engine/flight_impl.h"
#include "core/engine/origin_source.h"
#include "core/engine/reader_impl.h"
#include "core/engine/resolver.h"
#include "core/engine/spool.h"
#include "core/engine/verify_queue.h"

namespace dartfs::core {

namespace {

constexpr size_t kMaxReportedFlights = 256;
constexpr size_t kBlockingThreads = 2;
constexpr size_t kMostLendings = 64;
// Of reads from the disk under way: more at once make no disk faster.
constexpr uint64_t kReadBufferBytes = uint64_t{16} << 20;

class EngineImpl final : public Engine, private FlightEvents {
 public:
  EngineImpl(EngineOptions options, Store& store, HttpClient& http, Scheduler& scheduler,
             Random& random)
      : options_(std::move(options)),
        store_(store),
        http_(http),
        scheduler_(scheduler),
        blocking_(MakeThreadScheduler("open", kBlockingThreads, scheduler.clock())),
        lender_(MakeThreadScheduler("lend", 1, scheduler.clock())),
        memory_(options_.inflight_bytes, options_.grid.block_size, scheduler),
        unstored_(options_.inflight_bytes / 4, store, scheduler),
        digests_(options_.inflight_bytes / 8),
        held_(options_.inflight_bytes / 2, scheduler),
        read_buffers_(kReadBufferBytes, scheduler),
        origin_(options_, http, counters_),
        spool_(options_, http, counters_, scheduler),
        env_{options_,  store,     scheduler, *blocking_, random, memory_,      *this,
             counters_, unstored_, registry_, digests_,   held_,  read_buffers_},
        resolver_(env_, http),
        filler_(env_),
        verifies_(store) {}
  ~EngineImpl() override { Stop(); }

  void Open(const Url& url, OpenOptions options, OpenDone done) override {
    resolver_.Open(url, options, std::move(done));
  }
  using Engine::OpenCached;
  std::optional<Result<std::shared_ptr<Object>>> OpenCached(const Url& url,
                                                            const CachedOpen& how) override {
    return resolver_.OpenCached(url, how);
  }
  std::unique_ptr<ObjectReader> MakeReader(std::shared_ptr<Object> object,
                                           Requester requester) override {
    return std::make_unique<ReaderImpl>(
        std::make_shared<ReaderState>(env_, http_, std::move(object), std::move(requester)));
  }
  std::unique_ptr<Fill> StartFill(std::shared_ptr<Object> object, Requester requester,
                                  FillDone done) override {
    return filler_.Start(std::move(object), std::move(requester), std::move(done));
  }
  bool MayLend(const std::shared_ptr<Object>& object) override;
  void Lend(const std::shared_ptr<Object>& object, LendDone done) override {
    if (lendings_.fetch_add(1) >= kMostLendings) {
      lendings_.fetch_sub(1);
      return done(MakeError(Code::kBusy, "too many files are being lent"));
    }
    lender_->Post([this, object, done = std::move(done)]() mutable {
      lendings_.fetch_sub(1);
      done(store_.Lend(object->stored()));
    });
  }
  Duration TtlLeft(const Url& url) override { return resolver_.TtlLeft(url); }
  UrlReport Explain(const Url& url, std::string_view digest) override {
    return resolver_.Explain(url, digest);
  }
  EngineStats Stats() override;
  Store& store() override { return store_; }
  HttpClient& http() override { return http_; }
  Scheduler& scheduler() override { return scheduler_; }

  void Stop() override {
    env_.stopped.store(true, std::memory_order_release);
    filler_.Stop();
    verifies_.Stop();
    resolver_.Stop();
    for (const auto& flight : registry_.All()) flight->Abort();
    unstored_.Clear();
    digests_.Stop();
    lender_->Stop();
    blocking_->Stop();
  }

 private:
  void OnStale(const std::shared_ptr<Object>& object) override {
    LOG_INFO("{}: the origin has a new version", object->facts().identity.redacted_url);
    resolver_.Expire(*object);
  }
  void OnRangeBlind(const std::shared_ptr<Object>& object) override {
    if (object->range_blind()) return;
    object->MarkRangeBlind();
    LOG_WARN("{}: the origin answered 200 to a ranged request; the object is now spooled whole",
             object->facts().identity.redacted_url);
    resolver_.RememberRangeBlind(*object);
  }
  void OnFetchError(const std::shared_ptr<Object>& object, const Error& error) override {
    LOG_DEBUG("fetch failed: {}", error.ToString());
    resolver_.RememberError(*object, error);
  }
  void OnWrongDigest(const DigestCheck& check, const Error& error) override {
    resolver_.Refuse(check, error);
  }
  BlockSource& SourceFor(const Object& object) override {
    if (object.spooled()) return spool_;
    return origin_;
  }

  const EngineOptions options_;
  Store& store_;
  HttpClient& http_;
  Scheduler& scheduler_;
  const std::unique_ptr<Scheduler> blocking_;
  const std::unique_ptr<Scheduler> lender_;  // of its own: it waits for the disk
  std::atomic<size_t> lendings_{0};          // that wait for it
  EngineCounters counters_;
  MemoryBudget memory_;
  UnstoredBlocks unstored_;
  FlightRegistry registry_;
  DigestWorker digests_;
  HeldBlocks held_;
  ReadBuffers read_buffers_;
  OriginSource origin_;
  SpoolSource spool_;
  FlightEnv env_;
  Resolver resolver_;
  Filler filler_;
  VerifyQueue verifies_;
};

bool EngineImpl::MayLend(const std::shared_ptr<Object>& object) {
  store_.TouchUse(object->stored());
  const LendState state = store_.Lendable(*object->stored());
  if (state != LendState::kReady && state != LendState::kUnverified) return false;
  if (object->facts().identity.digest && !object->verified()) return false;
  if (state == LendState::kUnverified) verifies_.Enqueue(object);
  return state == LendState::kReady;
}

EngineStats EngineImpl::Stats() {
  EngineStats stats;
  const auto get = [](const std::atomic<uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  stats.origin_bytes = get(counters_.origin_bytes);
  stats.peer_bytes = get(counters_.peer_bytes);
  stats.cache_reads = get(counters_.cache_reads);
  stats.peer_reads = get(counters_.peer_reads);
  stats.origin_reads = get(counters_.origin_reads);
  stats.cache_bytes = get(counters_.cache_bytes);
  stats.memory_bytes = get(counters_.memory_bytes);
  stats.flights_started = get(counters_.flights_started);
  stats.flights_failed = get(counters_.flights_failed);
  stats.retries = get(counters_.retries);
  stats.refetched_corrupt = get(counters_.refetched_corrupt);
  stats.wrong_digests = get(counters_.wrong_digests);
  stats.inflight_bytes = memory_.used_bytes();
  stats.inflight_limit_bytes = memory_.limit_bytes();
  stats.origin_fetches = counters_.origin_fetches.Read();
  stats.peer_fetches = counters_.peer_fetches.Read();
  for (const auto& flight : registry_.All()) stats.flights.push_back(flight->Report());
  stats.flights_under_way = stats.flights.size();
  std::sort(stats.flights.begin(), stats.flights.end(),
            [](const FlightReport& a, const FlightReport& b) { return a.age_ms > b.age_ms; });
  if (stats.flights.size() > kMaxReportedFlights) stats.flights.resize(kMaxReportedFlights);
  return stats;
}

}  // namespace

std::unique_ptr<Engine> Engine::Create(EngineOptions options, Store& store, HttpClient& http,
                                       Scheduler& scheduler, Random& random) {
  return std::make_unique<EngineImpl>(std::move(options), store, http, scheduler, random);
}

}  // namespace dartfs::core
