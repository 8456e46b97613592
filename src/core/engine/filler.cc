#include "core/engine/filler.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/text.h"
#include "core/engine/flight.h"
#include "core/engine/flight_env.h"

namespace dartfs::core {
namespace {

// While others hold all memory that read-ahead may have.
constexpr Duration kWaitForMemory = std::chrono::milliseconds(100);
// Blocks that go again while the job runs (evicted, damaged) are fetched again, this often.
constexpr int kMaxPasses = 3;
// Of failures in a row that time may mend: a few minutes.
constexpr int kMaxFailures = 10;
constexpr Duration kFirstBackoff = std::chrono::seconds(1);
constexpr Duration kMaxBackoff = std::chrono::seconds(30);

bool TimeMayMend(Code code) {
  switch (code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kTooManyRequests:
    case Code::kBadResponse:
    case Code::kBusy:
    case Code::kCancelled:  // by others' leaving
      return true;
    default:
      return false;
  }
}

}  // namespace

struct Filler::State {
  explicit State(FlightEnv& e, Limits l) : env(e), limits(l) {}

  FlightEnv& env;
  const Limits limits;
  Mutex mu;  // before no other
  std::deque<std::shared_ptr<Job>> waiting GUARDED_BY(mu);
  std::unordered_set<std::shared_ptr<Job>> running GUARDED_BY(mu);
  // Between two tries of an origin that fails: they hold up nobody.
  std::unordered_set<std::shared_ptr<Job>> resting GUARDED_BY(mu);
  bool stopped GUARDED_BY(mu) = false;

  Status Admit(const std::shared_ptr<Job>& job) EXCLUDES(mu);
  void StartNext() EXCLUDES(mu);
  void Rest(const std::shared_ptr<Job>& job) EXCLUDES(mu);
  void GoOn(const std::shared_ptr<Job>& job) EXCLUDES(mu);
  void Ended(const std::shared_ptr<Job>& job) EXCLUDES(mu);
};

// One object. `Drive` joins blocks until enough are under way; each that is through drives on.
class Filler::Job : public std::enable_shared_from_this<Filler::Job> {
 public:
  Job(std::shared_ptr<State> state, std::shared_ptr<Object> object, Requester requester,
      FillDone done)
      : state_(std::move(state)),
        object_(std::move(object)),
        requester_(std::make_shared<const Requester>(std::move(requester))),
        blocks_(state_->env.options.grid.BlockCount(object_->size())),
        done_(std::move(done)) {}

  void Drive() EXCLUDES(mu_);
  void Finish(Status status) EXCLUDES(mu_);
  FillProgress Progress() const EXCLUDES(mu_);

 private:
  // What Drive does next: fetch a block, look again after a while, end, or nothing until a block
  // is through.
  struct Next {
    std::optional<uint64_t> block = {};
    Duration later{};
    bool rests = false;  // until then
    std::optional<Status> over = {};
  };
  Next Choose() REQUIRES(mu_);
  Next EndOfPass() REQUIRES(mu_);
  void Fetch(uint64_t block) EXCLUDES(mu_);
  void OnBlock(uint64_t block) EXCLUDES(mu_);
  void NoteFailure(uint64_t block, Error error) REQUIRES(mu_);
  void DriveLater(Duration delay, bool rests) EXCLUDES(mu_);
  void OnTimer(bool rested) EXCLUDES(mu_);
  Error Say(Code code, const std::string& what) const {
    return MakeError(code, object_->facts().identity.redacted_url + ": " + what);
  }

