// ObjectReader: reads of one open file (or of one client) on one Object. Holds what belongs to the
// handle: who asks (credential), the read-ahead streams, and the interest in flights, which ends
// with it. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"
#include "core/base/url.h"

namespace dartfs::core {

class Object;

// Whose request a fetch is: the URL as that requester holds it (its signature) and its credential.
struct Requester {
  Url url;
  std::string authorization;   // value of the Authorization header, or empty
  bool untrusted_url = false;  // as HttpRequest's
};

// Bytes that stay valid while `keep` is held.
struct ReadBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
};
using ReadDone = UniqueFunction<void(Result<ReadBytes>)>;
using ReadId = uint64_t;

class ObjectReader {
 public:
  virtual ~ObjectReader() = default;  // cancels what is outstanding (kCancelled)

  virtual const std::shared_ptr<Object>& object() const = 0;

  // The bytes [offset, offset + into.size()), copied into `into` or where they lie in memory, if
  // that needs neither disk nor network; the range must lie within the object. nullopt: use Read.
  // Does not block. Counts as an access for read-ahead where there is an answer.
  virtual std::optional<ReadBytes> TryRead(uint64_t offset, std::span<std::byte> into) = 0;

  // The bytes [offset, offset + size) cut to the object's end: all of them or an error (kStale,
  // kDeadlineExceeded once `deadline` passed, the source's error). `done` runs exactly once, on an
  // engine thread or, when nothing has to be waited for, on the caller's stack. Size at most 16
  // MiB.
  virtual ReadId Read(uint64_t offset, size_t size, TimePoint deadline, ReadDone done) = 0;

  // Ends an outstanding read with kCancelled; nothing if it is over. The fetch behind it is
  // cancelled when nobody else wants it.
  virtual void Cancel(ReadId id) = 0;

  // The reads outstanding now stop counting as interest in their flights (they may still complete)
  // until this reader is used again: a reader was killed, as far as one can see (KERNEL.md, FLUSH).
  virtual void LowerInterest() = 0;
};

}  // namespace dartfs::core
