#include "p2p/reader_tracking.h"

#include <algorithm>
#include <utility>

namespace dartfs::p2p {
namespace {

const Member* TrackerOf(const View& view, uint64_t file_key) {
  const auto top = RankTop(file_key, view.ready(), 1);
  return top.empty() ? nullptr : view.Find(view.ready()[top.front()].id);
}

}  // namespace

void ReaderTracking::OnRead(core::TimePoint now) {
  if (!std::exchange(reading_, true)) next_at_ = now;
  read_at_ = now;
}

std::optional<TrackerCall> ReaderTracking::Next(const ViewPtr& view, core::TimePoint now) {
  if (calling_ && now - called_at_ >= options_.patience) OnFailed(now);
  if (calling_) return std::nullopt;
  if (ranked_ != view) {
    ranked_ = view;
    first_ = TrackerOf(*view, file_key_);
  }
  const Member* tracker = first_;
  if (reading_ && now - read_at_ >= options_.idle) {
    reading_ = false;
    readers_ = nullptr;
  }
  if (!reading_) {
    const Member* left = view->Find(std::exchange(tracker_, {}));
    if (left == nullptr) return std::nullopt;  // it has gone itself, or was told
    return TrackerCall{TrackerCall::Kind::kLeave, left->id, left->addr};
  }
  if (tracker == nullptr) {
    tracker_.clear();
    readers_ = nullptr;
    return std::nullopt;
  }
  // Another tracker knows nothing of the lease; the old one's runs out by itself.
  if (tracker->id != tracker_) {
    tracker_ = tracker->id;
    next_at_ = now;
  }
  if (now < next_at_) return std::nullopt;
  calling_ = true;
  called_at_ = now;
  return TrackerCall{TrackerCall::Kind::kJoin, tracker->id, tracker->addr};
}

core::TimePoint ReaderTracking::wake_at() const {
  if (calling_) return called_at_ + options_.patience;
  if (!reading_) return tracker_.empty() ? core::kNoDeadline : core::TimePoint{};
  return std::min(next_at_, read_at_ + options_.idle);
}

void ReaderTracking::OnJoined(std::vector<std::string> readers, core::Duration lease,
                              core::TimePoint now) {
  if (!std::exchange(calling_, false)) return;
  if (readers.size() > kMaxReaders) readers.clear();
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  if (readers_ == nullptr || *readers_ != readers) {
    readers_ = std::make_shared<const std::vector<std::string>>(std::move(readers));
  }
  lease = std::clamp(lease, core::Duration(std::chrono::seconds(1)), kMaxLease);
  lease_until_ = now + lease;
  // Renewed at half of it, so that it never lapses in the middle of a read.
  half_until_ = next_at_ = now + lease / 2;
}

void ReaderTracking::OnFailed(core::TimePoint now) {
  calling_ = false;
  next_at_ = now + options_.retry;
}

ReaderIds ReaderTracking::Readers(core::TimePoint now) const {
  const bool valid = now < half_until_ || (calling_ && now < lease_until_);
  return reading_ && valid ? readers_ : nullptr;
}

}  // namespace dartfs::p2p
