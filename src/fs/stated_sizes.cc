#include "fs/stated_sizes.h"

#include <string>

#include "core/base/hash.h"
#include "core/engine/object.h"

namespace dartfs::fs {
namespace {

constexpr size_t kMostWrong = 64 * 1024;

uint64_t KeyOf(std::string_view url, uint64_t size) {
  return core::Xxh3(std::string(url) + ' ' + std::to_string(size));
}

}  // namespace

bool StatedSizes::Believed(std::string_view url, uint64_t size) const {
  const uint64_t key = KeyOf(url, size);
  core::MutexLock lock(mu_);
  return !wrong_.contains(key);
}

bool StatedSizes::Disbelieve(std::string_view url, uint64_t size) {
  const uint64_t key = KeyOf(url, size);
  core::MutexLock lock(mu_);
  if (wrong_.size() >= kMostWrong) wrong_.clear();
  return wrong_.insert(key).second;
}

void StatedSizes::Forget() {
  core::MutexLock lock(mu_);
  wrong_.clear();
}

bool Contradicts(core::Engine& engine, const core::Url& url, std::string_view digest,
                 const std::optional<Promise>& promise) {
  if (!promise) return false;
  const auto opened = engine.OpenCached(url, digest);
  return opened && *opened && (**opened)->size() != promise->size;
}

}  // namespace dartfs::fs
