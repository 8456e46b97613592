// Network: who reaches whom, where, and how long it takes. Numbers are nodes'; the origin, which is
// beyond them all, is reached by every one.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "sim/options.h"

namespace dartfs::sim {

class Network {
 public:
  // How addresses end at which a connection takes a second to fail.
  static constexpr const char* kNowhere = ".nowhere:1";

  Network(const Options& options, core::Random& random) : options_(options), random_(random) {}

  // Who listens at `addr` ("host:port") from now on.
  void Bind(const std::string& addr, uint32_t node) { listeners_[addr] = node; }
  void Unbind(const std::string& addr, uint32_t node);
  std::optional<uint32_t> ListenerAt(const std::string& addr) const;
  // Whether who connects there is refused at once, where nobody listens.
  static bool Refuses(const std::string& addr) { return !addr.ends_with(kNowhere); }

  // Nodes with different sides do not reach each other; empty: all do.
  void Partition(std::vector<uint8_t> sides) { sides_ = std::move(sides); }
  // `from` cannot connect to `to`, though `to` may to it.
  void BlockDials(uint32_t from, uint32_t to) { blocked_.insert({from, to}); }
  void Heal();

  bool Carries(uint32_t a, uint32_t b) const;
  bool CanDial(uint32_t from, uint32_t to) const;
  // One way.
  core::Duration Latency();
  bool Loses();

 private:
  const Options& options_;
  core::Random& random_;
  std::unordered_map<std::string, uint32_t> listeners_;
  std::vector<uint8_t> sides_;
  std::set<std::pair<uint32_t, uint32_t>> blocked_;
};

}  // namespace dartfs::sim
