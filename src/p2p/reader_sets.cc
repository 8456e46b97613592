#include "p2p/reader_sets.h"

#include <algorithm>
#include <utility>

#include "p2p/view.h"

namespace dartfs::p2p {

using core::Code;
using core::MakeError;

core::Duration ReaderSets::LeaseOf(int64_t lease_ms) const {
  if (lease_ms <= 0) return std::min(2 * options_.tick, options_.max_lease);
  // Clamped before it is converted: milliseconds from a stranger overflow nanoseconds.
  const int64_t most = core::ToMillis(options_.max_lease);
  return std::chrono::milliseconds(std::min(lease_ms, most));
}

core::Result<ReaderSet> ReaderSets::Join(std::string_view file, std::string_view node,
                                         int64_t lease_ms, core::TimePoint now) {
  if (file.empty()) return MakeError(Code::kInvalidArgument, "join: no file is named");
  if (!IsMemberId(node)) return MakeError(Code::kInvalidArgument, "join: that is no node ID");
  auto found = files_.find(file);
  if (found == files_.end()) {
    if (files_.size() >= options_.max_files) Sweep(now);
    if (files_.size() >= options_.max_files) {
      return MakeError(Code::kBusy, "join: too many files are being read");
    }
    found = files_.try_emplace(std::string(file)).first;
  }
  File& set = found->second;
  auto lease = set.leases.find(node);
  if (lease == set.leases.end()) {
    if (set.leases.size() >= options_.max_leases) {
      return MakeError(Code::kBusy, "join: too many nodes read that file");
    }
    lease = set.leases.try_emplace(std::string(node)).first;
  }
  const core::Duration granted = LeaseOf(lease_ms);
  lease->second = now + granted;
  set.touched = now;
  Publish(set, now);
  return ReaderSet{set.epoch, set.published, granted};
}

void ReaderSets::Leave(std::string_view file, std::string_view node, core::TimePoint now) {
  const auto found = files_.find(file);
  if (found == files_.end()) return;
  File& set = found->second;
  set.touched = now;
  if (const auto lease = set.leases.find(node); lease != set.leases.end()) set.leases.erase(lease);
}

// Where a tick has passed since the last time; a first reader at once.
void ReaderSets::Publish(File& file, core::TimePoint now) const {
  const bool first =
      file.published == nullptr || (file.published->empty() && file.leases.size() == 1);
  if (!first && now - file.published_at < options_.tick) return;
  std::erase_if(file.leases, [now](const auto& lease) { return lease.second <= now; });
  auto readers = std::make_shared<std::vector<std::string>>();
  if (file.leases.size() <= options_.max_readers) {
    readers->reserve(file.leases.size());
    for (const auto& lease : file.leases) readers->push_back(lease.first);
  }
  file.published_at = now;
  if (file.published != nullptr && *file.published == *readers) return;
  file.published = std::move(readers);
  ++file.epoch;
}

void ReaderSets::Sweep(core::TimePoint now) {
  for (auto& [name, file] : files_) {
    std::erase_if(file.leases, [now](const auto& lease) { return lease.second <= now; });
  }
  std::erase_if(files_, [this, now](const auto& entry) {
    return entry.second.leases.empty() && now - entry.second.touched >= options_.forget_after;
  });
}

}  // namespace dartfs::p2p
