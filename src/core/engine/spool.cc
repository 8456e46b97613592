#include "core/engine/spool.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/text.h"
#include "core/engine/admission.h"
#include "core/engine/flight.h"

namespace dartfs::core {

// One object being spooled. It lives while a pass runs or a block waits.
class Spool final : public HttpSink, public std::enable_shared_from_this<Spool> {
 public:
  Spool(SpoolSource& source, std::shared_ptr<Object> object)
      : source_(source), object_(std::move(object)), version_(object_->version()) {}

  void Wait(const BlockRequest& request, std::shared_ptr<BlockSink> sink) {
    bool start = false;
    bool resume = false;
    {
      MutexLock lock(mu_);
      waiting_[request.block] = Waiting{std::move(sink), request.from, false};
      requester_ = request.requester;
      start = !std::exchange(running_, true);
      resume = awaited_ && awaited_->block == request.block;
    }
    if (start) StartPass();
    if (resume) Resume();
  }

  void Cancel(uint64_t block, const std::shared_ptr<BlockSink>& sink) {
    {
      MutexLock lock(mu_);
      const auto it = waiting_.find(block);
      if (it == waiting_.end() || it->second.sink != sink) return;
      waiting_.erase(it);
    }
    source_.scheduler_.Post([sink] { sink->OnEnd(MakeError(Code::kCancelled, "cancelled")); });
  }

  void Resume() {
    std::shared_ptr<HttpCall> call;
    {
      MutexLock lock(mu_);
      call = call_;
      resume_early_ = call == nullptr && running_;
    }
    if (call != nullptr) call->Resume();
  }

  Status OnHead(const HttpHead& head) override { return CheckSpoolHead(head, Expected()); }
  Result<BodyVerdict> OnBody(std::span<const std::byte> bytes) override;
  void OnDone(Status status) override;

 private:
  // A flight that is queued for the connection that the pass has would never come.
  static constexpr Duration kPatience = std::chrono::seconds(2);
  struct Awaited {
    uint64_t block = 0;
    TimePoint until{};
  };
  struct Waiting {
    std::shared_ptr<BlockSink> sink;
    uint64_t from = 0;
    bool started = false;
  };

  ExpectedBlock Expected() const {
    ExpectedBlock expected;
    expected.total = object_->size();
    expected.version = version_;
    expected.etag = object_->facts().meta.etag;
    expected.what = "GET " + object_->facts().identity.redacted_url + " (whole)";
    return expected;
  }
  void StartPass();
  void Supersede();
  void EnterBlock(uint64_t block);
  bool IsComing(uint64_t block) REQUIRES(mu_);
  Result<BodyVerdict> Deliver(uint64_t block, uint64_t in_block, std::span<const std::byte> bytes);
  void EndBlock(uint64_t block, Status status);

  SpoolSource& source_;
  const std::shared_ptr<Object> object_;
  const std::string version_;

  // Of the transfer thread.
  uint64_t position_ = 0;  // bytes of the object gone by
  uint64_t skip_ = 0;      // bytes at the head of the next OnBody that were taken before a pause
  FlightTicket ticket_;    // our own interest in the current block

