#include "sim/network.h"

namespace dartfs::sim {

void Network::Unbind(const std::string& addr, uint32_t node) {
  const auto found = listeners_.find(addr);
  if (found != listeners_.end() && found->second == node) listeners_.erase(found);
}

std::optional<uint32_t> Network::ListenerAt(const std::string& addr) const {
  const auto found = listeners_.find(addr);
  if (found == listeners_.end()) return std::nullopt;
  return found->second;
}

void Network::Heal() {
  sides_.clear();
  blocked_.clear();
}

bool Network::Carries(uint32_t a, uint32_t b) const {
  return a >= sides_.size() || b >= sides_.size() || sides_[a] == sides_[b];
}

bool Network::CanDial(uint32_t from, uint32_t to) const {
  return Carries(from, to) && !blocked_.contains({from, to});
}

core::Duration Network::Latency() {
  return options_.latency +
         core::Duration(static_cast<int64_t>(static_cast<double>(options_.jitter.count()) *
                                             random_.NextDouble()));
}

bool Network::Loses() { return options_.loss > 0 && random_.NextDouble() < options_.loss; }

}  // namespace dartfs::sim
