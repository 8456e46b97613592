// OwnerHistory: since when this node is the owner of a chunk, as far as the last minute tells. One
// that has become it asks who may hold the chunk before it asks the origin (WIRE.md section 7,
// owner changes). So does one that has just started: what it held may be gone. Not thread-safe;
// time is an argument.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "core/base/time.h"
#include "p2p/view.h"

namespace dartfs::p2p {

class OwnerHistory {
 public:
  static constexpr core::Duration kNew = std::chrono::seconds(60);

  // `settled`: this node has been a member for long, and of this very view.
  OwnerHistory(std::string self, ViewPtr view, bool settled, core::TimePoint now);
  // The view that holds from now on.
  void OnView(ViewPtr view, core::TimePoint now);
  // Of a chunk that this node owns now. Cheap when asked again.
  bool IsNew(uint64_t chunk_key, core::TimePoint now);

 private:
  struct Past {
    ViewPtr view;
    core::TimePoint until;  // it held
  };
  void Forget(core::TimePoint now);

  const std::string self_;
  ViewPtr view_;
  core::TimePoint settled_at_;  // before it everything is new
  std::deque<Past> past_;       // of the last minute, thinned out
  std::unordered_map<uint64_t, bool> known_;
};

}  // namespace dartfs::p2p