  Mutex mu_;
  std::map<uint64_t, Waiting> waiting_ GUARDED_BY(mu_);
  std::shared_ptr<const Requester> requester_ GUARDED_BY(mu_);
  std::shared_ptr<HttpCall> call_ GUARDED_BY(mu_);
  bool running_ GUARDED_BY(mu_) = false;
  bool resume_early_ GUARDED_BY(mu_) = false;       // before there was a call_ to resume
  std::optional<Awaited> awaited_ GUARDED_BY(mu_);  // the last block that the pass rested for
};

void Spool::StartPass() {
  // Nothing tells two passes over an unversioned object apart: what one has given (and the store
  // may have lost) is not mixed with what another would.
  if (object_->facts().meta.volatile_version && object_->flights().TestAndSetPassed()) {
    return source_.scheduler_.Post([self = shared_from_this()] {
      self->OnDone(MakeError(
          Code::kStale, self->Expected().what + ": a part of it is gone, and it has no version"));
    });
  }
  position_ = 0;
  skip_ = 0;
  HttpRequest request;
  {
    MutexLock lock(mu_);
    awaited_.reset();
    request.url = requester_->url.ToString();
    request.authorization = requester_->authorization;
    request.untrusted_url = requester_->untrusted_url;
  }
  request.headers = VersionGuard(version_);
  request.first_byte_timeout = source_.options_.first_byte_timeout;
  request.stall_timeout = source_.options_.stall_timeout;
  auto call = source_.http_.Start(std::move(request), shared_from_this());
  bool resume = false;
  {
    MutexLock lock(mu_);
    resume = std::exchange(resume_early_, false);
    if (running_) call_ = call;
  }
  if (resume) call->Resume();
}

// The block's flight: somebody's, or one of our own, so that the whole object is kept.
void Spool::EnterBlock(uint64_t block) {
  TicketOptions options;
  {
    MutexLock lock(mu_);
    options.requester = requester_;
  }
  options.priority = Priority::kBackground;
  ticket_ = std::move(object_->flights().Join(object_, block, std::move(options)).ticket);
}

// Whether the block is in flight and has not asked for its bytes yet: somebody else has begun the
// flight just now, or it is between two attempts. Then Wait resumes the pass, or the flight's end,
// or kPatience being over.
bool Spool::IsComing(uint64_t block) {
  if (!ticket_ || ticket_.Look().phase >= FlightPhase::kStoring) return false;
  const auto resume = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Resume();
  };
  const TimePoint now = source_.scheduler_.clock().Now();
  if (!awaited_ || awaited_->block != block) {
    awaited_ = Awaited{block, now + kPatience};
    source_.scheduler_.At(awaited_->until, resume);
  }
  return now < awaited_->until && ticket_.AwaitOver(resume);
}

Result<BodyVerdict> Spool::Deliver(uint64_t block, uint64_t in_block,
                                   std::span<const std::byte> bytes) {
  std::shared_ptr<BlockSink> sink;
  uint64_t from = 0;
  bool start = false;
  {
    MutexLock lock(mu_);
    const auto it = waiting_.find(block);
    if (it == waiting_.end() && in_block == 0 && IsComing(block)) return BodyVerdict::kPause;
    // Nobody: the block is present. A joiner in the middle of it waits for the next pass.
    if (it == waiting_.end() || (!it->second.started && in_block > it->second.from)) {
      return BodyVerdict::kTaken;
    }
    sink = it->second.sink;
    from = it->second.from;
    start = in_block + bytes.size() > from && !std::exchange(it->second.started, true);
  }
  if (in_block + bytes.size() <= from) return BodyVerdict::kTaken;
  if (from > in_block) bytes = bytes.subspan(from - in_block);
  Status status;
  if (start) status = sink->OnStart(/*trusted=*/true);
  if (status) {
    auto verdict = sink->OnBytes(bytes);
    if (verdict) {
      sink->OnPiecesEnd();
      return verdict;
    }
    status = std::move(verdict).error();
  }
  EndBlock(block, std::move(status));  // that flight's trouble, not the pass's
  return BodyVerdict::kTaken;
}

void Spool::EndBlock(uint64_t block, Status status) {
  std::shared_ptr<BlockSink> sink;
  {
    MutexLock lock(mu_);
    const auto it = waiting_.find(block);
    if (it == waiting_.end() || !it->second.started) return;
    sink = std::move(it->second.sink);
    waiting_.erase(it);
  }
  sink->OnEnd(std::move(status));
}

Result<BodyVerdict> Spool::OnBody(std::span<const std::byte> bytes) {
  const uint64_t skipped = std::min<uint64_t>(skip_, bytes.size());
  skip_ -= skipped;
  bytes = bytes.subspan(skipped);
  uint64_t taken = 0;
  while (!bytes.empty()) {
    const Grid& grid = source_.options_.grid;
    if (position_ >= object_->size()) {
      return MakeError(Code::kStale, Expected().what + ": the object is longer than it was");
    }
    const uint64_t block = grid.BlockOfOffset(position_);
    const uint64_t in_block = position_ - grid.BlockOffset(block);
    const uint64_t left = grid.BlockLength(object_->size(), block) - in_block;
    if (in_block == 0) EnterBlock(block);
    const auto piece = bytes.first(std::min<uint64_t>(left, bytes.size()));
    TRY_ASSIGN(const BodyVerdict verdict, Deliver(block, in_block, piece));
    if (verdict == BodyVerdict::kPause) {
      skip_ = skipped + taken;
      return BodyVerdict::kPause;
    }
    position_ += piece.size();
    taken += piece.size();
    source_.counters_.origin_bytes.fetch_add(piece.size(), std::memory_order_relaxed);
    bytes = bytes.subspan(piece.size());
    if (piece.size() == left) {
      EndBlock(block, {});
      ticket_ = FlightTicket();
    }
  }
  return BodyVerdict::kTaken;
}