  const std::shared_ptr<State> state_;
  const std::shared_ptr<Object> object_;
  const std::shared_ptr<const Requester> requester_;
  const uint64_t blocks_;
  mutable Mutex mu_;  // before the flights'
  std::unordered_map<uint64_t, FlightTicket> under_way_ GUARDED_BY(mu_);
  std::vector<bool> present_ GUARDED_BY(mu_);  // as this pass began
  uint64_t next_ GUARDED_BY(mu_) = 0;
  int passes_ GUARDED_BY(mu_) = 0;
  int failures_ GUARDED_BY(mu_) = 0;  // in a row
  Duration backoff_ GUARDED_BY(mu_){};
  TimerId timer_ GUARDED_BY(mu_) = kNoTimer;
  bool over_ GUARDED_BY(mu_) = false;
  std::optional<Error> error_ GUARDED_BY(mu_);
  FillDone done_ GUARDED_BY(mu_);
};

void Filler::Job::Drive() {
  while (true) {
    Next next;
    {
      MutexLock lock(mu_);
      if (over_ || timer_ != kNoTimer) return;
      next = Choose();
    }
    if (next.over) return Finish(*std::move(next.over));
    if (next.later > Duration::zero()) return DriveLater(next.later, next.rests);
    if (!next.block) return;
    Fetch(*next.block);
  }
}

Filler::Job::Next Filler::Job::Choose() {
  FlightEnv& env = state_->env;
  if (object_->superseded()) return {.over = Say(Code::kStale, "there is another version now")};
  if (error_) return {.over = Status(*error_)};
  if (backoff_ > Duration::zero() && under_way_.empty()) {
    return {.later = std::exchange(backoff_, {}), .rests = true};
  }
  if (backoff_ > Duration::zero()) return {};
  if (present_.empty()) present_ = env.store.PresentMap(*object_->stored());
  present_.resize(blocks_);
  while (next_ < blocks_ && (present_[next_] || under_way_.contains(next_))) ++next_;
  if (next_ == blocks_) return under_way_.empty() ? EndOfPass() : Next{};
  if (under_way_.size() >= state_->limits.blocks) return {};
  const uint64_t bytes = env.options.grid.BlockLength(object_->size(), next_);
  const uint64_t held = env.read_ahead_bytes.load() + bytes;
  // Half of what read-ahead may hold is left to readers' own.
  if (!under_way_.empty() && held > env.memory.read_ahead_limit_bytes() / 2) return {};
  if (held > env.memory.read_ahead_limit_bytes()) return {.later = kWaitForMemory};
  return {.block = next_++};
}

// Nothing is under way, and all blocks have been looked at.
Filler::Job::Next Filler::Job::EndOfPass() {
  Store& store = state_->env.store;
  if (store.PresentBlocks(*object_->stored()) == blocks_) return {.over = Status()};
  if (++passes_ >= kMaxPasses) {
    return {.over = Say(Code::kNoSpace, "its blocks do not stay in the cache")};
  }
  present_ = store.PresentMap(*object_->stored());
  next_ = 0;
  return {.later = kWaitForMemory};
}

void Filler::Job::Fetch(uint64_t block) {
  TicketOptions options;
  options.requester = requester_;
  options.priority = Priority::kBackground;
  FlightTable::Joined joined = object_->flights().Join(object_, block, std::move(options));
  if (!joined.ticket) return;
  const std::weak_ptr<Job> weak = weak_from_this();
  Waker wake = [weak, block] {
    if (const auto self = weak.lock()) self->OnBlock(block);
  };
  FlightTicket dropped;
  bool waits = false;
  {
    MutexLock lock(mu_);
    if (over_) {
      dropped = std::move(joined.ticket);
      return;
    }
    FlightTicket& mine = under_way_[block];
    mine = std::move(joined.ticket);
    waits = mine.AwaitOver(std::move(wake));
  }
  if (waits) return;
  state_->env.scheduler.Post([weak, block] {
    if (const auto self = weak.lock()) self->OnBlock(block);
  });
}

void Filler::Job::OnBlock(uint64_t block) {
  FlightTicket ticket;
  {
    MutexLock lock(mu_);
    const auto found = under_way_.find(block);
    if (found == under_way_.end()) return;
    ticket = std::move(found->second);
    under_way_.erase(found);
    FlightView view = ticket.Look();
    if (view.phase == FlightPhase::kFailed) {
      NoteFailure(block, *std::move(view.error));
    } else if (view.phase == FlightPhase::kUnstored) {
      NoteFailure(block, Say(Code::kNoSpace, "the cache does not keep its blocks at present"));
    } else {
      failures_ = 0;
    }
  }
  Drive();
}

void Filler::Job::NoteFailure(uint64_t block, Error error) {
  next_ = std::min(next_, block);
  // Those that were under way together count as one.
  const bool counted = backoff_ > Duration::zero() || timer_ != kNoTimer;
  if (!counted) ++failures_;
  if (!TimeMayMend(error.code) || failures_ > kMaxFailures) {
    error_ = std::move(error);
    return;
  }
  if (counted) return;
  backoff_ = std::min<Duration>(kFirstBackoff * (1 << std::min(failures_ - 1, 5)), kMaxBackoff);
}

void Filler::Job::DriveLater(Duration delay, bool rests) {
  {
    MutexLock lock(mu_);
    if (over_ || timer_ != kNoTimer) return;
    const std::weak_ptr<Job> weak = weak_from_this();
    timer_ = state_->env.scheduler.After(delay, [weak, rests] {
      if (const auto self = weak.lock()) self->OnTimer(rests);
    });
  }
  if (rests) state_->Rest(shared_from_this());
}

void Filler::Job::OnTimer(bool rested) {
  {
    MutexLock lock(mu_);
    timer_ = kNoTimer;
  }
  if (rested) {
    state_->GoOn(shared_from_this());
  } else {
    Drive();
  }
}

void Filler::Job::Finish(Status status) {
  const auto self = shared_from_this();  // `done` may drop the job
  FillDone done;
  std::unordered_map<uint64_t, FlightTicket> under_way;
  {
    MutexLock lock(mu_);
    if (std::exchange(over_, true)) return;
    if (!status) error_ = status.error();
    done = std::move(done_);
    done_ = nullptr;
    under_way.swap(under_way_);
    if (timer_ != kNoTimer) state_->env.scheduler.Cancel(timer_);
  }
  under_way.clear();
  state_->Ended(self);
  if (done) done(std::move(status));
}

FillProgress Filler::Job::Progress() const {
  FillProgress progress;
  progress.total_bytes = object_->size();
  const uint64_t present = state_->env.store.PresentBlocks(*object_->stored());
  const uint64_t block_bytes = state_->env.options.grid.block_size;
  progress.present_bytes = std::min(present * block_bytes, progress.total_bytes);
  MutexLock lock(mu_);
  progress.done = over_;
  if (over_) progress.error = error_;
  return progress;
}

Status Filler::State::Admit(const std::shared_ptr<Job>& job) {
  MutexLock lock(mu);
  if (stopped) return MakeError(Code::kCancelled, "stopping");
  if (waiting.size() >= limits.waiting) {
    return MakeError(Code::kBusy, "too many objects wait to be filled; try again later");
  }
  waiting.push_back(job);
  return {};
}

void Filler::State::StartNext() {
  while (true) {
    std::shared_ptr<Job> job;
    {
      MutexLock lock(mu);
      if (stopped || waiting.empty() || running.size() >= limits.running) return;
      job = std::move(waiting.front());
      waiting.pop_front();
      running.insert(job);
    }
    job->Drive();
  }
}

void Filler::State::Rest(const std::shared_ptr<Job>& job) {
  {
    MutexLock lock(mu);
    if (running.erase(job) > 0) resting.insert(job);
  }
  StartNext();
}

void Filler::State::GoOn(const std::shared_ptr<Job>& job) {
  {
    MutexLock lock(mu);
    if (resting.erase(job) > 0) waiting.push_back(job);
  }
  StartNext();
}

void Filler::State::Ended(const std::shared_ptr<Job>& job) {
  {
    MutexLock lock(mu);
    running.erase(job);
    resting.erase(job);
    std::erase(waiting, job);
  }
  StartNext();
}

class Filler::Handle final : public Fill {
 public:
  explicit Handle(std::shared_ptr<Job> job) : job_(std::move(job)) {}
  ~Handle() override { job_->Finish(MakeError(Code::kCancelled, "no longer wanted")); }
  FillProgress Progress() const override { return job_->Progress(); }

