#include "core/store/object_table.h"

#include <utility>

namespace dartfs::core {

std::shared_ptr<StoredObject> ObjectTable::Find(const StoreKey& key) {
  Shard& shard = ShardOf(key);
  MutexLock lock(shard.mu);
  const auto at = shard.objects.find(key);
  return at == shard.objects.end() ? nullptr : at->second;
}

Result<std::shared_ptr<StoredObject>> ObjectTable::FindOrAdd(const StoreKey& key, uint64_t size,
                                                             std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  Shard& shard = ShardOf(key);
  MutexLock lock(shard.mu);
  while (shard.leaving.count(key) > 0) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) {
      return MakeError(Code::kBusy, "object " + key.ToHex() + " is still being removed");
    }
    shard.left.WaitFor(shard.mu, left);
  }
  auto& object = shard.objects[key];
  if (object == nullptr) object = std::make_shared<StoredObject>(geometry_, key, size, usage_);
  return object;
}

bool ObjectTable::RemoveIfIdle(const std::shared_ptr<StoredObject>& object,
                               const std::vector<uint64_t>& claimed) {
  constexpr long kTableAndCaller = 2;
  const StoreKey key = object->key();
  Shard& shard = ShardOf(key);
  MutexLock lock(shard.mu);
  const auto at = shard.objects.find(key);
  if (at == shard.objects.end() || at->second != object) return false;
  // Nobody can come by another reference meanwhile, as that takes this lock.
  if (object.use_count() != kTableAndCaller || !object->HoldsOnly(claimed)) {
    return false;
  }
  shard.objects.erase(at);
  shard.leaving.insert(key);
  return true;
}

bool ObjectTable::Remove(const std::shared_ptr<StoredObject>& object) {
  const StoreKey key = object->key();
  Shard& shard = ShardOf(key);
  MutexLock lock(shard.mu);
  const auto at = shard.objects.find(key);
  if (at == shard.objects.end() || at->second != object) return false;
  shard.objects.erase(at);
  shard.leaving.insert(key);
  return true;
}

bool ObjectTable::ClaimName(const StoreKey& key) {
  Shard& shard = ShardOf(key);
  MutexLock lock(shard.mu);
  return shard.objects.count(key) == 0 && shard.leaving.insert(key).second;
}

void ObjectTable::EndLeaving(const StoreKey& key) {
  Shard& shard = ShardOf(key);
  MutexLock lock(shard.mu);
  shard.leaving.erase(key);
  shard.left.NotifyAll();
}

// Two locks chosen at run time are beyond the analysis.
void ObjectTable::Move(const std::shared_ptr<StoredObject>& object,
                       ObjectFacts facts) NO_THREAD_SAFETY_ANALYSIS {
  const StoreKey from = object->key();
  const StoreKey to = facts.key;
  Shard& source = ShardOf(from);
  Shard& target = ShardOf(to);
  Shard& first = ShardIndex(from) < ShardIndex(to) ? source : target;
  Shard& second = &first == &source ? target : source;
  first.mu.Lock();
  if (&second != &first) second.mu.Lock();
  source.objects.erase(from);
  source.leaving.insert(from);
  target.objects[to] = object;
  target.leaving.erase(to);
  object->SetFacts(std::move(facts));
  target.left.NotifyAll();
  if (&second != &first) second.mu.Unlock();
  first.mu.Unlock();
}

bool ObjectTable::TrimIfIdle(const std::shared_ptr<StoredObject>& object) {
  constexpr long kTableAndCaller = 2;
  Shard& shard = ShardOf(object->key());
  MutexLock lock(shard.mu);
  if (object.use_count() != kTableAndCaller) return false;
  object->Trim();
  return true;
}

void ObjectTable::ForEach(const std::function<void(const std::shared_ptr<StoredObject>&)>& visit) {
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mu);
    for (const auto& [key, object] : shard.objects) visit(object);
  }
}

void ObjectTable::Reserve(size_t objects) {
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mu);
    shard.objects.reserve(objects / kShards);
  }
}

size_t ObjectTable::size() {
  size_t count = 0;
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mu);
    count += shard.objects.size();
  }
  return count;
}

}  // namespace dartfs::core
