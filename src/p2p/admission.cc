#include "p2p/admission.h"

#include <algorithm>

namespace dartfs::p2p {
namespace {

bool Has(const std::vector<std::string>& ids, std::string_view id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

PlacedNode AsPlaced(const ChunkTree& tree, std::string_view id) {
  const Member* member = tree.view()->Find(id);
  return {id, member != nullptr ? member->weight : 1.0};
}

bool StandsBehind(const ChunkTree& tree, std::string_view self, std::string_view sender) {
  return RanksBefore(tree.key(), AsPlaced(tree, self), AsPlaced(tree, sender));
}

// Whether the sender may wait for a flight of ours that waits for other peers.
bool MayWaitBehindPeers(const ChunkTree& tree, std::string_view self, const BlockAsk& ask,
                        const BlockStatus& status) {
  if (!ask.has_url) return false;
  if (ask.path.empty()) return true;
  const bool back_to_it =
      std::any_of(status.sources.begin(), status.sources.end(),
                  [&ask](const std::string& source) { return Has(ask.path, source); });
  return !back_to_it && StandsBehind(tree, self, ask.path.back());
}

}  // namespace

Admission Admit(const ChunkTree& tree, std::string_view self, const BlockAsk& ask,
                const BlockStatus& status, bool has_room) {
  if (ask.hop >= kMaxHop || Has(ask.path, self)) return Admission::kDecline;
  if (status.held) return Admission::kServe;
  if (status.in_flight) {
    const bool may = status.at_origin || MayWaitBehindPeers(tree, self, ask, status);
    if (!may) return Admission::kDecline;
    return has_room ? Admission::kJoin : Admission::kBusy;
  }
  const bool we_are_root = tree.PositionOf(self) == 0U;
  if (!ask.has_url || !(we_are_root || MayWaitBehindPeers(tree, self, ask, status))) {
    return Admission::kDecline;
  }
  return has_room ? Admission::kRelay : Admission::kBusy;
}

}  // namespace dartfs::p2p
