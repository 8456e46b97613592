#include "core/store/name_cache.h"

#include <utility>

namespace dartfs::core {

bool NameCache::Put(NameTable table, std::string_view name, std::optional<std::string> value) {
  if (value && value->size() > kMaxValueBytes) return false;
  const std::string key = KeyOf(table, name);
  Entry entry{std::move(value), false};
  MutexLock lock(mu_);
  const auto at = entries_.find(key);
  const uint64_t before = at == entries_.end() ? 0 : BytesOf(key, at->second);
  const uint64_t after = BytesOf(key, entry);
  if (bytes_ - before + after > kMaxBytes) return false;
  bytes_ = bytes_ - before + after;
  entries_[key] = std::move(entry);
  return true;
}

NameCache::Found NameCache::Get(NameTable table, std::string_view name) {
  const std::string key = KeyOf(table, name);
  MutexLock lock(mu_);
  const auto at = entries_.find(key);
  if (at == entries_.end()) return {};
  return {true, at->second.value};
}

bool NameCache::empty() {
  MutexLock lock(mu_);
  return entries_.empty();
}

std::vector<IndexBatch::Name> NameCache::Take() {
  MutexLock lock(mu_);
  std::vector<IndexBatch::Name> taken;
  taken.reserve(entries_.size());
  for (auto& [key, entry] : entries_) {
    entry.taken = true;
    taken.push_back({static_cast<NameTable>(key[0]), key.substr(1), entry.value});
  }
  return taken;
}

void NameCache::Committed() {
  MutexLock lock(mu_);
  for (auto at = entries_.begin(); at != entries_.end();) {
    if (!at->second.taken) {
      ++at;
      continue;
    }
    bytes_ -= BytesOf(at->first, at->second);
    at = entries_.erase(at);
  }
}

void NameCache::Failed() {
  MutexLock lock(mu_);
  for (auto& [key, entry] : entries_) entry.taken = false;
}

void NameCache::Clear() {
  MutexLock lock(mu_);
  entries_.clear();
  bytes_ = 0;
}

std::string NameCache::KeyOf(NameTable table, std::string_view name) {
  std::string key(1, static_cast<char>(table));
  key += name;
  return key;
}

uint64_t NameCache::BytesOf(const std::string& key, const Entry& entry) {
  constexpr uint64_t kOverhead = 128;
  return key.size() + (entry.value ? entry.value->size() : 0) + kOverhead;
}

}  // namespace dartfs::core