// Blocks that the pass has given are of bytes that may not be whole: they are dropped, off the
// transfer thread.
void Spool::Supersede() {
  object_->MarkSuperseded();
  object_->flights().env().blocking.Post([object = object_] {
    FlightEnv& env = object->flights().env();
    env.events.OnStale(object);
    const Status dropped = env.store.DropObject(object->stored());
    if (!dropped) LOG_WARN("dropping a spooled object: {}", dropped.error().ToString());
  });
}

void Spool::OnDone(Status status) {
  if (status && position_ != object_->size()) {
    status = MakeError(Code::kStale, Expected().what + ": the object is shorter than it was");
  }
  std::vector<std::shared_ptr<BlockSink>> failed;
  bool again = false;
  {
    MutexLock lock(mu_);
    call_ = nullptr;
    const bool more = !status || !waiting_.empty();
    if (more && position_ > 0 && object_->facts().meta.volatile_version) {
      status = MakeError(Code::kStale, Expected().what + ": it broke off, and has no version");
    }
    if (!status) {
      for (auto& [block, waiting] : waiting_) failed.push_back(std::move(waiting.sink));
      waiting_.clear();
    }
    again = !waiting_.empty();
    running_ = again;
  }
  const auto self = shared_from_this();
  if (position_ == 0 && (!status || again)) object_->flights().ForgetPass();
  if (!status && status.error().code == Code::kStale) Supersede();
  for (const auto& sink : failed) sink->OnEnd(status.error());
  ticket_ = FlightTicket();
  if (again) StartPass();
}

namespace {

class SpoolFetch final : public BlockFetch {
 public:
  SpoolFetch(std::shared_ptr<Spool> spool, uint64_t block, std::shared_ptr<BlockSink> sink)
      : spool_(std::move(spool)), block_(block), sink_(std::move(sink)) {}
  void Cancel() override { spool_->Cancel(block_, sink_); }
  void Resume() override { spool_->Resume(); }
  void Raise(Priority) override {}  // a pass has one order

 private:
  const std::shared_ptr<Spool> spool_;
  const uint64_t block_;
  const std::shared_ptr<BlockSink> sink_;
};

class NoFetch final : public BlockFetch {
 public:
  void Cancel() override {}
  void Resume() override {}
  void Raise(Priority) override {}
};

}  // namespace

SpoolSource::SpoolSource(const EngineOptions& options, HttpClient& http, EngineCounters& counters,
                         Scheduler& scheduler)
    : options_(options), http_(http), counters_(counters), scheduler_(scheduler) {}
SpoolSource::~SpoolSource() = default;

std::shared_ptr<BlockFetch> SpoolSource::Fetch(BlockRequest request,
                                               std::shared_ptr<BlockSink> sink) {
  if (request.object->size() > options_.spool_limit_bytes) {
    Error error = MakeError(Code::kTooLarge, request.object->facts().identity.redacted_url +
                                                 ": the origin ignores ranges and the object is "
                                                 "larger than --spool-limit (" +
                                                 FormatSize(options_.spool_limit_bytes) + ")");
    scheduler_.Post([sink, error] { sink->OnEnd(error); });
    return std::make_shared<NoFetch>();
  }
  std::shared_ptr<Spool> spool;
  {
    MutexLock lock(mu_);
    std::erase_if(spools_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<Spool>& slot = spools_[request.object->stored().get()];
    spool = slot.lock();
    if (spool == nullptr) {
      spool = std::make_shared<Spool>(*this, request.object);
      slot = spool;
    }
  }
  spool->Wait(request, sink);
  return std::make_shared<SpoolFetch>(std::move(spool), request.block, std::move(sink));
}

}  // namespace dartfs::core
