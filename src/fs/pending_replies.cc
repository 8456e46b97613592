#include "fs/pending_replies.h"

#include <thread>
#include <vector>

#include "core/base/check.h"

namespace dartfs::fs {

uint64_t PendingReplies::Begin(pid_t caller) {
  const uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
  Shard& shard = ShardOf(id);
  core::MutexLock lock(shard.mu);
  shard.entries.emplace(id, Entry{.caller = caller, .reply = nullptr});
  return id;
}

void PendingReplies::Add(uint64_t id, std::shared_ptr<PendingReply> reply) {
  bool interrupted = false;
  {
    Shard& shard = ShardOf(id);
    core::MutexLock lock(shard.mu);
    const auto found = shard.entries.find(id);
    DARTFS_CHECK(found != shard.entries.end());
    found->second.reply = std::move(reply);
    interrupted = found->second.interrupted;
  }
  if (interrupted) Interrupt(id);
}

void PendingReplies::Remove(uint64_t id) {
  std::shared_ptr<PendingReply> dropped;  // outside the lock
  Shard& shard = ShardOf(id);
  core::MutexLock lock(shard.mu);
  const auto found = shard.entries.find(id);
  if (found == shard.entries.end()) return;
  dropped = std::move(found->second.reply);
  shard.entries.erase(found);
}

void PendingReplies::Interrupt(uint64_t id) {
  scheduler_.Post([weak = weak_from_this(), id] {
    if (const auto self = weak.lock()) self->LookAt(id);
  });
}

void PendingReplies::LookAt(uint64_t id) {
  Entry entry;
  {
    Shard& shard = ShardOf(id);
    core::MutexLock lock(shard.mu);
    const auto found = shard.entries.find(id);
    if (found == shard.entries.end()) return;
    if (found->second.reply == nullptr) found->second.interrupted = true;
    entry = found->second;
  }
  if (entry.reply == nullptr) return;
  switch (look_(entry.caller)) {
    case CallerState::kDying:
      entry.reply->Fail(core::MakeError(core::Code::kCancelled, "the caller is being killed"));
      return;
    case CallerState::kUnseen:
      return;
    case CallerState::kAlive:
      LookAgain(id, kLookInterval);
  }
}

void PendingReplies::LookAgain(uint64_t id, core::Duration delay) {
  scheduler_.After(delay, [weak = weak_from_this(), id] {
    if (const auto self = weak.lock()) self->LookAt(id);
  });
}

void PendingReplies::FailAll(const core::Error& error) {
  std::vector<std::shared_ptr<PendingReply>> waiting;
  for (Shard& shard : shards_) {
    core::MutexLock lock(shard.mu);
    for (const auto& [id, entry] : shard.entries) {
      if (entry.reply != nullptr) waiting.push_back(entry.reply);
    }
  }
  for (const auto& reply : waiting) reply->Fail(error);
}

bool PendingReplies::WaitEmpty(core::Duration timeout) {
  // Only at the end of a mount, for a moment: not worth a condition variable on every request.
  constexpr core::Duration kStep = std::chrono::milliseconds(5);
  for (core::Duration waited{}; size() != 0; waited += kStep) {
    if (waited >= timeout) return false;
    std::this_thread::sleep_for(kStep);
  }
  return true;
}

size_t PendingReplies::size() const {
  size_t total = 0;
  for (const Shard& shard : shards_) {
    core::MutexLock lock(shard.mu);
    total += shard.entries.size();
  }
  return total;
}

}  // namespace dartfs::fs
