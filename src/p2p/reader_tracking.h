// ReaderTracking: the reader's side of WIRE.md section 6 for one object: when to tell its tracker
// that this node reads it, and which readers the tree spans now. Pure; not thread-safe; the owner
// sends what Next says and tells what came of it. No read ever waits for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "p2p/chunk_tree.h"
#include "p2p/view.h"

namespace dartfs::p2p {

struct ReaderTrackingOptions {
  std::string self;
  core::Duration idle = std::chrono::seconds(30);      // without a read: this node leaves
  core::Duration retry = std::chrono::seconds(3);      // after a tracker that did not answer
  core::Duration patience = std::chrono::seconds(10);  // a call that tells nothing has failed
};

struct TrackerCall {
  enum class Kind : uint8_t { kJoin, kLeave };
  Kind kind = Kind::kJoin;
  std::string tracker;  // its ID: this node's own, maybe
  std::string addr;
};

class ReaderTracking {
 public:
  static constexpr size_t kMaxReaders = 512;  // WIRE.md section 7
  static constexpr core::Duration kMaxLease = std::chrono::minutes(10);

  // `file_key`: the object's chunk key with index -1.
  ReaderTracking(const ReaderTrackingOptions& options, uint64_t file_key)
      : options_(options), file_key_(file_key) {}

  // A read of the object, any.
  void OnRead(core::TimePoint now);
  // The call that is due, or nullopt. One join is under way at most: OnJoined or OnFailed ends it.
  // Cheap where the view is the last time's.
  std::optional<TrackerCall> Next(const ViewPtr& view, core::TimePoint now);
  // When Next may have something new to say; kNoDeadline: after the next read.
  core::TimePoint wake_at() const;

  // What the tracker says is foreign: more than kMaxReaders are none, each counts once, and a lease
  // is at least a second and at most kMaxLease. A set that is the last one is that very object, so
  // that trees of it are found again.
  void OnJoined(std::vector<std::string> readers, core::Duration lease, core::TimePoint now);
  void OnFailed(core::TimePoint now);

  // Over whom the tree of a chunk spans: for half the lease, and while it is being renewed; null:
  // all Ready members, as where no tracker is or answers.
  ReaderIds Readers(core::TimePoint now) const;
  // Nobody reads it here any more, and the tracker was told: it may be forgotten.
  bool over() const { return !reading_ && tracker_.empty(); }

 private:
  const ReaderTrackingOptions& options_;
  const uint64_t file_key_;
  ViewPtr ranked_;                 // the view in which
  const Member* first_ = nullptr;  // this is the tracker
  bool reading_ = false;
  core::TimePoint read_at_{};
  std::string tracker_;  // where this node has joined, or tries to
  bool calling_ = false;
  core::TimePoint called_at_{};
  core::TimePoint next_at_{};  // of the next join
  ReaderIds readers_;
  core::TimePoint half_until_{};
  core::TimePoint lease_until_{};
};

}  // namespace dartfs::p2p
