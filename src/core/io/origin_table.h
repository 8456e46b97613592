// OriginTable: the queue, throttle and counters of each origin, by authority; bounded. Pure, not
// thread-safe: one table belongs to one transfer thread's mailbox, whose lock guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/io/http_client.h"
#include "core/io/origin_queue.h"

namespace dartfs::core {

class OriginTable final {
 public:
  // Stays where it is while any call of it waits or holds a slot.
  struct Origin {
    explicit Origin(const OriginQueue::Limits& limits) : queue(limits) {}
    OriginQueue queue;
    OriginStatus status;  // counters only; Snapshot fills in the rest
    TimePoint last_used;
    TimePoint last_error_at;
    std::optional<TimePoint> told_at;  // when its trouble was last worth a line in the log
    bool in_trouble = false;           // as the log has it
    bool touched = false;              // in touched_
    std::optional<TimePoint> wake_at;  // in sleepers_ under this key
  };
  // A call that may go, with what it must hand back.
  struct Ready {
    Origin* origin = nullptr;
    OriginQueue::Slot slot;
  };

  OriginTable(const OriginQueue::Limits& limits, size_t max_origins);

  Origin* Find(const std::string& authority);
  // Makes room by forgetting the origin that has been idle longest, one that is not throttled
  // before one that is; nullptr when none is idle.
  Origin* FindOrAdd(const std::string& authority, TimePoint now);
  // To be called after every change to `origin`'s queue: TakeReady looks only where one happened.
  void Touch(Origin& origin, TimePoint now);
  // All calls that may start now, and those refused since the origin began to throttle.
  void TakeReady(TimePoint now, std::vector<Ready>* ready, std::vector<uint64_t>* refused);
  // When TakeReady is worth calling although nothing is touched.
  std::optional<TimePoint> WakeAt() const;
  bool touched() const { return !touched_.empty(); }

  // True: worth a line in the log; not more often than every half a minute for an origin.
  bool RecordError(Origin& origin, std::string text, TimePoint now);
  // It has answered as it should. True: worth a line, as one about trouble stands before it.
  bool RecordRecovery(Origin& origin);
  std::vector<OriginStatus> Snapshot(TimePoint now) const;
  size_t size() const { return origins_.size(); }

 private:
  bool MakeRoom(TimePoint now);
  void Forget(Origin& origin);
  void SetWake(Origin& origin, std::optional<TimePoint> when);

  const OriginQueue::Limits limits_;
  const size_t max_origins_;
  std::unordered_map<std::string, std::unique_ptr<Origin>> origins_;
  std::vector<Origin*> touched_;
  std::set<std::pair<TimePoint, Origin*>> sleepers_;
};

}  // namespace dartfs::core
