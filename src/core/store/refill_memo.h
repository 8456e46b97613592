// RefillMemo: looks through all chunks that found nothing for those whose turn it is need not be
// repeated for each block that has no room; remembered for a second. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "core/base/time.h"
#include "core/store/placement_shares.h"

namespace dartfs::core {

class RefillMemo {
 public:
  using Turn = PlacementShares::Turn;
  static constexpr Duration kKept = std::chrono::seconds(1);

  // A look for who gives first (kFirst), or for anybody (kAfter), under that pressure: in vain?
  bool InVain(Turn turn, const Pressure& pressure, TimePoint now) const {
    return now < until_[RowOf(turn)][ColumnOf(pressure)];
  }
  void NoteInVain(Turn turn, const Pressure& pressure, TimePoint now) {
    until_[RowOf(turn)][ColumnOf(pressure)] = now + kKept;
  }

 private:
  // Whose turn it is depends on what needs room.
  static size_t RowOf(Turn turn) { return turn == Turn::kFirst ? 0 : 1; }
  static size_t ColumnOf(const Pressure& pressure) {
    return pressure.incoming ? 1 + IndexOf(*pressure.incoming) : 0;
  }
  std::array<std::array<TimePoint, 1 + kPlacements>, 2> until_ = {};
};

}  // namespace dartfs::core
