#include "core/store/committer.h"

#include <algorithm>
#include <utility>

#include "core/base/thread.h"

namespace dartfs::core {
namespace {

constexpr auto kLeftoverInterval = std::chrono::milliseconds(250);
constexpr auto kIdleInterval = std::chrono::seconds(1);  // to look how full the disk is
constexpr size_t kManyUses = 4096;

}  // namespace

Committer::Committer(std::shared_ptr<StoreCore> core) : core_(std::move(core)), round_(*core_) {
  MutexLock lock(stop_mu_);
  thread_ = StartThread("store-commit", [this] { Run(); });
}

void Committer::NotePresent(PresentBlock block) {
  core_->counters.pending_blocks.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mu_);
  work_bytes_ += block.object->StoredBytes(block.block);
  work_.present.push_back(std::move(block));
  NoteWork();
  if (work_bytes_ >= core_->options.commit_bytes) wake_.NotifyOne();
}

void Committer::NoteDeparture(Departure departure) {
  MutexLock lock(mu_);
  work_.departures.push_back(std::move(departure));
  NoteWork();
}

void Committer::NoteUse(const std::shared_ptr<StoredObject>& object, uint64_t chunk) {
  if (object->is_volatile() || !object->MarkDirty(chunk)) return;
  MutexLock lock(mu_);
  work_.uses.emplace_back(object, chunk);
}

void Committer::NoteMeta(const std::shared_ptr<StoredObject>& object) {
  MutexLock lock(mu_);
  work_.metas.push_back(object);
  NoteWork();
}

void Committer::NoteNames() {
  MutexLock lock(mu_);
  NoteWork();
}

void Committer::NoteEmpty(const StoreKey& key) {
  MutexLock lock(mu_);
  work_.empties.push_back(key);
}

void Committer::WantRoom() {
  MutexLock lock(mu_);
  want_room_ = true;
  wake_.NotifyOne();
}

void Committer::NoteWork() {
  if (oldest_work_ != SteadyTime::max()) return;
  oldest_work_ = std::chrono::steady_clock::now();
  wake_.NotifyOne();  // to wait for less than it does
}

Status Committer::Flush() { return Await(std::make_shared<Order>()); }

Status Committer::Drop(const std::shared_ptr<StoredObject>& object) {
  return AwaitFor(Order::Kind::kDrop, object);
}

Status Committer::MarkLent(const std::shared_ptr<StoredObject>& object) {
  auto order = std::make_shared<Order>();
  order->kind = Order::Kind::kMarkLent;
  order->object = object;
  Status status = Await(order, core_->options.lend_patience);
  if (status || status.error().code != Code::kDeadlineExceeded) return status;
  return MakeError(Code::kBusy, std::move(status.error().context));
}

Status Committer::SetPinned(const std::shared_ptr<StoredObject>& object, bool pinned) {
  return AwaitFor(pinned ? Order::Kind::kPin : Order::Kind::kUnpin, object);
}

Result<uint64_t> Committer::Evict(const std::shared_ptr<StoredObject>& object) {
  auto order = std::make_shared<Order>();
  order->kind = Order::Kind::kEvict;
  order->object = object;
  TRY(Await(order));
  return order->evicted_bytes;
}

Status Committer::AwaitFor(Order::Kind kind, const std::shared_ptr<StoredObject>& object) {
  auto order = std::make_shared<Order>();
  order->kind = kind;
  order->object = object;
  return Await(order);
}

Status Committer::Rekey(const std::shared_ptr<StoredObject>& object, const StoreKey& key,
                        const ObjectMeta& meta) {
  auto order = std::make_shared<Order>();
  order->kind = Order::Kind::kRekey;
  order->object = object;
  order->facts = {key, meta};
  return Await(order);
}

