// BlockSource: where the bytes of a flight come from. The origin (origin_source) and the spool of a
// range-blind object (spool) are two; a peer in the distribution tree is plugged in by the app.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/engine/object.h"
#include "core/engine/object_reader.h"
#include "core/io/http_client.h"

namespace dartfs::core {

struct BlockRequest {
  std::shared_ptr<Object> object;
  uint64_t block = 0;   // index
  uint64_t length = 0;  // of the whole block, bytes
  uint64_t from = 0;    // first byte wanted, within the block; the rest of the block follows
  std::shared_ptr<const Requester> requester;
  Priority priority = Priority::kDemand;
};

// What a source tells of a fetch; one thread at a time, in this order.
class BlockSink {
 public:
  virtual ~BlockSink() = default;
  // The answer's head has passed the source's checks. `trusted`: bytes may be shown to readers as
  // they come (the origin); otherwise they are held back until checked. Once at most.
  virtual Status OnStart(bool trusted) = 0;
  // Bytes in order, from BlockRequest::from on. An error ends the fetch; kPause as in HttpSink.
  virtual Result<BodyVerdict> OnBytes(std::span<const std::byte> bytes) = 0;
  // As HttpSink::OnPiecesEnd.
  virtual void OnPiecesEnd() {}
  // Exactly once, last. Success: the source has sent all it was going to, not that it was enough.
  virtual void OnEnd(Status status) = 0;
};

// A fetch under way. Any thread. Dropping it does not cancel.
class BlockFetch {
 public:
  virtual ~BlockFetch() = default;
  virtual void Cancel() = 0;  // OnEnd(kCancelled) follows unless it ended already
  virtual void Resume() = 0;  // after kPause
  virtual void Raise(Priority priority) = 0;
};

class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // Does not block; no callback on the caller's stack.
  virtual std::shared_ptr<BlockFetch> Fetch(BlockRequest request,
                                            std::shared_ptr<BlockSink> sink) = 0;
  virtual const char* name() const = 0;  // "origin", "spool", "peer"
};

}  // namespace dartfs::core
