#include "httpd/requester_memo.h"

#include <utility>

namespace dartfs::httpd {
namespace {

constexpr size_t kMostKnown = 256;
constexpr size_t kLongestTarget = 1024;

const std::string& KeyOf(Door door, std::string_view target) {
  static thread_local std::string key;
  key.assign(1, static_cast<char>(door)).append(target);
  return key;
}

}  // namespace

std::shared_ptr<const core::Requester> RequesterMemo::Find(Door door, std::string_view target) {
  const std::string& key = KeyOf(door, target);
  core::MutexLock lock(mu_);
  const auto it = known_.find(key);
  return it == known_.end() ? nullptr : it->second;
}

void RequesterMemo::Put(Door door, std::string_view target,
                        std::shared_ptr<const core::Requester> requester) {
  if (target.size() > kLongestTarget) return;
  decltype(known_) dropped;
  core::MutexLock lock(mu_);
  if (known_.size() >= kMostKnown) dropped.swap(known_);
  known_.insert_or_assign(KeyOf(door, target), std::move(requester));
}

}  // namespace dartfs::httpd
