#include "core/engine/outages.h"

namespace dartfs::core {

namespace {
constexpr size_t kMaxOutages = 4096;
}  // namespace

void Outages::Note(const std::string& authority, bool no_connection, TimePoint now) {
  if (by_authority_.size() >= kMaxOutages) by_authority_.clear();
  by_authority_[authority] = Outage{now, no_connection};
}

bool Outages::ServedOn(const std::string& authority, TimePoint now) const {
  const auto it = by_authority_.find(authority);
  return it != by_authority_.end() && now - it->second.at < limits_.served_on;
}

bool Outages::Hopeless(const std::string& authority, TimePoint now) const {
  const auto it = by_authority_.find(authority);
  return it != by_authority_.end() && it->second.no_connection &&
         now - it->second.at < limits_.hopeless;
}

}  // namespace dartfs::core