Status Committer::Await(const std::shared_ptr<Order>& order, std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  MutexLock lock(mu_);
  if (stopped_) return MakeError(Code::kCancelled, "the store has stopped");
  orders_.push_back(order);
  wake_.NotifyOne();
  while (!order->done) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) {
      return MakeError(Code::kDeadlineExceeded, "the cache disk does not answer");
    }
    order_done_.WaitFor(mu_, left);
  }
  return order->status;
}

void Committer::Run() {
  for (;;) {
    Round round = WaitForRound();
    const bool last = round.last;
    Status status = Do(std::move(round));
    MutexLock lock(mu_);
    last_status_ = std::move(status);
    has_leftovers_ = round_.has_leftovers();
    if (last) return;
  }
}

Committer::Round Committer::WaitForRound() {
  MutexLock lock(mu_);
  for (;;) {
    const auto wait = UntilDue(std::chrono::steady_clock::now());
    if (wait <= std::chrono::nanoseconds::zero()) break;
    wake_.WaitFor(mu_, wait);
  }
  Round round;
  round.work = std::exchange(work_, {});
  round.orders = std::exchange(orders_, {});
  round.last = stopping_;
  stopped_ = stopping_;
  work_bytes_ = 0;
  oldest_work_ = SteadyTime::max();
  want_room_ = false;
  last_round_ = std::chrono::steady_clock::now();
  return round;
}

std::chrono::nanoseconds Committer::UntilDue(SteadyTime now) {
  if (stopping_ || want_room_ || !orders_.empty()) return std::chrono::nanoseconds::zero();
  if (work_bytes_ >= core_->options.commit_bytes || work_.uses.size() >= kManyUses) {
    return std::chrono::nanoseconds::zero();
  }
  SteadyTime due = last_round_ + kIdleInterval;
  if (oldest_work_ != SteadyTime::max()) {
    due = std::min(due, oldest_work_ + core_->options.commit_interval);
  }
  if (has_leftovers_) due = std::min(due, last_round_ + kLeftoverInterval);
  return due - now;
}

Status Committer::Do(Round round) {
  const Status status = round_.Run(std::move(round.work));
  std::vector<std::shared_ptr<Order>> marks;
  for (const auto& order : round.orders) {
    if (order->kind == Order::Kind::kMarkLent) {
      marks.push_back(order);
    } else {
      End(*order, Carry(*order, status));
    }
  }
  CarryMarks(marks);
  return status;
}

void Committer::CarryMarks(const std::vector<std::shared_ptr<Order>>& marks) {
  if (marks.empty()) return;
  std::vector<std::shared_ptr<StoredObject>> objects;
  for (const auto& order : marks) objects.push_back(order->object);
  auto outcomes = round_.MarkLent(objects);
  for (size_t i = 0; i < marks.size(); ++i) End(*marks[i], std::move(outcomes[i]));
}

void Committer::End(Order& order, Status outcome) {
  MutexLock lock(mu_);
  order.status = std::move(outcome);
  order.done = true;
  order_done_.NotifyAll();
}

Status Committer::Carry(Order& order, const Status& round_status) {
  switch (order.kind) {
    case Order::Kind::kFlush:
      return round_status;
    case Order::Kind::kDrop:
      return round_.DropObject(order.object);
    case Order::Kind::kRekey:
      return round_.Rekey(order.object, std::move(order.facts));
    case Order::Kind::kMarkLent:
      break;  // CarryMarks
    case Order::Kind::kPin:
      return round_.SetPinned(order.object, true);
    case Order::Kind::kUnpin:
      return round_.SetPinned(order.object, false);
    case Order::Kind::kEvict: {
      const auto evicted = round_.EvictObject(order.object);
      if (!evicted) return evicted.error();
      order.evicted_bytes = *evicted;
      return {};
    }
  }
  return round_status;
}

Status Committer::Stop() {
  MutexLock stop_lock(stop_mu_);
  {
    MutexLock lock(mu_);
    stopping_ = true;
    wake_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
  MutexLock lock(mu_);
  return last_status_;
}

}  // namespace dartfs::core
