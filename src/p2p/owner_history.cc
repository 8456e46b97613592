#include "p2p/owner_history.h"

#include <algorithm>
#include <utility>

#include "p2p/chunk_tree.h"

namespace dartfs::p2p {
namespace {

// Of the views of a moment the last is kept: a cluster that changes each second is not ranked sixty
// times for one answer.
constexpr core::Duration kMoment = std::chrono::seconds(5);
constexpr size_t kMaxKnown = 65536;

}  // namespace

OwnerHistory::OwnerHistory(std::string self, ViewPtr view, bool settled, core::TimePoint now)
    : self_(std::move(self)), view_(std::move(view)), settled_at_(settled ? now : now + kNew) {}

void OwnerHistory::OnView(ViewPtr view, core::TimePoint now) {
  if (view == view_) return;
  Forget(now);
  known_.clear();
  const bool replaces = past_.size() > 1 && now - past_[past_.size() - 2].until < kMoment;
  if (replaces) past_.pop_back();
  past_.push_back({std::exchange(view_, std::move(view)), now});
}

void OwnerHistory::Forget(core::TimePoint now) {
  while (!past_.empty() && now - past_.front().until >= kNew) {
    past_.pop_front();
    known_.clear();
  }
}

bool OwnerHistory::IsNew(uint64_t chunk_key, core::TimePoint now) {
  Forget(now);
  if (now < settled_at_) return true;
  if (past_.empty()) return false;
  if (known_.size() >= kMaxKnown) known_.clear();
  const auto [at, added] = known_.try_emplace(chunk_key, false);
  if (added) {
    at->second = std::any_of(past_.begin(), past_.end(), [&](const Past& past) {
      return !OwnsChunk(*past.view, self_, chunk_key, 1);
    });
  }
  return at->second;
}

}  // namespace dartfs::p2p
