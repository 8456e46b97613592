// HandleTable: file handles as numbers, never pointers. Thread-safe; sharded, so that reads of
// different files do not meet.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace dartfs::fs {

using HandleId = uint64_t;

template <typename T>
class HandleTable {
 public:
  HandleId Add(std::shared_ptr<T> value) {
    const HandleId id = next_.fetch_add(1, std::memory_order_relaxed);
    Shard& shard = ShardOf(id);
    core::MutexLock lock(shard.mu);
    shard.values.emplace(id, std::move(value));
    return id;
  }

  // Null when there is no such handle.
  std::shared_ptr<T> Get(HandleId id) const {
    const Shard& shard = ShardOf(id);
    core::MutexLock lock(shard.mu);
    const auto found = shard.values.find(id);
    return found == shard.values.end() ? nullptr : found->second;
  }

  // What the handle named, so that it goes on the caller's stack, outside the lock.
  std::shared_ptr<T> Remove(HandleId id) {
    Shard& shard = ShardOf(id);
    core::MutexLock lock(shard.mu);
    const auto found = shard.values.find(id);
    if (found == shard.values.end()) return nullptr;
    std::shared_ptr<T> value = std::move(found->second);
    shard.values.erase(found);
    return value;
  }

  std::vector<std::shared_ptr<T>> RemoveAll() {
    std::vector<std::shared_ptr<T>> all;
    for (Shard& shard : shards_) {
      core::MutexLock lock(shard.mu);
      for (auto& [id, value] : shard.values) all.push_back(std::move(value));
      shard.values.clear();
    }
    return all;
  }

  size_t size() const {
    size_t total = 0;
    for (const Shard& shard : shards_) {
      core::MutexLock lock(shard.mu);
      total += shard.values.size();
    }
    return total;
  }

 private:
  struct Shard {
    mutable core::Mutex mu;  // leaf
    std::unordered_map<HandleId, std::shared_ptr<T>> values GUARDED_BY(mu);
  };
  Shard& ShardOf(HandleId id) { return shards_[id % shards_.size()]; }
  const Shard& ShardOf(HandleId id) const { return shards_[id % shards_.size()]; }

  std::atomic<HandleId> next_{1};
  std::array<Shard, 16> shards_;
};

}  // namespace dartfs::fs
