// Views over time: the current one, and every change for who wants to know.
#pragma once

#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/unique_function.h"
#include "p2p/view.h"

namespace dartfs::p2p {

// What one subscriber has not seen yet: the newest view alone. Those between are passed over, so
// that who publishes never waits. Ends with the object.
class ViewSubscription {
 public:
  class Slot;
  explicit ViewSubscription(std::shared_ptr<Slot> slot);
  ~ViewSubscription();
  // The newest view if it has not been taken yet, else null. Does not block.
  ViewPtr Take();

 private:
  const std::shared_ptr<Slot> slot_;
};

// Thread-safe. Publish calls are linear: of two, the later one owns Current, and every subscriber
// sees them in that order.
class ViewFeed {
 public:
  explicit ViewFeed(std::vector<Member> members);
  ~ViewFeed();

  ViewPtr Current() const;  // never null
  ViewPtr Publish(std::vector<Member> members);
  // The current view can be taken at once. `wake` runs after each Publish, on its thread, without a
  // lock; one that had begun may still run when the subscription ends.
  std::unique_ptr<ViewSubscription> Subscribe(core::UniqueFunction<void()> wake = {});

 private:
  mutable core::Mutex mu_;  // before a slot's
  ViewPtr current_ GUARDED_BY(mu_);
  std::vector<std::weak_ptr<ViewSubscription::Slot>> slots_ GUARDED_BY(mu_);
};

}  // namespace dartfs::p2p
