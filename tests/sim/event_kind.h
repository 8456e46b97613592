// What may happen in a world, and what an event's `a` and `b` are then; of each, `node` is whom it
// happens to.
#pragma once

#include <cstdint>

namespace dartfs::sim {

enum EventKind : uint16_t {
  kStart,    // its reader
  kAsk,      // a: transfer
  kLost,     // a: transfer, b: PeerFailure::Kind
  kSent,     // its link is free
  kTurn,     // a: transfer that waits for its receiver
  kGranule,  // a: transfer, b: granule and content
  kCancel,   // a: transfer
  kTimeOut,  // a: transfer, b: whether it may go on if there was a byte
  kWake,     // of its flights
  kTick,     // of membership
  kPublish,
  kRosterAsk,      // a: who asks, b: its epoch, 0: any will do
  kRosterAnswer,   // a: who answers, b: number of the roster; 0: none
  kTrack,          // a: number
  kTrackerAsk,     // a: who asks, b: leave
  kTrackerAnswer,  // a: number of the set; 0: a failure, b: lease
  kView,           // a: number of the view
  kForget,         // a member that may be dead still
  kCrash,
  kRestart,  // a: warm, b: moved
  kStop,
  kContinue,
  kSlowDown,  // a: bits of the rate
  kExchange,  // a: with
  kPartition,
  kBlockDials,  // a: to
  kHeal,
  kOriginRate,
  kOriginDown,
  kChangeVersion,
};

}  // namespace dartfs::sim
