// What a route is told at its beginning, what it says is to be done, and how that may fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/time.h"
#include "p2p/chunk_tree.h"

namespace dartfs::p2p {

struct RouteOptions {
  std::string self;
  // WIRE.md section 7. Off: as a DART node decides.
  bool extensions = true;
  core::Duration silence = std::chrono::seconds(2);  // without a byte that is due: suspect
  // Of a suspect that has sent a part of the block, or was one when it was asked.
  core::Duration suspects_silence = std::chrono::milliseconds(50);
  // Without a byte of any peer: to the origin, whether they are busy, dead or silent.
  core::Duration peers_limit = std::chrono::seconds(10);
  // For the whole block, of one peer: beyond it another is asked beside, though it makes progress.
  core::Duration block_limit = std::chrono::seconds(30);
  uint32_t holders = 3;  // asked by a new owner
};

// Whom a content-addressed object is still asked of. Where what the tree brought did not match the
// digest, whoever relayed it may have lied or been lied to: next time the owner alone is asked, and
// after that nobody but the origin.
enum class Trust : uint8_t { kTree, kOwner, kOrigin };

struct RouteRequest {
  ChunkTreePtr tree;
  std::string origin;  // its authority, for the last resort's budget
  // Peers may fetch on our behalf: false where the origin wants a credential that is the client's.
  bool with_url = true;
  bool urgent = true;  // a reader waits; else it is read ahead
  // Ours is a new owner: the view has changed within the last minute (WIRE.md section 7).
  bool new_owner = false;
  Trust trust = Trust::kTree;
  // Answers must name the object (IDENTITY.md, Peers): it has a version and no digest.
  bool must_be_named = false;
  // When the peer that we fetch it for gives up unless it has got a byte (X-DARTFS-Deadline).
  core::TimePoint deadline = core::kNoDeadline;
  // The nodes that the request has come through; none of them is asked.
  std::vector<std::string> path = {};
  // Next has something new to say, without an event of this route. Runs within a call of another
  // route's, so it must not call one.
  std::function<void()> changed = {};
};

using AttemptId = uint32_t;

struct RouteStep {
  enum class Kind : uint8_t { kAskPeer, kAskOrigin, kCancel };
  Kind kind = Kind::kAskPeer;
  AttemptId attempt = 0;  // of kCancel: the one that is given up
  std::string peer = {};  // of kAskPeer
  std::string addr = {};
  bool with_url = false;  // else only what it holds
  // Of kAskPeer: how long the first byte is waited for (X-DARTFS-Deadline).
  core::Duration patience{};
};

// How a request to a peer ended without the whole block.
struct PeerFailure {
  enum class Kind : uint8_t {
    kMiss,     // 404: it has not got it and will not get it
    kBusy,     // 404, not now
    kRefused,  // the origin refused the credential in the URL: no fault of the peer's
    kSoft,     // a time-out, a 5xx, a body cut short
    kHard,     // no connection
    kWrong,    // bytes that do not match their checksums
    kUnproven  // it does not name the object that it answers with
  };
  Kind kind = Kind::kMiss;
  core::Duration retry_after{};  // of kBusy
};

}  // namespace dartfs::p2p