 private:
  const std::shared_ptr<Job> job_;
};

Filler::Filler(FlightEnv& env, Limits limits) : state_(std::make_shared<State>(env, limits)) {}

Filler::~Filler() { Stop(); }

std::unique_ptr<Fill> Filler::Start(std::shared_ptr<Object> object, Requester requester,
                                    FillDone done) {
  const uint64_t size = object->size();
  const auto job =
      std::make_shared<Job>(state_, std::move(object), std::move(requester), std::move(done));
  auto handle = std::make_unique<Handle>(job);
  const uint64_t limit = state_->env.store.Stats().limit_bytes;
  if (size > limit) {
    job->Finish(MakeError(Code::kTooLarge, "an object of " + FormatSize(size) +
                                               " does not fit into the cache of " +
                                               FormatSize(limit) + " (--cache-size)"));
  } else if (Status admitted = state_->Admit(job); !admitted) {
    job->Finish(std::move(admitted));
  } else {
    state_->StartNext();
  }
  return handle;
}

void Filler::Stop() {
  std::vector<std::shared_ptr<Job>> all;
  {
    MutexLock lock(state_->mu);
    state_->stopped = true;
    all.assign(state_->running.begin(), state_->running.end());
    all.insert(all.end(), state_->resting.begin(), state_->resting.end());
    all.insert(all.end(), state_->waiting.begin(), state_->waiting.end());
  }
  for (const auto& job : all) job->Finish(MakeError(Code::kCancelled, "stopping"));
}

}  // namespace dartfs::core
