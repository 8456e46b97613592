#include "p2p/view_feed.h"

#include <utility>

namespace dartfs::p2p {

class ViewSubscription::Slot {
 public:
  Slot(ViewPtr first, core::UniqueFunction<void()> wake)
      : newest_(std::move(first)), wake_(std::move(wake)) {}

  void Put(ViewPtr view) {
    core::MutexLock lock(mu_);
    newest_ = std::move(view);
  }
  ViewPtr Take() {
    core::MutexLock lock(mu_);
    return std::exchange(newest_, nullptr);
  }
  void Wake() {
    if (wake_) wake_();
  }

 private:
  core::Mutex mu_;  // leaf
  ViewPtr newest_ GUARDED_BY(mu_);
  core::UniqueFunction<void()> wake_;  // constant
};

ViewSubscription::ViewSubscription(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}
ViewSubscription::~ViewSubscription() = default;

ViewPtr ViewSubscription::Take() { return slot_->Take(); }

ViewFeed::ViewFeed(std::vector<Member> members)
    : current_(std::make_shared<const View>(std::move(members))) {}
ViewFeed::~ViewFeed() = default;

ViewPtr ViewFeed::Current() const {
  core::MutexLock lock(mu_);
  return current_;
}

ViewPtr ViewFeed::Publish(std::vector<Member> members) {
  auto view = std::make_shared<const View>(std::move(members));
  std::vector<std::shared_ptr<ViewSubscription::Slot>> told;
  {
    core::MutexLock lock(mu_);
    current_ = view;
    std::erase_if(slots_, [](const auto& slot) { return slot.expired(); });
    for (const auto& weak : slots_) {
      if (auto slot = weak.lock()) {
        slot->Put(view);
        told.push_back(std::move(slot));
      }
    }
  }
  for (const auto& slot : told) slot->Wake();
  return view;
}

std::unique_ptr<ViewSubscription> ViewFeed::Subscribe(core::UniqueFunction<void()> wake) {
  core::MutexLock lock(mu_);
  auto slot = std::make_shared<ViewSubscription::Slot>(current_, std::move(wake));
  std::erase_if(slots_, [](const auto& old) { return old.expired(); });
  slots_.push_back(slot);
  return std::make_unique<ViewSubscription>(std::move(slot));
}

}  // namespace dartfs::p2p
